// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs are run in one folder by an interpreter that records what they do, and replayed in another: each call
//! returns the same again, and the folders are the same.

use crate::common;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use common::{O_APPEND, O_CREAT, O_EXCL, O_RDWR, O_TRUNC, name, settings, tree};
use mostrace_replay::{
    Call, Change, FileCall, FileId, Opened, Operation, Range, Recorded, Start, Target, Unknown,
    replay,
};
use proptest::prelude::*;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, XattrFlags};
use rustix::io::{Errno, Result};

const PATHS: [&str; 9] = ["a", "b", "c", "a/a", "a/b", "b/a", "b/c", "a/b/c", "c/a"];

/// A step of a program; paths and open files are numbers.
#[derive(Clone, Debug)]
enum Step {
    Open(usize, u32),
    Close(usize),
    Read(usize, u64, u64),
    Write(usize, u64, u64),
    Append(usize, u64),
    Truncate(usize, u64),
    TruncateFile(usize, u64),
    Fallocate(usize, u32, u64, u64),
    Fsync(usize),
    Copy(usize, usize, u64, u64, u64),
    Rename(usize, usize, u32),
    /// The last one tells whether a symbolic link is followed.
    Link(usize, usize, bool),
    LinkFile(usize, usize),
    Symlink(usize, usize),
    Unlink(usize),
    Rmdir(usize),
    Mkdir(usize),
    Chmod(usize, u32),
    Utimes(usize),
    Setxattr(usize, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    let file = || 0..6usize;
    let at = || 0..20_000u64;
    let flags = prop_oneof![
        Just(0),
        Just(O_RDWR),
        Just(O_RDWR | O_CREAT),
        Just(O_RDWR | O_CREAT | O_EXCL),
        Just(O_RDWR | O_TRUNC),
        Just(O_RDWR | O_CREAT | O_TRUNC),
        Just(O_RDWR | O_CREAT | O_APPEND),
        Just(common::O_DIRECTORY),
    ];
    prop_oneof![
        6 => (path(), flags).prop_map(|(path, flags)| Step::Open(path, flags)),
        2 => file().prop_map(Step::Close),
        2 => (file(), at(), at()).prop_map(|(file, at, bytes)| Step::Read(file, at, bytes)),
        3 => (file(), at(), at()).prop_map(|(file, at, bytes)| Step::Write(file, at, bytes)),
        1 => (file(), at()).prop_map(|(file, bytes)| Step::Append(file, bytes)),
        1 => (path(), at()).prop_map(|(path, to)| Step::Truncate(path, to)),
        1 => (file(), at()).prop_map(|(file, to)| Step::TruncateFile(file, to)),
        1 => (file(), 0..4u32, at(), at()).prop_map(|(file, mode, at, bytes)| Step::Fallocate(file, mode, at, bytes)),
        1 => file().prop_map(Step::Fsync),
        1 => (file(), file(), at(), at(), at()).prop_map(|(from, to, a, b, bytes)| Step::Copy(from, to, a, b, bytes)),
        3 => (path(), path(), 0..3u32).prop_map(|(from, to, flags)| Step::Rename(from, to, flags)),
        1 => (path(), path(), any::<bool>()).prop_map(|(from, to, follow)| Step::Link(from, to, follow)),
        1 => (file(), path()).prop_map(|(file, to)| Step::LinkFile(file, to)),
        1 => (path(), path()).prop_map(|(target, path)| Step::Symlink(target, path)),
        2 => path().prop_map(Step::Unlink),
        1 => path().prop_map(Step::Rmdir),
        3 => path().prop_map(Step::Mkdir),
        1 => (path(), 0..0o1000u32).prop_map(|(path, mode)| Step::Chmod(path, mode | 0o700)),
        1 => path().prop_map(Step::Utimes),
        1 => (path(), 0..3000u64).prop_map(|(path, bytes)| Step::Setxattr(path, bytes)),
    ]
}

/// Runs steps one after the other, and records them as made by several threads.
struct Interpreter {
    root: PathBuf,
    open: HashMap<usize, (FileId, OwnedFd)>,
    files: u64,
    operations: Vec<Operation>,
    /// There were files before.
    has_before: bool,
}

fn returned(made: Result<usize>) -> i64 {
    match made {
        Ok(bytes) => bytes as i64,
        Err(errno) => -i64::from(errno.raw_os_error()),
    }
}

fn nothing(made: Result<()>) -> i64 {
    returned(made.map(|()| 0))
}

impl Interpreter {
    fn path(&self, path: usize) -> PathBuf {
        self.root.join(PATHS[path])
    }

