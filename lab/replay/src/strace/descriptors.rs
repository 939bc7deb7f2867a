// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls that open and close descriptors, and those that make threads and processes, which share them.

use std::cell::Cell;
use std::rc::Rc;

use super::args::{Args, Described, descriptor, field};
use super::calls::{
    Asked, HARMLESS, Made, NAMELESS, NO_PATH, NOT_READ, OUTSIDE, Reader, Scope, Why,
};
use super::tasks::{Leads, OpenFile};
use crate::Name;
use crate::flags::O_TMPFILE;
use crate::operation::{Call, FileId, Opened};
use crate::words::{CLONE, MODE, OPEN};

const O_TRUNC: u64 = 0o1000;
const O_APPEND: u64 = 0o2000;
const O_CLOEXEC: u64 = 0o2_000_000;

/// `<asm-generic/fcntl.h>`, `<linux/fcntl.h>`
const FCNTL: &[(&str, u64)] = &[
    ("F_DUPFD", 0),
    ("F_SETFD", 2),
    ("F_SETFL", 4),
    ("F_DUPFD_CLOEXEC", 1030),
];
const FD_CLOEXEC: &[(&str, u64)] = &[("FD_CLOEXEC", 1)];
const CLONE_FILES: u64 = 0x400;
/// `<linux/close_range.h>`
const CLOSE_RANGE_UNSHARE: u64 = 2;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
const CLOSE_RANGE: &[(&str, u64)] = &[
    ("CLOSE_RANGE_UNSHARE", CLOSE_RANGE_UNSHARE),
    ("CLOSE_RANGE_CLOEXEC", CLOSE_RANGE_CLOEXEC),
];
const FLAGS: &str = "a replay does not change the flags of an open file";

