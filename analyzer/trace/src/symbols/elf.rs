// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of an ELF file by the places in it.

use std::fs::File;

use object::read::ReadCache;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// The most symbols that are read of one file.
const SYMBOLS: usize = 1 << 22;
/// The longest name that is kept, bytes.
const LONGEST_NAME: usize = 1 << 16;

/// A part of the file that is mapped to be executed, or read.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The place in the file at which it begins, bytes.
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
        let most = file.len();
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
        let all = functions(file.symbols(), most);
        self.are_all = !all.is_empty();
        let found = match self.are_all {
            true => all,
            false => functions(file.dynamic_symbols(), most),
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

/// Returns the functions among symbols by address, one for each: of several names, the plainest. Names may overlap, so that a
/// small file could have many long ones: those beyond `most` bytes of all are not read.
fn functions<'d>(
    symbols: impl Iterator<Item = impl ObjectSymbol<'d>>,
    most: usize,
) -> Vec<Function> {
    let mut left = most;
    let named = symbols.take(SYMBOLS).map_while(|symbol| {
        let name = symbol.name_bytes().unwrap_or_default();
        left = left.checked_sub(name.len())?;
        Some((symbol, name))
    });
    let functions = named.filter_map(|(symbol, name)| {
        let is_name = (1..=LONGEST_NAME).contains(&name.len());
        let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        let (begin, size) = (symbol.address(), symbol.size());
        (is_name && is_function && size > 0).then(|| Function {
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const ID: [u8; 16] = [0xa5; 16];
    /// The code is at this offset in the file, and mapped elsewhere.
    const OFFSET: u64 = 0x1000;
    const ADDRESS: u64 = 0x40_2000;

    /// Makes an ELF file of 64 bits with a segment, a build id and a table of symbols: name, address, size.
    fn elf(symbols: &[(&str, u64, u64)]) -> Vec<u8> {
        let words =
            |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let mut strings = b"\0".to_vec();
        let mut table = vec![0; 24];
        for (name, address, size) in symbols {
            table.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
            // STB_GLOBAL, STT_FUNC, in section 1
            table.extend([0x12, 0, 1, 0]);
            table.extend(words(&[*address, *size]));
            strings.extend(name.bytes().chain([0]));
        }
        let note = [&[4, 0, 0, 0, 16, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &ID].concat();
        let names = b"\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab\0".to_vec();
        let parts = [&note, &table, &strings, &names];
        let mut at = 64 + 56;
        let places: Vec<u64> = parts
            .iter()
            .map(|part| {
                at += part.len() as u64;
                at - part.len() as u64
            })
            .collect();
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        // ET_DYN, x86-64, one program header, five section headers, the last of which has their names
        file.extend([3, 0, 62, 0, 1, 0, 0, 0]);
        file.extend(words(&[0, 64, at]));
        file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 5, 0, 4, 0]);
        // PT_LOAD, readable and executable
        file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        file.extend(words(&[OFFSET, ADDRESS, ADDRESS, 0x800, 0x800, 0x1000]));
        parts.iter().for_each(|part| file.extend(*part));
        file.extend([0; 64]);
        // The name's place, SHT_…, the section that it refers to, the size of an entry
        let sections = [
            (1_u32, 7_u32, 0_u32, 0),
            (20, 2, 3, 24),
            (28, 3, 0, 0),
            (36, 3, 0, 0),
        ];
        for ((name, kind, link, entry), (place, part)) in
            sections.iter().zip(places.iter().zip(parts))
        {
            file.extend(name.to_le_bytes().iter().chain(&kind.to_le_bytes()));
            file.extend(words(&[0, 0, *place, part.len() as u64]));
            file.extend(link.to_le_bytes().iter().chain(&1_u32.to_le_bytes()));
            file.extend(words(&[4, *entry]));
        }
        file
    }

    fn example() -> Vec<u8> {
        elf(&[
            ("__save", ADDRESS + 0x10, 0x20),
            ("save", ADDRESS + 0x10, 0x20),
            ("store", ADDRESS + 0x40, 0x10),
            ("no_size", ADDRESS + 0x60, 0),
        ])
    }

    #[test]
    fn functions_are_found_by_the_offset_in_the_file() {
        let mut functions = Functions::default();
        functions.add(&example());
        assert!(functions.are_all());
        let at = |offset: u64| {
            let name = functions.at(OFFSET + offset)?;
            Some(std::str::from_utf8(name).unwrap())
        };
        for (offset, name) in [
            (0xf, None),
            (0x10, Some("save")),
            (0x2f, Some("save")),
            (0x30, None),
            (0x40, Some("store")),
            (0x4f, Some("store")),
            (0x60, None),
            (0x800, None),
        ] {
            assert_eq!(at(offset), name, "{offset:#x}");
        }
        // An address is no offset.
        assert_eq!(functions.at(ADDRESS + 0x10), None);
    }

    /// Thousands of names share the end of one string, and are as long as the file together only at first.
    #[test]
    fn names_that_overlap_take_no_more_than_the_file() {
        let long = "a".repeat(LONGEST_NAME);
        let mut symbols: Vec<(&str, u64, u64)> = (0..100).map(|at| ("", ADDRESS + at, 1)).collect();
        symbols.push((&long, ADDRESS + 100, 1));
        let mut file = elf(&symbols);
        let behind = 100 + 1;
        for place in 0..file.len().saturating_sub(8) {
            // Each empty name now points to the long one.
            let begins = u32::from_le_bytes(file[place..place + 4].try_into().unwrap());
            if (1..behind).contains(&begins) && file[place + 4..place + 8] == [0x12, 0, 1, 0] {
                file[place..place + 4].copy_from_slice(&behind.to_le_bytes());
            }
        }
        let mut functions = Functions::default();
        functions.add(&file);
        let bytes: usize = functions.list.iter().map(|f| f.name.len()).sum();
        assert!((LONGEST_NAME..=file.len()).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_build_id_agrees_as_a_whole() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&example()).unwrap();
        let padded = [&ID[..], &[0; 4]].concat();
        for (id, agrees) in [
            (&ID[..], true),
            (&padded, true),
            (&[&ID[..], &[1]].concat(), false),
            (&ID[..15], false),
            (&[0xa5; 20], false),
            (&[], false),
        ] {
            assert_eq!(has_id(&file, id), agrees, "{id:x?}");
        }
        let mut other = tempfile::tempfile().unwrap();
        other.write_all(b"#!/bin/sh\n").unwrap();
        assert!(!has_id(&other, &ID));
    }

    proptest! {
        /// A file that a recording names may be anything.
        #[test]
        fn damaged_files_never_panic(
            flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..12),
            len in any::<prop::sample::Index>(),
            at in any::<u64>(),
        ) {
            let mut file = example();
            for (place, flip) in flips {
                let place = place.index(file.len());
                file[place] ^= flip;
            }
            if at.is_multiple_of(2) {
                file.truncate(len.index(file.len()));
            }
            let mut functions = Functions::default();
            functions.add(&file);
            functions.at(at);
            functions.at(at % 0x2000);
            let mut disk = tempfile::tempfile().unwrap();
            disk.write_all(&file).unwrap();
            has_id(&disk, &ID);
        }
    }
}