    fn link(&self, from: PathBuf, to: usize, follow: bool) -> Result<()> {
        let mut flags = AtFlags::empty();
        flags.set(AtFlags::SYMLINK_FOLLOW, follow);
        rustix::fs::linkat(rustix::fs::CWD, from, rustix::fs::CWD, self.path(to), flags)
    }

    fn open(&mut self, path: &str, flags: u32) -> (Call, i64) {
        let native = OFlags::from_bits_retain(flags);
        let at = self.root.join(path);
        let existed = fs::metadata(&at).is_ok();
        let made = rustix::fs::open(&at, native, Mode::from_raw_mode(0o640));
        let mut opened = Opened {
            file: None,
            path: Some(name(path)),
            flags,
            mode: 0o640,
            i_mode: 0,
            size: None,
            created: false,
            inode: (0, 0),
        };
        let result = match made {
            Ok(fd) => {
                self.files += 1;
                let file = FileId(self.files);
                let look = rustix::fs::fstat(&fd).unwrap();
                opened.file = Some(file);
                opened.i_mode = look.st_mode;
                opened.size = Some(look.st_size as u64);
                opened.created = !existed;
                let slot = (self.files % 6) as usize;
                // The one before is closed without an operation, as by an exit that was not seen.
                self.open.insert(slot, (file, fd));
                0
            }
            Err(errno) => -i64::from(errno.raw_os_error()),
        };
        (Call::Open(opened), result)
    }

