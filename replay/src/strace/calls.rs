// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns strace's calls into operations.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::StraceSettings;
use super::args::{Args, Folder, descriptor, field, number};
use super::errno;
use super::tasks::{Mapping, OpenFile, Task};
use crate::Name;
use crate::operation::{Call, FileId, Opened, Operation, Range, Target};
use crate::table::Recorded;
use crate::words::{AT, CLONE, FADVISE, FALLOCATE, MMAP, MODE, OPEN, RENAME, SYNC_RANGE, XATTR};

const O_TRUNC: u64 = 0o1000;
const O_APPEND: u64 = 0o2000;
const AT_REMOVEDIR: u64 = 0x200;

/// The reasons why calls are left out.
const NO_PATH: &str = "strace cut its path off, or the folder from which it counts is not known";
const STORES: &str = "strace sees no stores to this mapping";
const NOT_READ: &str = "its arguments are not understood";

/// A call, its arguments and its result.
pub(super) struct Asked<'t> {
    pub thread: u32,
    pub name: &'t str,
    pub args: Args<'t>,
    /// The returned value, as strace writes it.
    pub value: &'t str,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// A path on the recorded machine.
enum Place {
    /// A path within the replayed folder, relative to it.
    Inside(Name),
    Outside,
    Unknown,
}

/// What stat reported about a file.
#[derive(Clone, Copy)]
struct Status {
    i_mode: u32,
    size: u64,
}

/// The reason why a call makes no operation.
enum Skip {
    /// The call concerns nothing in the replayed folder.
    Outside,
    /// The call is left out for this reason, and counted.
    LeftOut(&'static str),
}

type Made = Result<Option<Call>, Skip>;

pub(super) struct Reader<'s> {
    settings: &'s StraceSettings,
    tasks: HashMap<u32, Task>,
    recorded: Recorded,
    files: u64,
    /// The latest result of stat for each path on the recorded machine.
    seen: HashMap<Name, Status>,
}

