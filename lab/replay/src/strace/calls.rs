// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns strace's calls into operations.

use std::collections::HashMap;
use std::rc::Rc;

use super::StraceSettings;
use super::args::{Args, Described, Folder};
use super::names::{self, Sort};
use super::tasks::{Files, Leads, OpenFile, Task};
use crate::Name;
use crate::operation::{Call, FileCall, FileId, Operation, Target};
use crate::table::Recorded;

/// The reasons why calls are left out.
pub(super) const NO_PATH: &str =
    "strace cut its path off, or the folder from which it counts is not known";
pub(super) const NOT_READ: &str = "its arguments are not understood";
pub(super) const NO_FILE: &str =
    "it is not known which file its descriptor leads to; strace -y would show it";
pub(super) const NAMELESS: &str = "its file had no name any more when it was first seen";
pub(super) const HARMLESS: &str = "it changes no file";
pub(super) const OUTSIDE: &str = "it is on something outside of the replayed folder";
const NO_RETURN: &str = "it had not returned when the trace ended, or was begun again";
const INJECTED: &str = "strace injected its result";
const UNKNOWN: &str = "it is not known what this call does";

/// With more threads, which no replay makes, files are not searched among those of the others.
const TASKS_MAX: usize = 4096;

/// A call, its arguments and its result.
pub(super) struct Asked<'t> {
    pub thread: u32,
    /// Its name on 64-bit machines.
    pub name: &'t str,
    pub args: Args<'t>,
    /// The returned value, as strace writes it.
    pub value: &'t str,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// A path on the recorded machine.
pub(super) enum Scope {
    /// A path within the replayed folder, relative to it.
    Inside(Name),
    Outside,
    Unknown,
}

/// What stat reported about a file.
#[derive(Clone, Copy)]
pub(super) struct Status {
    pub i_mode: u32,
    pub size: u64,
}

/// Why a call makes no operation.
pub(super) type Why = &'static str;

/// The operation of a call; None if the operations that it makes were added already.
pub(super) type Made = Result<Option<Call>, Why>;

pub(super) struct Reader<'s> {
    settings: &'s StraceSettings,
    pub(super) tasks: HashMap<u32, Task>,
    pub(super) recorded: Recorded,
    pub(super) files: u64,
    /// The latest result of stat for each path on the recorded machine.
    pub(super) seen: HashMap<Name, Status>,
    /// True if a path may have changed since its file was opened.
    pub(super) renamed: bool,
}