    fn step(&mut self, step: &Step) -> Option<(Call, i64)> {
        let bytes = vec![7; 20_000];
        let path = |path: usize| name(PATHS[path]);
        let target = |path: usize| Target::Path(name(PATHS[path]));
        Some(match *step {
            Step::Open(path, flags) => self.open(PATHS[path], flags),
            Step::Close(file) => {
                let (file, fd) = self.open.remove(&file)?;
                drop(fd);
                (Call::Of(file, FileCall::Close), 0)
            }
            Step::Read(file, at, count) => {
                let (file, fd) = self.open.get(&file)?;
                let mut buffer = vec![0; count as usize];
                let made = rustix::io::pread(fd, &mut buffer[..], at);
                let (file, offset) = (*file, Some(at));
                (
                    Call::Of(
                        file,
                        FileCall::Read {
                            offset,
                            bytes: count,
                        },
                    ),
                    returned(made),
                )
            }
            Step::Write(file, at, count) => {
                let (file, fd) = self.open.get(&file)?;
                let append = rustix::fs::fcntl_getfl(fd)
                    .unwrap()
                    .contains(OFlags::APPEND);
                let made = rustix::io::pwrite(fd, &bytes[..count as usize], at);
                let (file, offset) = (*file, (!append).then_some(at));
                (
                    Call::Of(
                        file,
                        FileCall::Write {
                            offset,
                            bytes: count,
                        },
                    ),
                    returned(made),
                )
            }
            Step::Append(file, count) => {
                let (file, fd) = self.open.get(&file)?;
                if !rustix::fs::fcntl_getfl(fd)
                    .unwrap()
                    .contains(OFlags::APPEND)
                {
                    return None;
                }
                let made = rustix::io::write(fd, &bytes[..count as usize]);
                let (file, offset) = (*file, None);
                (
                    Call::Of(
                        file,
                        FileCall::Write {
                            offset,
                            bytes: count,
                        },
                    ),
                    returned(made),
                )
            }
            Step::Truncate(at, length) => {
                let open = rustix::fs::open(self.path(at), OFlags::WRONLY, Mode::empty());
                let made = open.and_then(|fd| rustix::fs::ftruncate(fd, length));
                (
                    Call::Change(target(at), Change::Truncate(length)),
                    nothing(made),
                )
            }
            Step::TruncateFile(file, length) => {
                let (file, fd) = self.open.get(&file)?;
                let target = Target::File(*file);
                (
                    Call::Change(target, Change::Truncate(length)),
                    nothing(rustix::fs::ftruncate(fd, length)),
                )
            }
            Step::Fallocate(file, mode, offset, bytes) => {
                let (file, fd) = self.open.get(&file)?;
                let flags = FallocateFlags::from_bits_retain(mode);
                let made = rustix::fs::fallocate(fd, flags, offset, bytes);
                let range = Range { offset, bytes };
                (
                    Call::Of(*file, FileCall::Fallocate(range, mode)),
                    nothing(made),
                )
            }
            Step::Fsync(file) => {
                let (file, fd) = self.open.get(&file)?;
                (
                    Call::Of(*file, FileCall::Fsync),
                    nothing(rustix::fs::fsync(fd)),
                )
            }
            Step::Copy(from, to, from_at, at, bytes) => {
                let ((from, from_fd), (to, to_fd)) = (self.open.get(&from)?, self.open.get(&to)?);
                let (mut one, mut other) = (from_at, at);
                let made = rustix::fs::copy_file_range(
                    from_fd,
                    Some(&mut one),
                    to_fd,
                    Some(&mut other),
                    bytes as usize,
                );
                let call = Call::Of(
                    *to,
                    FileCall::Copy {
                        from: Some(*from),
                        from_offset: Some(from_at),
                        offset: Some(at),
                        bytes,
                    },
                );
                (call, returned(made))
            }
            Step::Rename(from, to, flags) => {
                let how = rustix::fs::RenameFlags::from_bits_retain(flags);
                let (one, other) = (self.path(from), self.path(to));
                let made =
                    rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, how);
                let (from, to) = (path(from), path(to));
                (Call::Rename { from, to, flags }, nothing(made))
            }
            Step::Link(from, to, follow) => {
                let made = self.link(self.path(from), to, follow);
                let (from, to) = (Target::Path(path(from)), path(to));
                (Call::Link { from, to, follow }, nothing(made))
            }
            Step::LinkFile(file, to) => {
                let (id, fd) = self.open.get(&file)?;
                let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let made = self.link(link.into(), to, true);
                let (from, to) = (Target::File(*id), path(to));
                let follow = true;
                (Call::Link { from, to, follow }, nothing(made))
            }
            Step::Symlink(target, at) => {
                // Relative to the folder of the link.
                let target = PATHS[target].rsplit('/').next().unwrap();
                let made = rustix::fs::symlink(target, self.path(at));
                let target = target.as_bytes().to_vec();
                (
                    Call::Symlink {
                        target,
                        path: path(at),
                    },
                    nothing(made),
                )
            }
            Step::Unlink(at) => (
                Call::Unlink(path(at)),
                nothing(rustix::fs::unlink(self.path(at))),
            ),
            Step::Rmdir(at) => (
                Call::Rmdir(path(at)),
                nothing(rustix::fs::rmdir(self.path(at))),
            ),
            Step::Mkdir(at) => {
                let made = rustix::fs::mkdir(self.path(at), Mode::from_raw_mode(0o750));
                (
                    Call::Mkdir {
                        path: path(at),
                        mode: 0o750,
                    },
                    nothing(made),
                )
            }
            Step::Chmod(at, mode) => {
                let made = rustix::fs::chmod(self.path(at), Mode::from_raw_mode(mode));
                (Call::Change(target(at), Change::Chmod(mode)), nothing(made))
            }
            Step::Utimes(at) => {
                let now = rustix::fs::Timespec {
                    tv_sec: 1,
                    tv_nsec: 1,
                };
                let times = rustix::fs::Timestamps {
                    last_access: now,
                    last_modification: now,
                };
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                let made = rustix::fs::utimensat(rustix::fs::CWD, self.path(at), &times, flags);
                (Call::Change(target(at), Change::Utimes), nothing(made))
            }
            Step::Setxattr(at, bytes) => {
                let value = vec![1; bytes as usize];
                let made =
                    rustix::fs::lsetxattr(self.path(at), "user.x", &value, XattrFlags::empty());
                let call = Call::Change(
                    target(at),
                    Change::Setxattr {
                        name: b"user.x".to_vec(),
                        bytes,
                        flags: 0,
                    },
                );
                (call, nothing(made))
            }
        })
    }