impl<'s> Reader<'s> {
    pub fn new(settings: &'s StraceSettings) -> Reader<'s> {
        Reader {
            settings,
            tasks: HashMap::new(),
            recorded: Recorded::default(),
            files: 0,
            seen: HashMap::new(),
        }
    }

    pub fn exited(&mut self, thread: u32) {
        self.tasks.remove(&thread);
    }

    /// Returns the operations in the order in which they began.
    pub fn finish(mut self) -> Recorded {
        let operations = &mut self.recorded.operations;
        operations.sort_by_key(|operation| operation.begin_ns);
        self.recorded
    }

    /// Takes a call that returned.
    pub fn call(&mut self, asked: &Asked<'_>) {
        let Some(result) = errno::result(asked.value) else {
            return;
        };
        let made = match asked.name {
            "clone" | "clone3" | "fork" | "vfork" => self.cloned(asked, result),
            "chdir" | "fchdir" | "getcwd" => self.moved(asked, result),
            "fstat" | "stat" | "lstat" | "newfstatat" | "statx" => self.status(asked, result),
            "dup" | "dup2" | "dup3" | "fcntl" => self.duplicated(asked, result),
            "close" | "close_range" => self.closed(asked, result),
            "lseek" | "read" | "readv" | "pread64" => self.positioned(asked, result),
            "mmap" | "munmap" | "msync" => self.mapped(asked, result),
            "open" | "openat" | "openat2" | "creat" => self.opened(asked, result),
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => self.written(asked, result),
            "copy_file_range" | "sendfile" | "splice" => self.copied(asked, result),
            _ => self.other(asked),
        };
        match made {
            Ok(Some(call)) => self.push(asked, call, result),
            Ok(None) | Err(Skip::Outside) => {}
            Err(Skip::LeftOut(why)) => self.left_out(why),
        }
    }

    fn push(&mut self, asked: &Asked<'_>, call: Call, result: i64) {
        let process = self.task(asked.thread).process;
        self.recorded.operations.push(Operation {
            thread: asked.thread,
            process,
            begin_ns: asked.begin_ns,
            end_ns: asked.end_ns.max(asked.begin_ns),
            // A descriptor's number means nothing in a replay.
            result: match call {
                Call::Open(_) | Call::Opened(_) => result.min(0),
                _ => result,
            },
            call,
        });
    }

    fn left_out(&mut self, why: &'static str) {
        let count = self.recorded.left_out.entry(why).or_default();
        *count = count.saturating_add(1);
    }

    fn task(&mut self, thread: u32) -> &mut Task {
        let folder = &self.settings.folder;
        let task = self.tasks.entry(thread);
        task.or_insert_with(|| Task::new(thread, folder.clone()))
    }

    /// Returns the absolute path of an argument on the recorded machine; `folder` is the argument relative to which it counts.
    fn absolute(&mut self, asked: &Asked<'_>, folder: Option<usize>, path: usize) -> Option<Name> {
        let path = asked.args.string(path)?;
        if path.starts_with(b"/") {
            return Name::new(&path);
        }
        let task = self.task(asked.thread);
        let base = match folder.map(|n| asked.args.folder(n)) {
            Some(Folder::Current(Some(base)) | Folder::Descriptor(_, Some(base))) => {
                Name::new(&base)
            }
            Some(Folder::Descriptor(number, None)) => task
                .files
                .borrow()
                .get(number)
                .map(|file| file.path.clone()),
            Some(Folder::Unknown) => None,
            Some(Folder::Current(None)) | None => task.folder.borrow().clone(),
        };
        Name::new(&[base?.as_bytes(), b"/", &path].concat())
    }

    fn place(&self, path: Option<&Name>) -> Place {
        match path {
            Some(path) => path
                .below(&self.settings.root)
                .map_or(Place::Outside, Place::Inside),
            None => Place::Unknown,
        }
    }

    /// Returns a path argument relative to the replay's folder.
    fn path(
        &mut self,
        asked: &Asked<'_>,
        folder: Option<usize>,
        path: usize,
    ) -> Result<Name, Skip> {
        let path = self.absolute(asked, folder, path);
        match self.place(path.as_ref()) {
            Place::Inside(path) => Ok(path),
            Place::Outside => Err(Skip::Outside),
            Place::Unknown => Err(Skip::LeftOut(NO_PATH)),
        }
    }

    /// Returns the open file of a descriptor. A descriptor that was opened before the recording is known from the output of `strace
    /// -y`.
    fn file(&mut self, asked: &Asked<'_>, n: usize) -> Result<Rc<OpenFile>, Skip> {
        let (number, path) = asked.args.descriptor(n).ok_or(Skip::Outside)?;
        let files = Rc::clone(&self.task(asked.thread).files);
        if let Some(file) = files.borrow().get(number) {
            return Ok(file);
        }
        let path = path
            .and_then(|path| Name::new(&path))
            .ok_or(Skip::Outside)?;
        let Place::Inside(name) = self.place(Some(&path)) else {
            return Err(Skip::Outside);
        };
        let file = self.new_file(path, 0, None);
        let opened = self.opening(&file, Some(name), 0o2, 0, false);
        let at_once = Asked {
            args: Args::split(""),
            end_ns: asked.begin_ns,
            ..*asked
        };
        self.push(&at_once, Call::Opened(opened), 0);
        files.borrow_mut().set(number, Some(Rc::clone(&file)));
        Ok(file)
    }

    fn new_file(&mut self, path: Name, flags: u64, position: Option<u64>) -> Rc<OpenFile> {
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

    fn opening(
        &self,
        file: &OpenFile,
        name: Option<Name>,
        flags: u32,
        mode: u32,
        failed: bool,
    ) -> Opened {
        let seen = self.seen.get(&file.path).filter(|_| !file.changed.get());
        Opened {
            file: (!failed).then_some(file.id),
            path: name,
            flags,
            mode,
            i_mode: seen.map_or(0, |status| status.i_mode),
            size: seen.map(|status| status.size),
            created: false,
            inode: (0, 0),
        }
    }

    fn opened(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let (folder, path) = if asked.name.starts_with("openat") {
            (Some(0), 1)
        } else {
            (None, 0)
        };
        let how = asked.args.text(2);
        let numbered = |text: &str, words| Args::split(text).number(0, words);
        let (flags, mode) = match asked.name {
            "creat" => (Some(0o1101), asked.args.plain(1)),
            "openat2" => (
                field(how, "flags").and_then(|text| numbered(text, OPEN)),
                field(how, "mode").and_then(|text| numbered(text, MODE)),
            ),
            _ => (
                asked.args.number(path + 1, OPEN),
                asked.args.number(path + 2, MODE),
            ),
        };
        let flags = flags.ok_or(Skip::LeftOut(NOT_READ))?;
        // strace -y shows what was opened, whatever links led there.
        let found = descriptor(asked.value).and_then(|(_, path)| Name::new(&path?));
        let path = match found {
            Some(path) => Some(path),
            None => self.absolute(asked, folder, path),
        };
        let descriptor = u32::try_from(result).ok();
        let files = Rc::clone(&self.task(asked.thread).files);
        let name = match self.place(path.as_ref()) {
            Place::Inside(name) => name,
            other => {
                if let Some(descriptor) = descriptor {
                    files.borrow_mut().set(descriptor, None);
                }
                let unknown = matches!(other, Place::Unknown);
                return Err(if unknown {
                    Skip::LeftOut(NO_PATH)
                } else {
                    Skip::Outside
                });
            }
        };
        let file = self.new_file(path.unwrap_or(name.clone()), flags, Some(0));
        let low = |value: u64| u32::try_from(value).unwrap_or_default();
        let opened = self.opening(
            &file,
            Some(name),
            low(flags),
            low(mode.unwrap_or(0)),
            descriptor.is_none(),
        );
        if let Some(descriptor) = descriptor {
            files.borrow_mut().set(descriptor, Some(file));
        }
        Ok(Some(Call::Open(opened)))
    }

    fn closed(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        if result < 0 {
            return Ok(None);
        }
        let files = Rc::clone(&self.task(asked.thread).files);
        let descriptors = match asked.name {
            "close" => asked
                .args
                .descriptor(0)
                .map(|(number, _)| number)
                .into_iter()
                .collect(),
            _ => {
                let bound = |n| {
                    asked
                        .args
                        .plain(n)
                        .map(|fd| u32::try_from(fd).unwrap_or(u32::MAX))
                };
                match (bound(0), bound(1)) {
                    (Some(first), Some(last)) => files.borrow().between(first, last),
                    _ => Vec::new(),
                }
            }
        };
        for descriptor in descriptors {
            let closed = files.borrow_mut().close(descriptor);
            if let Some(file) = closed {
                self.push(asked, Call::Close { file: file.id }, 0);
            }
        }
        Ok(None)
    }

    fn duplicated(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let duplicates = asked.name != "fcntl" || asked.args.text(1).starts_with("F_DUPFD");
        let (Ok(new), true) = (u32::try_from(result), duplicates) else {
            return Ok(None);
        };
        let file = self.file(asked, 0).ok();
        let files = Rc::clone(&self.task(asked.thread).files);
        let same = file
            .as_ref()
            .zip(files.borrow().get(new))
            .is_some_and(|(a, b)| Rc::ptr_eq(a, &b));
        if !same {
            let replaced = files.borrow_mut().close(new);
            if let Some(replaced) = replaced {
                self.push(asked, Call::Close { file: replaced.id }, 0);
            }
            files.borrow_mut().set(new, file);
        }
        Ok(None)
    }

    fn cloned(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let Ok(child) = u32::try_from(result) else {
            return Ok(None);
        };
        // clone3 has the flags in a structure, clone as `flags=…`.
        let texts = (0..4).map(|n| asked.args.text(n));
        let flags = texts.filter_map(|text| {
            let text = field(text, "flags").or_else(|| text.strip_prefix("flags="))?;
            Args::split(text).number(0, CLONE)
        });
        let flags = flags.fold(0, |all, flags| all | flags);
        let made = self.task(asked.thread).child(child, flags);
        // A line of the child may precede the call's return.
        if child != 0 {
            self.tasks.entry(child).or_insert(made);
        }
        Ok(None)
    }

    fn moved(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        if result < 0 {
            return Ok(None);
        }
        let folder = match asked.name {
            "fchdir" => {
                let (number, path) = asked.args.descriptor(0).ok_or(Skip::Outside)?;
                let known = self.task(asked.thread).files.borrow().get(number);
                let known = known.map(|file| file.path.clone());
                known.or_else(|| Name::new(&path?))
            }
            _ => self.absolute(asked, None, 0),
        };
        *self.task(asked.thread).folder.borrow_mut() = folder;
        Ok(None)
    }

    /// Takes the size and the kind of a file, which an open does not show.
    fn status(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let (n, mode, size) = match asked.name {
            "statx" => (4, "stx_mode", "stx_size"),
            "newfstatat" => (2, "st_mode", "st_size"),
            _ => (1, "st_mode", "st_size"),
        };
        let told = asked.args.text(n);
        let i_mode = field(told, mode).and_then(|text| Args::split(text).number(0, MODE));
        let (Some(i_mode), 0) = (i_mode.and_then(|mode| u32::try_from(mode).ok()), result) else {
            return Ok(None);
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
            return Ok(None);
        }
        let file = self.file(asked, 0)?;
        if let Some(Call::Open(opened) | Call::Opened(opened)) = self.opening_of(&file) {
            opened.i_mode = i_mode;
            if !file.changed.get() {
                opened.size = Some(size);
            }
        }
        Ok(None)
    }

    fn opening_of(&mut self, file: &OpenFile) -> Option<&mut Call> {
        let operation = self.recorded.operations.get_mut(file.opened_by)?;
        Some(&mut operation.call)
    }

    /// Tracks the position of an open file. What was read existed when the file was opened, unless it was changed.
    fn positioned(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let file = self.file(asked, 0)?;
        let Ok(value) = u64::try_from(result) else {
            return Ok(None);
        };
        let end = match asked.name {
            "lseek" => {
                file.position.set(Some(value));
                return Ok(None);
            }
            "pread64" => asked.args.plain(3).and_then(|at| at.checked_add(value)),
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
        Ok(None)
    }

    fn written(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let file = self.file(asked, 0)?;
        let written = u64::try_from(result).unwrap_or(0);
        let given = match asked.name {
            "pwrite64" | "pwritev" | "pwritev2" => {
                Some(asked.args.plain(3).ok_or(Skip::LeftOut(NOT_READ))?)
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
        Ok(Some(Call::Write {
            file: file.id,
            offset,
            bytes: asked_for.unwrap_or(written),
        }))
    }

    fn copied(&mut self, asked: &Asked<'_>, result: i64) -> Made {
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
        Ok(Some(Call::Copy {
            from: source.map(|file| file.id),
            from_offset,
            to: target.id,
            offset,
            bytes: asked.args.plain(length).unwrap_or(moved),
        }))
    }

    fn mapped(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        if result < 0 {
            return Ok(None);
        }
        let number = |n| asked.args.plain(n).ok_or(Skip::LeftOut(NOT_READ));
        if asked.name == "mmap" {
            let shared = asked.args.text(3).contains("MAP_SHARED");
            let file = self.file(asked, 4)?;
            if !shared {
                return Ok(None);
            }
            let mapping = Mapping {
                address: u64::try_from(result).unwrap_or(0),
                bytes: number(1)?,
                file,
                offset: number(5)?,
            };
            self.task(asked.thread)
                .files
                .borrow_mut()
                .mappings
                .push(mapping);
            let writable = asked
                .args
                .number(2, MMAP)
                .is_some_and(|protection| protection & 2 != 0);
            return if writable {
                Err(Skip::LeftOut(STORES))
            } else {
                Ok(None)
            };
        }
        let (address, bytes) = (number(0)?, number(1)?);
        let files = Rc::clone(&self.task(asked.thread).files);
        if asked.name == "munmap" {
            files
                .borrow_mut()
                .mappings
                .retain(|mapping| mapping.address != address);
            return Ok(None);
        }
        let files = files.borrow();
        let inside = |mapping: &&Mapping| {
            address
                .checked_sub(mapping.address)
                .is_some_and(|skipped| skipped < mapping.bytes)
        };
        let mapping = files.mappings.iter().find(inside).ok_or(Skip::Outside)?;
        let skipped = address.saturating_sub(mapping.address);
        let flags = asked.args.number(2, MMAP).unwrap_or(0);
        Ok(Some(Call::Msync {
            file: mapping.file.id,
            range: Range {
                offset: mapping.offset.saturating_add(skipped),
                bytes,
            },
            flags: u32::try_from(flags).unwrap_or(0),
        }))
    }

    /// Takes the calls that change neither a descriptor nor a position.
    fn other(&mut self, asked: &Asked<'_>) -> Made {
        let args = &asked.args;
        let wide = |n, words| args.number(n, words).ok_or(Skip::LeftOut(NOT_READ));
        let flags = |n, words| wide(n, words).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let optional = |n, words| {
            args.number(n, words)
                .and_then(|value| u32::try_from(value).ok())
                .unwrap_or(0)
        };
        // -1 leaves a user or a group as it is.
        let owner = |n| {
            let id = args.plain(n).and_then(|id| u32::try_from(id).ok());
            id.unwrap_or(u32::MAX)
        };
        let range = |offset, bytes| -> Result<Range, Skip> {
            Ok(Range {
                offset: wide(offset, &[])?,
                bytes: wide(bytes, &[])?,
            })
        };
        // The first argument of mkdirat and its like is the folder from which the path counts.
        let at = usize::from(asked.name.trim_end_matches('2').ends_with("at"));
        let call = match asked.name {
            "fsync" => Call::Fsync {
                file: self.id(asked)?,
            },
            "fdatasync" => Call::Fdatasync {
                file: self.id(asked)?,
            },
            "sync" => Call::Sync,
            "syncfs" => Call::Syncfs {
                file: self.id(asked)?,
            },
            "sync_file_range" => Call::SyncRange {
                file: self.id(asked)?,
                range: range(1, 2)?,
                flags: flags(3, SYNC_RANGE)?,
            },
            "fadvise64" => Call::Fadvise {
                file: self.id(asked)?,
                range: range(1, 2)?,
                advice: flags(3, FADVISE)?,
            },
            "fallocate" => Call::Fallocate {
                file: self.id(asked)?,
                mode: flags(1, FALLOCATE)?,
                range: range(2, 3)?,
            },
            "truncate" | "ftruncate" => {
                if at_file(asked.name, at) {
                    self.file(asked, 0)?.changed.set(true);
                }
                Call::Truncate {
                    target: self.target(asked, at)?,
                    length: wide(1, &[])?,
                }
            }
            "rename" | "renameat" | "renameat2" => {
                let [from, to] = self.both(asked, at)?;
                let flags = optional(4, RENAME);
                Call::Rename { from, to, flags }
            }
            "link" | "linkat" => {
                let [from, to] = self.both(asked, at)?;
                Call::Link { from, to }
            }
            "symlink" | "symlinkat" => Call::Symlink {
                target: args.string(0).ok_or(Skip::LeftOut(NO_PATH))?,
                path: self.path(asked, (at > 0).then_some(1), at + 1)?,
            },
            "unlinkat" if wide(2, AT)? & AT_REMOVEDIR != 0 => Call::Rmdir {
                path: self.path_at(asked, at)?,
            },
            "unlink" | "unlinkat" => Call::Unlink {
                path: self.path_at(asked, at)?,
            },
            "rmdir" => Call::Rmdir {
                path: self.path_at(asked, at)?,
            },
            "mkdir" | "mkdirat" => Call::Mkdir {
                path: self.path_at(asked, at)?,
                mode: flags(at + 1, MODE)?,
            },
            "mknod" | "mknodat" => Call::Mknod {
                path: self.path_at(asked, at)?,
                mode: flags(at + 1, MODE)?,
            },
            "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => Call::Chmod {
                target: self.target(asked, at)?,
                mode: flags(at + 1, MODE)?,
            },
            "chown" | "lchown" | "fchown" | "fchownat" => Call::Chown {
                target: self.target(asked, at)?,
                uid: owner(at + 1),
                gid: owner(at + 2),
            },
            "utimensat" | "futimesat" if ["NULL", "\"\""].contains(&args.text(1)) => Call::Utimes {
                target: Target::File(self.id(asked)?),
            },
            "utime" | "utimes" | "utimensat" | "futimesat" => Call::Utimes {
                target: Target::Path(self.path_at(asked, at)?),
            },
            "setxattr" | "lsetxattr" | "fsetxattr" => Call::Setxattr {
                target: self.target(asked, at)?,
                name: args.string(1).ok_or(Skip::LeftOut(NOT_READ))?,
                bytes: wide(3, &[])?,
                flags: optional(4, XATTR),
            },
            "removexattr" | "lremovexattr" | "fremovexattr" => Call::Removexattr {
                target: self.target(asked, at)?,
                name: args.string(1).ok_or(Skip::LeftOut(NOT_READ))?,
            },
            "ioctl" if args.text(1).starts_with("FICLONE") && args.text(1) != "FICLONERANGE" => {
                let to = self.file(asked, 0)?.id;
                let from = self.file(asked, 2)?.id;
                Call::Clone {
                    from,
                    from_offset: 0,
                    to,
                    range: Range {
                        offset: 0,
                        bytes: 0,
                    },
                }
            }
            _ => return Err(Skip::Outside),
        };
        Ok(Some(call))
    }

    /// Returns the open file of the first argument.
    fn id(&mut self, asked: &Asked<'_>) -> Result<FileId, Skip> {
        Ok(self.file(asked, 0)?.id)
    }

    /// Returns the path of argument `at`; if that is not the first one, the first one is its folder.
    fn path_at(&mut self, asked: &Asked<'_>, at: usize) -> Result<Name, Skip> {
        self.path(asked, (at > 0).then_some(0), at)
    }

    /// Returns the two paths of a call, each behind its folder if `at` is 1.
    fn both(&mut self, asked: &Asked<'_>, at: usize) -> Result<[Name; 2], Skip> {
        let from = self.path_at(asked, at)?;
        let to = self.path(asked, (at > 0).then_some(2), 1 + 2 * at)?;
        Ok([from, to])
    }

    /// Returns what a call changes: the open file of its descriptor, or the file at its path.
    fn target(&mut self, asked: &Asked<'_>, at: usize) -> Result<Target, Skip> {
        match at_file(asked.name, at) {
            true => self.id(asked).map(Target::File),
            false => self.path_at(asked, at).map(Target::Path),
        }
    }
}

/// Returns true if a call such as fchmod names its file by a descriptor; fchmodat does not.
fn at_file(name: &str, at: usize) -> bool {
    at == 0 && name.starts_with('f')
}
