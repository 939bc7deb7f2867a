// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of an ELF file by the places in it.

use std::fs::File;

use object::read::ReadCache;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// The most symbols that are read of one file.
const SYMBOLS: usize = 1 << 22;

/// A part of the file that is mapped to be executed, or read.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Where it begins in the file, bytes.
    offset: u64,
    len: u64,
    address: u64,
}

/// A function, by its address.
#[derive(Debug)]
struct Function {
    begin: u64,
    end: u64,
    name: Box<[u8]>,
}

/// The functions of one file, taken from this file or from those that have what was stripped from it.
#[derive(Default)]
pub(super) struct Functions {
    segments: Vec<Segment>,
    list: Vec<Function>,
    /// True if they are of a symbol table that has all functions, and not only those for other files.
    are_all: bool,
}

/// Returns true if a file is an ELF file with this build id, which may be followed by zeros: the kernel tells 20 bytes.
pub(super) fn has_id(file: &File, id: &[u8]) -> bool {
    let cache = ReadCache::new(file);
    let Ok(parsed) = object::File::parse(&cache) else {
        return false;
    };
    let Ok(Some(own)) = parsed.build_id() else {
        return false;
    };
    let rest = id.strip_prefix(own);
    !own.is_empty() && rest.is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
}

impl Functions {
    /// Returns true if nothing more can be learnt from another file.
    pub fn are_all(&self) -> bool {
        self.are_all && !self.segments.is_empty()
    }

    /// Takes what a file knows: where its code is in it, and its functions.
    pub fn add(&mut self, file: &[u8]) {
        let Ok(file) = object::File::parse(file) else {
            return;
        };
        if self.segments.is_empty() {
            let segments = file.segments().map(|segment| {
                let (offset, len) = segment.file_range();
                Segment {
                    offset,
                    len,
                    address: segment.address(),
                }
            });
            self.segments = segments.filter(|segment| segment.len > 0).collect();
        }
        if self.are_all {
            return;
        }
        let all = functions(file.symbols());
        self.are_all = !all.is_empty();
        let found = match self.are_all {
            true => all,
            false => functions(file.dynamic_symbols()),
        };
        if !found.is_empty() {
            self.list = found;
        }
    }

    /// Returns the name of the function at an offset in the file.
    pub fn at(&self, offset: u64) -> Option<&[u8]> {
        let mut within = self.segments.iter().filter_map(|segment| {
            let from = offset.checked_sub(segment.offset)?;
            (from < segment.len).then_some(segment.address.checked_add(from)?)
        });
        let address = within.next()?;
        let behind = self.list.partition_point(|f| f.begin <= address);
        let function = behind.checked_sub(1).and_then(|at| self.list.get(at))?;
        (address < function.end).then_some(&*function.name)
    }
}

/// Returns the functions among symbols by address, one for each: of several names, the plainest.
fn functions<'d>(symbols: impl Iterator<Item = impl ObjectSymbol<'d>>) -> Vec<Function> {
    let functions = symbols.take(SYMBOLS).filter_map(|symbol| {
        let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
        let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        let (begin, size) = (symbol.address(), symbol.size());
        (is_function && size > 0).then(|| Function {
            begin,
            end: begin.saturating_add(size),
            name: name.into(),
        })
    });
    let mut functions: Vec<Function> = functions.collect();
    functions.sort_by(|a, b| (a.begin, plainness(&a.name)).cmp(&(b.begin, plainness(&b.name))));
    functions.dedup_by_key(|function| function.begin);
    functions
}

/// The order of names: `fsync` goes before `__fsync`.
fn plainness(name: &[u8]) -> (usize, usize, &[u8]) {
    let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
    (underscores, name.len(), name)
}