    fn record(&mut self, thread: u32, (call, result): (Call, i64)) {
        // Of files that were there before these do not tell which component is no folder, and what is in a folder. A call
        // that fails changes nothing.
        let vague = [Errno::NOTDIR, Errno::NOTEMPTY].map(|errno| -i64::from(errno.raw_os_error()));
        if self.has_before && vague.contains(&result) {
            return;
        }
        let begin_ns = self.operations.len() as u64 * 10;
        self.operations.push(Operation {
            thread,
            process: 1,
            begin_ns,
            end_ns: begin_ns + 5,
            call,
            result,
        });
    }

    fn run(&mut self, program: &[(u32, Step)]) {
        for (thread, step) in program {
            if let Some(made) = self.step(step) {
                self.record(*thread, made);
            }
        }
        // What no step opened is opened at last, so that the operations tell how it looks.
        for (path, look) in tree(&self.root) {
            if look.3.is_empty() {
                let opened = self.open(std::str::from_utf8(&path).unwrap(), 0);
                self.record(0, opened);
            }
        }
    }
}

/// Runs a program in a folder in which there are files before, and returns what it did.
fn run(root: &Path, before: &BTreeSet<usize>, program: &[(u32, Step)]) -> Recorded {
    for (nth, path) in before.iter().enumerate() {
        let path = root.join(PATHS[*path]);
        let folder = path.parent().unwrap();
        if fs::create_dir_all(folder).is_ok() && !path.exists() {
            fs::write(&path, vec![1; 1000 * (nth + 1)]).unwrap();
        }
    }
    let mut interpreter = Interpreter {
        root: root.to_owned(),
        open: HashMap::new(),
        files: 0,
        operations: Vec::new(),
        has_before: !before.is_empty(),
    };
    interpreter.run(program);
    Recorded {
        operations: interpreter.operations,
        left_out: BTreeMap::new(),
        unknown: Unknown::default(),
    }
}

fn told(recorded: &Recorded) -> String {
    let start = Start::of(recorded);
    let lines = recorded.operations.iter().map(|operation| {
        let Operation {
            thread,
            call,
            result,
            ..
        } = operation;
        format!("{thread} {call:?} = {result}\n")
    });
    format!("{start:?}\n{}", lines.collect::<String>())
}

fn is_the_same(before: &BTreeSet<usize>, program: &[(u32, Step)], base: &Path) {
    let temp = || tempfile::tempdir_in(base).unwrap();
    let (one, other) = (temp(), temp());
    let recorded = run(one.path(), before, program);
    let outcome = replay(&recorded, &settings(other.path()), |_| {}).unwrap();
    let (made, same) = outcome.made_and_same();
    assert!(made == same, "{outcome}{}", told(&recorded));
    assert_eq!(tree(one.path()), tree(other.path()));
}

#[test]
fn replayed_programs_do_the_same() {
    let base = Path::new("/dev/shm");
    let mut runner =
        proptest::test_runner::TestRunner::new(test_support::property::config(file!(), 400));
    let before = proptest::collection::btree_set(0..PATHS.len(), 0..4);
    let program = proptest::collection::vec((0..4u32, step()), 0..60);
    let checked = runner.run(&(before, program), |(before, program)| {
        is_the_same(&before, &program, base);
        Ok(())
    });
    checked.unwrap();
}