impl<'s> Reader<'s> {
    pub fn new(settings: &'s StraceSettings) -> Reader<'s> {
        Reader {
            settings,
            tasks: HashMap::new(),
            recorded: Recorded::default(),
            files: 0,
            seen: HashMap::new(),
            renamed: false,
        }
    }

    pub fn exited(&mut self, thread: u32) {
        self.tasks.remove(&thread);
    }

    /// A thread executed a program, and has the number of its process from now on.
    pub fn superseded(&mut self, process: u32, by: u32) {
        if let Some(task) = self.tasks.remove(&by) {
            self.tasks.insert(process, task);
        }
    }

    /// Returns the operations in the order in which they began.
    pub fn finish(mut self) -> Recorded {
        let operations = &mut self.recorded.operations;
        operations.sort_by_key(|operation| operation.begin_ns);
        self.recorded
    }

    /// Takes a call that did not return, as those do not that end the thread or its process.
    pub fn unreturned(&mut self, thread: u32, name: &str) {
        match name {
            "exit" => self.exited(thread),
            "exit_group" => {
                let process = self.task(thread).process;
                self.tasks.retain(|_, task| task.process != process);
            }
            _ => {}
        }
        let harmless = matches!(
            names::sort(names::plain(name)),
            Sort::Harmless | Sort::Makes
        );
        self.left_out(if harmless { HARMLESS } else { NO_RETURN });
    }

    /// Takes a call that returned.
    pub fn call(&mut self, asked: &Asked<'_>) {
        let Some(result) = super::errno::result(asked.value) else {
            return self.unreturned(asked.thread, asked.name);
        };
        let made = match asked.value.contains("(INJECTED)") {
            true => Err(INJECTED),
            false => self.made(asked, result),
        };
        match made {
            Ok(Some(call)) => self.push(asked, call, result),
            Ok(None) => {}
            Err(why) => self.left_out(why),
        }
    }

    fn made(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        match asked.name {
            "clone" | "clone3" | "fork" | "vfork" => self.cloned(asked, result),
            "unshare" => self.unshared(asked, result),
            "execve" | "execveat" => self.executed(asked, result),
            "chdir" | "fchdir" | "getcwd" => self.moved(asked, result),
            "fstat" | "stat" | "lstat" | "newfstatat" | "statx" => self.status(asked, result),
            "dup" | "dup2" | "dup3" | "fcntl" => self.duplicated(asked, result),
            "close" | "close_range" => self.closed(asked, result),
            "lseek" | "read" | "readv" | "pread64" | "preadv" | "preadv2" => {
                self.positioned(asked, result)
            }
            "mmap" | "munmap" | "mremap" | "msync" => self.mapped(asked, result),
            "open" | "openat" | "openat2" | "creat" => self.opened(asked, result),
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => self.written(asked, result),
            "copy_file_range" | "sendfile" | "splice" => self.copied(asked, result),
            "ioctl" => self.controlled(asked, result),
            name => match names::sort(name) {
                Sort::Harmless => Err(HARMLESS),
                Sort::Makes => self.made_elsewhere(asked, result),
                Sort::Missing(_) if result < 0 || is_harmless(asked) => Err(HARMLESS),
                Sort::Missing(why) => Err(why),
                Sort::Unknown => self.other(asked, result)?.map(Some).ok_or(UNKNOWN),
            },
        }
    }

    pub(super) fn push(&mut self, asked: &Asked<'_>, call: Call, result: i64) {
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

    pub(super) fn left_out(&mut self, why: Why) {
        self.recorded.leave_out(why, 1);
    }

    pub(super) fn task(&mut self, thread: u32) -> &mut Task {
        let folder = &self.settings.folder;
        let task = self.tasks.entry(thread);
        task.or_insert_with(|| Task::new(thread, folder.clone()))
    }

    /// Returns the absolute path of an argument on the recorded machine; `folder` is the argument relative to which it counts.
    pub(super) fn absolute(
        &mut self,
        asked: &Asked<'_>,
        folder: Option<usize>,
        path: usize,
    ) -> Option<Name> {
        let path = asked.args.string(path)?;
        if let Some(file) = self.file_of_link(asked, &path) {
            return file.path.clone();
        }
        if path.starts_with(b"/") {
            return Name::new(&path);
        }
        let task = self.task(asked.thread);
        let base = match folder.map(|n| asked.args.folder(n)) {
            Some(Folder::Current(Some(base)) | Folder::Descriptor(_, Some(base))) => {
                Name::new(&base)
            }
            Some(Folder::Descriptor(number, None)) => {
                let file = task.files.borrow().file(number);
                file.and_then(|file| file.path.clone())
            }
            Some(Folder::Unknown) => None,
            Some(Folder::Current(None)) | None => task.folder.borrow().clone(),
        };
        Name::new(&[base?.as_bytes(), b"/", &path].concat())
    }

    /// Returns the open file to which a path such as `/proc/self/fd/3` leads.
    pub(super) fn file_of_link(&mut self, asked: &Asked<'_>, path: &[u8]) -> Option<Rc<OpenFile>> {
        let path = std::str::from_utf8(path).ok()?;
        let (owner, number) = match path.strip_prefix("/dev/fd/") {
            Some(number) => ("self", number),
            None => path.strip_prefix("/proc/")?.split_once("/fd/")?,
        };
        let number: u32 = number.parse().ok()?;
        let own = Rc::clone(&self.task(asked.thread).files);
        let files = match owner {
            "self" | "thread-self" => own,
            pid => Rc::clone(&self.tasks.get(&pid.parse().ok()?)?.files),
        };
        let open = files.borrow();
        open.file(number)
    }

    pub(super) fn place(&self, path: Option<&Name>) -> Scope {
        match path {
            Some(path) => path
                .below(&self.settings.root)
                .map_or(Scope::Outside, Scope::Inside),
            None => Scope::Unknown,
        }
    }

    /// Returns a path argument relative to the replay's folder.
    pub(super) fn path(
        &mut self,
        asked: &Asked<'_>,
        folder: Option<usize>,
        path: usize,
    ) -> Result<Name, Why> {
        let path = self.absolute(asked, folder, path);
        match self.place(path.as_ref()) {
            Scope::Inside(path) => Ok(path),
            Scope::Outside => Err(OUTSIDE),
            Scope::Unknown => Err(NO_PATH),
        }
    }

    /// Returns the path of argument `at`; if that is not the first one, the first one is its folder.
    pub(super) fn path_at(&mut self, asked: &Asked<'_>, at: usize) -> Result<Name, Why> {
        self.path(asked, (at > 0).then_some(0), at)
    }

    /// Returns what the path of argument `at` names, which may be an open file: with an empty path, or by its link in /proc.
    pub(super) fn named(&mut self, asked: &Asked<'_>, at: usize) -> Result<Target, Why> {
        let path = asked.args.string(at);
        let succeeded = super::errno::result(asked.value).is_some_and(|result| result >= 0);
        if let Some(path) = path.filter(|_| succeeded) {
            if path.is_empty() && at > 0 {
                return Ok(Target::File(self.file(asked, at.saturating_sub(1))?.id));
            }
            if let Some(file) = self.file_of_link(asked, &path) {
                return Ok(Target::File(file.id));
            }
        }
        self.path_at(asked, at).map(Target::Path)
    }

    /// Returns the open file of a descriptor. One that was opened before the recording, or by calls that were not recorded, is known
    /// from the output of `strace -y`.
    pub(super) fn file(&mut self, asked: &Asked<'_>, n: usize) -> Result<Rc<OpenFile>, Why> {
        let (number, described) = asked.args.descriptor(n).ok_or(OUTSIDE)?;
        let files = Rc::clone(&self.task(asked.thread).files);
        let known = files.borrow().get(number);
        let path = match &described {
            Described::Not => {
                return match known {
                    Some(Leads::To(file)) => Ok(file),
                    Some(Leads::Elsewhere) => Err(OUTSIDE),
                    None => Err(NO_FILE),
                };
            }
            Described::Other => None,
            Described::Path(path) | Described::Nameless(path) => Name::new(path),
        };
        let Scope::Inside(name) = self.place(path.as_ref()) else {
            files.borrow_mut().set(number, Leads::Elsewhere, false);
            return Err(OUTSIDE);
        };
        let named = matches!(described, Described::Path(_));
        let path = path.filter(|_| named);
        let is_it = |file: &OpenFile| self.renamed || !named || file.path == path;
        if let Some(Leads::To(file)) = known
            && is_it(&file)
        {
            return Ok(file);
        }
        if let Some(file) = self.elsewhere_open(number, path.as_ref()) {
            files
                .borrow_mut()
                .set(number, Leads::To(Rc::clone(&file)), false);
            return Ok(file);
        }
        let path = path.ok_or(NAMELESS)?;
        let file = self.new_file(Some(path), 0, None);
        let opened = self.opening(&file, Some(name), 0o2, 0, false);
        let at_once = Asked {
            args: Args::split(""),
            end_ns: asked.begin_ns,
            ..*asked
        };
        self.push(&at_once, Call::Opened(opened), 0);
        files
            .borrow_mut()
            .set(number, Leads::To(Rc::clone(&file)), false);
        Ok(file)
    }

    /// Returns the one open file that other processes have by this number and under this path. A thread whose beginning was not
    /// recorded shares it with them.
    fn elsewhere_open(&self, number: u32, path: Option<&Name>) -> Option<Rc<OpenFile>> {
        if self.tasks.len() > TASKS_MAX {
            return None;
        }
        let files = self.tasks.values().map(|task| &task.files);
        let found = files.filter_map(|files| files.try_borrow().ok()?.file(number));
        let mut found = found.filter(|file| file.path.as_ref() == path);
        let first = found.next()?;
        found
            .all(|other| Rc::ptr_eq(&first, &other))
            .then_some(first)
    }

    /// Returns the open file of the first argument.
    pub(super) fn id(&mut self, asked: &Asked<'_>) -> Result<FileId, Why> {
        Ok(self.file(asked, 0)?.id)
    }

    /// Closes a descriptor.
    pub(super) fn close(
        &mut self,
        asked: &Asked<'_>,
        files: &std::cell::RefCell<Files>,
        number: u32,
    ) -> bool {
        let closed = files.borrow_mut().close(number);
        let is_last = closed.is_some();
        if let Some(file) = closed {
            self.push(asked, Call::Of(file.id, FileCall::Close), 0);
        }
        is_last
    }
}

/// Returns true if a call that cannot be replayed changes nothing: it submits no requests, or makes no file.
fn is_harmless(asked: &Asked<'_>) -> bool {
    match asked.name {
        "io_uring_enter" | "io_submit" => asked.args.plain(1) == Some(0),
        "bind" => !asked.args.text(1).contains("sun_path=\""),
        _ => false,
    }
}
