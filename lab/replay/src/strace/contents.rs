// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls on the contents of files, and what they tell about positions and sizes.

use std::rc::Rc;

use super::args::{Args, field, number};
use super::calls::{Asked, HARMLESS, Made, NOT_READ, Reader, Status, Why};
use super::tasks::{Mapping, OpenFile};
use crate::operation::{Call, FileCall, Range};
use crate::words::{MMAP, MODE};

const STORES: &str = "strace sees no stores to this mapping";
const UNMAPPED: &str = "it is not known which file is mapped at its address";
const PROT_WRITE: u64 = 2;
const MAP_TYPE: u64 = 3;
const MAP_PRIVATE: u64 = 2;

/// A call that only reads changes no file, whichever it is about.
fn read_only(_: Why) -> Why {
    HARMLESS
}

impl Reader<'_> {
    /// Takes the size and the kind of a file, which an open does not show.
    pub(super) fn status(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let (n, mode, size) = match asked.name {
            "statx" => (4, "stx_mode", "stx_size"),
            "newfstatat" => (2, "st_mode", "st_size"),
            _ => (1, "st_mode", "st_size"),
        };
        let told = asked.args.text(n);
        let i_mode = field(told, mode).and_then(|text| Args::split(text).number(0, MODE));
        let (Some(i_mode), 0) = (i_mode.and_then(|mode| u32::try_from(mode).ok()), result) else {
            return Err(HARMLESS);
        };
        let size = field(told, size).and_then(number).unwrap_or(0);
        let status = Status { i_mode, size };
        let by_descriptor =
            asked.name == "fstat" || asked.args.string(1).is_some_and(|path| path.is_empty());
        if !by_descriptor {
            let path = match asked.name {
                "newfstatat" | "statx" => self.absolute(asked, Some(0), 1),
                _ => self.absolute(asked, None, 0),
            };
            self.seen.extend(path.map(|path| (path, status)));
            return Err(HARMLESS);
        }
        let file = self.file(asked, 0).map_err(read_only)?;
        if let Some(Call::Open(opened) | Call::Opened(opened)) = self.opening_of(&file) {
            opened.i_mode = i_mode;
            if !file.changed.get() {
                opened.size = Some(size);
            }
        }
        Err(HARMLESS)
    }

    fn opening_of(&mut self, file: &OpenFile) -> Option<&mut Call> {
        let operation = self.recorded.operations.get_mut(file.opened_by)?;
        Some(&mut operation.call)
    }

    /// Tracks the position of an open file. What was read existed when the file was opened, unless it was changed.
    pub(super) fn positioned(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let file = self.file(asked, 0).map_err(read_only)?;
        let Ok(value) = u64::try_from(result) else {
            return Err(HARMLESS);
        };
        let end = match asked.name {
            "lseek" => {
                // With 32 bits the place is in an argument, and the result 0.
                let place = asked
                    .args
                    .text(2)
                    .strip_prefix('[')
                    .and_then(|text| text.strip_suffix(']'));
                file.position.set(place.map_or(Some(value), number));
                return Err(HARMLESS);
            }
            "pread64" | "preadv" | "preadv2" if asked.args.text(3) != "-1" => {
                asked.args.plain(3).and_then(|at| at.checked_add(value))
            }
            _ => {
                let end = file.position.get().and_then(|at| at.checked_add(value));
                file.position.set(end);
                end
            }
        };
        if let (Some(end), false) = (end, file.changed.get())
            && let Some(Call::Open(opened) | Call::Opened(opened)) = self.opening_of(&file)
        {
            opened.size = Some(opened.size.unwrap_or(0).max(end));
        }
        Err(HARMLESS)
    }

    pub(super) fn written(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let file = self.file(asked, 0)?;
        let written = u64::try_from(result).unwrap_or(0);
        let given = match asked.name {
            // pwritev2 writes at the file's position if the offset is -1.
            "pwrite64" | "pwritev" | "pwritev2" if asked.args.text(3) != "-1" => {
                Some(asked.args.plain(3).ok_or(NOT_READ)?)
            }
            _ => None,
        };
        let offset = given.or(file.position.get()).filter(|_| !file.append);
        if given.is_none() {
            let end = offset.and_then(|at| at.checked_add(written));
            file.position.set(end);
        }
        file.changed.set(true);
        let asked_for = if asked.name.contains('v') {
            None
        } else {
            asked.args.plain(2)
        };
        let bytes = asked_for.unwrap_or(written);
        Ok(Some(Call::Of(file.id, FileCall::Write { offset, bytes })))
    }

    pub(super) fn copied(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let (from, from_at, to, to_at, length) = match asked.name {
            "sendfile" => (1, Some(2), 0, None, 3),
            _ => (0, Some(1), 2, Some(3), 4),
        };
        let target = self.file(asked, to)?;
        let source = self.file(asked, from).ok();
        let moved = u64::try_from(result).unwrap_or(0);
        let place = |n: Option<usize>, file: &OpenFile| {
            let text = n.map_or("", |n| asked.args.text(n));
            // A pointer to an offset is shown as `[old] => [new]` or `[old]`; without one the position moves.
            match text
                .strip_prefix('[')
                .and_then(|text| text.split(']').next())
            {
                Some(old) => number(old),
                None => {
                    let at = file.position.get();
                    file.position.set(at.and_then(|at| at.checked_add(moved)));
                    at
                }
            }
        };
        let from_offset = source.as_deref().and_then(|file| place(from_at, file));
        let offset = place(to_at, &target);
        target.changed.set(true);
        let copy = FileCall::Copy {
            from: source.map(|file| file.id),
            from_offset,
            offset,
            bytes: asked.args.plain(length).unwrap_or(moved),
        };
        Ok(Some(Call::Of(target.id, copy)))
    }

    pub(super) fn mapped(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let Ok(result) = u64::try_from(result) else {
            return Err(HARMLESS);
        };
        let number = |n| asked.args.plain(n).ok_or(NOT_READ);
        let files = Rc::clone(&self.task(asked.thread).files);
        match asked.name {
            "mmap" => return self.maps(asked, result),
            "munmap" => {
                let address = number(0)?;
                let mut files = files.borrow_mut();
                files.mappings.retain(|mapping| mapping.address != address);
                return Err(HARMLESS);
            }
            "mremap" => {
                let (address, bytes) = (number(0)?, number(2)?);
                for mapping in &mut files.borrow_mut().mappings {
                    if mapping.address == address {
                        (mapping.address, mapping.bytes) = (result, bytes);
                    }
                }
                return Err(HARMLESS);
            }
            _ => {}
        }
        let (address, bytes) = (number(0)?, number(1)?);
        let files = files.borrow();
        let inside = |mapping: &&Mapping| {
            let skipped = address.checked_sub(mapping.address);
            skipped.is_some_and(|skipped| skipped < mapping.bytes)
        };
        let mapping = files.mappings.iter().find(inside).ok_or(UNMAPPED)?;
        let skipped = address.saturating_sub(mapping.address);
        let flags = asked.args.number(2, MMAP).unwrap_or(0);
        let range = Range {
            offset: mapping.offset.saturating_add(skipped),
            bytes,
        };
        let call = FileCall::Msync(range, u32::try_from(flags).unwrap_or(0));
        Ok(Some(Call::Of(mapping.file.id, call)))
    }

    fn maps(&mut self, asked: &Asked<'_>, address: u64) -> Made {
        let number = |n| asked.args.plain(n).ok_or(NOT_READ);
        let protection = asked.args.number(2, MMAP).ok_or(NOT_READ)?;
        let shared = asked.args.number(3, MMAP).ok_or(NOT_READ)? & MAP_TYPE != MAP_PRIVATE;
        if asked.args.descriptor(4).is_none() {
            return Err(HARMLESS);
        }
        let writable = shared && protection & PROT_WRITE != 0;
        let file = self.file(asked, 4);
        let file = file.map_err(|why| if writable { why } else { HARMLESS })?;
        if !shared {
            return Err(HARMLESS);
        }
        let mapping = Mapping {
            address,
            bytes: number(1)?,
            file,
            offset: number(5)?,
        };
        let files = Rc::clone(&self.task(asked.thread).files);
        files.borrow_mut().mappings.push(mapping);
        Err(if writable { STORES } else { HARMLESS })
    }
}