impl Reader<'_> {
    pub(super) fn new_file(
        &mut self,
        path: Option<Name>,
        flags: u64,
        position: Option<u64>,
    ) -> Rc<OpenFile> {
        self.files = self.files.saturating_add(1);
        Rc::new(OpenFile {
            id: FileId(self.files),
            path,
            opened_by: self.recorded.operations.len(),
            position: Cell::new(position),
            append: flags & O_APPEND != 0,
            changed: Cell::new(flags & O_TRUNC != 0),
        })
    }

    pub(super) fn opening(
        &self,
        file: &OpenFile,
        name: Option<Name>,
        flags: u32,
        mode: u32,
        failed: bool,
    ) -> Opened {
        let seen = file.path.as_ref().and_then(|path| self.seen.get(path));
        let seen = seen.filter(|_| !file.changed.get());
        Opened {
            file: (!failed).then_some(file.id),
            path: name,
            flags,
            mode,
            i_mode: seen.map_or(0, |status| status.i_mode),
            size: seen.map(|status| status.size),
            ..Opened::default()
        }
    }

    pub(super) fn opened(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let at = usize::from(asked.name.starts_with("openat"));
        let how = asked.args.text(2);
        let numbered = |text: &str, words| Args::split(text).number(0, words);
        let (flags, mode) = match asked.name {
            "creat" => (Some(0o1101), asked.args.plain(1)),
            "openat2" => (
                field(how, "flags").and_then(|text| numbered(text, OPEN)),
                field(how, "mode").and_then(|text| numbered(text, MODE)),
            ),
            _ => (
                asked.args.number(at + 1, OPEN),
                asked.args.number(at + 2, MODE),
            ),
        };
        let files = Rc::clone(&self.task(asked.thread).files);
        let number = u32::try_from(result).ok();
        let unknown = |why| {
            if let Some(number) = number {
                files.borrow_mut().forget(number);
            }
            Err(why)
        };
        let Some(flags) = flags else {
            return unknown(NOT_READ);
        };
        let named = self.absolute(asked, (at > 0).then_some(0), at);
        let temporary = flags & u64::from(O_TMPFILE) == u64::from(O_TMPFILE);
        // strace -y shows what was opened, whatever links led there; a file without a name is made in the folder that was named.
        let path = match descriptor(asked.value) {
            Some((_, Described::Path(found))) if !temporary => Name::new(&found),
            Some((_, Described::Nameless(_))) if !temporary => return unknown(NAMELESS),
            Some((_, Described::Other)) => return self.opened_elsewhere(asked, number, flags),
            _ => named,
        };
        let name = match self.place(path.as_ref()) {
            Scope::Inside(name) => name,
            Scope::Outside => return self.opened_elsewhere(asked, number, flags),
            Scope::Unknown => return unknown(NO_PATH),
        };
        let file = self.new_file(path.filter(|_| !temporary), flags, Some(0));
        let low = |value: u64| u32::try_from(value).unwrap_or_default();
        let (mode, failed) = (low(mode.unwrap_or(0)), number.is_none());
        let opened = self.opening(&file, Some(name), low(flags), mode, failed);
        if let Some(number) = number {
            // With a filter, strace may not show that the number became free.
            self.close(asked, &files, number);
            let (mut files, on_exec) = (files.borrow_mut(), flags & O_CLOEXEC != 0);
            files.set(number, Leads::To(file), on_exec);
        }
        Ok(Some(Call::Open(opened)))
    }

    fn opened_elsewhere(&mut self, asked: &Asked<'_>, number: Option<u32>, flags: u64) -> Made {
        if let Some(number) = number {
            let files = Rc::clone(&self.task(asked.thread).files);
            let mut files = files.borrow_mut();
            files.set(number, Leads::Elsewhere, flags & O_CLOEXEC != 0);
        }
        Err(OUTSIDE)
    }

    /// Takes a call that makes a socket, a pipe or the like.
    pub(super) fn made_elsewhere(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let both = match asked.name {
            "pipe" | "pipe2" => asked.args.text(0),
            "socketpair" => asked.args.text(3),
            _ => asked.value,
        };
        let inner = both
            .strip_prefix('[')
            .and_then(|both| both.strip_suffix(']'));
        let made = Args::split(inner.unwrap_or(both));
        let files = Rc::clone(&self.task(asked.thread).files);
        for (number, _) in (0..2)
            .filter_map(|n| made.descriptor(n))
            .filter(|_| result >= 0)
        {
            files.borrow_mut().set(number, Leads::Elsewhere, false);
        }
        Err(HARMLESS)
    }

    pub(super) fn closed(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        if result < 0 {
            return Err(HARMLESS);
        }
        if asked.name == "close_range" {
            return self.closed_range(asked);
        }
        let files = Rc::clone(&self.task(asked.thread).files);
        let number = asked.args.descriptor(0).map(|(number, _)| number);
        match number.is_some_and(|number| self.close(asked, &files, number)) {
            true => Ok(None),
            false => Err(HARMLESS),
        }
    }

    fn closed_range(&mut self, asked: &Asked<'_>) -> Made {
        let bound = |n| -> Result<u32, Why> {
            let number = asked.args.plain(n).ok_or(NOT_READ)?;
            Ok(u32::try_from(number).unwrap_or(u32::MAX))
        };
        let (first, last) = (bound(0)?, bound(1)?);
        let flags = asked.args.number(2, CLOSE_RANGE).ok_or(NOT_READ)?;
        let task = self.task(asked.thread);
        if flags & CLOSE_RANGE_UNSHARE != 0 {
            task.unshare(CLONE_FILES);
        }
        let files = Rc::clone(&task.files);
        let numbers = files.borrow().between(first, last);
        let mut made = Err(HARMLESS);
        for number in numbers {
            if flags & CLOSE_RANGE_CLOEXEC != 0 {
                files.borrow_mut().close_on_exec(number, true);
            } else if self.close(asked, &files, number) {
                made = Ok(None);
            }
        }
        made
    }

    pub(super) fn duplicated(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let command = match asked.name {
            "fcntl" => asked
                .args
                .number(1, FCNTL)
                .filter(|_| known_command(asked.args.text(1))),
            _ => Some(0),
        };
        let Ok(new) = u32::try_from(result) else {
            return Err(HARMLESS);
        };
        let files = Rc::clone(&self.task(asked.thread).files);
        let on_exec = match (asked.name, command) {
            ("fcntl", Some(1030)) => true,
            ("dup3", _) => asked
                .args
                .number(2, OPEN)
                .is_some_and(|flags| flags & O_CLOEXEC != 0),
            ("fcntl", Some(2)) => {
                let set = asked
                    .args
                    .number(2, FD_CLOEXEC)
                    .is_some_and(|flags| flags & 1 != 0);
                if let Some((number, _)) = asked.args.descriptor(0) {
                    files.borrow_mut().close_on_exec(number, set);
                }
                return Err(HARMLESS);
            }
            ("fcntl", Some(4)) => {
                return Err(self.file(asked, 0).map_or_else(|why| why, |_| FLAGS));
            }
            ("fcntl", Some(0)) | ("dup" | "dup2", _) => false,
            _ => return Err(HARMLESS),
        };
        let (mut made, old) = (Err(HARMLESS), asked.args.descriptor(0));
        if old.as_ref().is_some_and(|(old, _)| *old == new) {
            return made;
        }
        let leads = match self.file(asked, 0) {
            Ok(file) => Some(Leads::To(file)),
            Err(OUTSIDE) => Some(Leads::Elsewhere),
            Err(_) => None,
        };
        if self.close(asked, &files, new) {
            made = Ok(None);
        }
        let mut files = files.borrow_mut();
        match leads {
            Some(leads) => files.set(new, leads, on_exec),
            None => files.forget(new),
        }
        made
    }

    pub(super) fn cloned(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        if let Some(child) = u32::try_from(result).ok().filter(|child| *child != 0) {
            // clone3 has the flags in a structure, clone as `flags=…`.
            let texts = (0..4).map(|n| asked.args.text(n));
            let flags = texts.filter_map(|text| {
                // Behind the structure are the fields that the kernel changed.
                let text = text.split(" => ").next().unwrap_or_default();
                let text = field(text, "flags").or_else(|| text.strip_prefix("flags="))?;
                Args::split(text).number(0, CLONE)
            });
            let flags = flags.fold(0, |all, flags| all | flags);
            let made = self.task(asked.thread).child(child, flags);
            self.tasks.insert(child, made);
        }
        Err(HARMLESS)
    }

    pub(super) fn unshared(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let flags = asked.args.number(0, CLONE).ok_or(NOT_READ)?;
        if result >= 0 {
            self.task(asked.thread).unshare(flags);
        }
        Err(HARMLESS)
    }

    /// Takes the execution of a program: descriptors end, and mappings too.
    pub(super) fn executed(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        if result < 0 {
            return Err(HARMLESS);
        }
        let task = self.task(asked.thread);
        task.unshare(u64::MAX);
        let files = Rc::clone(&task.files);
        files.borrow_mut().mappings.clear();
        let ending = files.borrow().until_exec();
        for number in ending {
            self.close(asked, &files, number);
        }
        Err(HARMLESS)
    }

    pub(super) fn moved(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        if result < 0 {
            return Err(HARMLESS);
        }
        let folder = match asked.name {
            "fchdir" => {
                let (number, described) = asked.args.descriptor(0).ok_or(NOT_READ)?;
                match described {
                    Described::Path(path) => Name::new(&path),
                    _ => {
                        let file = self.task(asked.thread).files.borrow().file(number);
                        file.and_then(|file| file.path.clone())
                    }
                }
            }
            _ => self.absolute(asked, None, 0),
        };
        *self.task(asked.thread).folder.borrow_mut() = folder;
        Err(HARMLESS)
    }
}

/// Returns true for a number, or for a command that matters; the number of another one is not known.
fn known_command(text: &str) -> bool {
    let named = text.starts_with(|c: char| c.is_ascii_uppercase());
    !named || FCNTL.iter().any(|(name, _)| *name == text)
}
