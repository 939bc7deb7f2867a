// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a recorded call beneath the folder of the replay.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    self, AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, RenameFlags, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::{self, Errno, Result};

use crate::beneath::{Beneath, reopen};
use crate::bytes::{Bytes, CALL_MAX, Contents};
use crate::operation::{Call, Change, FileCall, FileId, Opened, Operation, Range, Target};
use crate::sys::{self, Sink};
use crate::{Error, Name};
use crate::{ended, flags};

/// A call that was not made, and the reason why.
pub(crate) type LeftOut = &'static str;

/// The longest range that one store may make dirty, bytes.
const STORE_MAX: u64 = 1 << 30;

/// An open file of the replay.
#[derive(Debug, Default)]
struct File {
    open: Option<Arc<OwnedFd>>,
    /// The file after its last descriptor was closed, while a mapping of it is still used.
    mapped: Option<Arc<OwnedFd>>,
}

/// The state that calls need.
#[derive(Debug)]
pub(crate) struct Caller {
    beneath: Beneath,
    bytes: Bytes,
    sink: Sink,
    zero: OwnedFd,
    files: HashMap<FileId, Mutex<File>>,
    /// The last operation on a mapping of a file.
    last_uses: HashMap<FileId, u32>,
    is_root: bool,
}

impl Caller {
    /// Makes a caller from the folder, the contents to write, and the operations that will be made.
    pub(crate) fn new(
        root: &Path,
        contents: Contents,
        operations: &[Operation],
    ) -> crate::Result<Caller> {
        let zero = Path::new("/dev/zero");
        let opened = fs::open(zero, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let sink = Sink::new().map_err(Error::io(root))?;
        let (files, last_uses) = files(operations);
        Ok(Caller {
            beneath: Beneath::new(root)?,
            bytes: Bytes::new(contents),
            sink,
            zero: opened.map_err(Error::io(zero))?,
            files,
            last_uses,
            is_root: rustix::process::geteuid().is_root(),
        })
    }

    pub(crate) fn beneath(&self) -> &Beneath {
        &self.beneath
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Makes an operation's call. Returns its result in the form of a recording, or the reason why it is not made.
    pub(crate) fn make(
        &self,
        number: u32,
        operation: &Operation,
    ) -> std::result::Result<i64, LeftOut> {
        if let Some(why) = self.refuses(operation) {
            return Err(why);
        }
        let made = self.call(number, operation);
        Ok(match made {
            Ok(result) => i64::try_from(result).unwrap_or(i64::MAX),
            Err(errno) => i64::from(errno.raw_os_error()).saturating_neg(),
        })
    }

    /// Returns the reason why an operation is refused, if there is one.
    fn refuses(&self, operation: &Operation) -> Option<LeftOut> {
        match &operation.call {
            Call::Mknod { mode, .. } => {
                let kind = FileType::from_raw_mode(*mode & flags::S_IFMT);
                let device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
                device.then_some("a replay makes no device nodes")
            }
            Call::Rename { flags, .. } if flags & flags::RENAME_WHITEOUT != 0 => {
                Some("a replay makes no device nodes")
            }
            Call::Change(_, Change::Chown { .. }) if !self.is_root => {
                Some("only root may change owners")
            }
            Call::Of(_, call) => refuses(call, operation.result),
            _ => None,
        }
    }

    fn call(&self, number: u32, operation: &Operation) -> Result<u64> {
        match &operation.call {
            Call::Open(opened) => self.open(opened, opened.flags),
            Call::Opened(opened) => self.open(opened, without_creation(opened.flags)),
            Call::Of(file, FileCall::Close) => self.close(*file, number),
            Call::Of(file, call) => self.contents(*file, *call, number, operation.result),
            Call::Rename { from, to, flags } => {
                let (from_folder, from) = self.beneath.entry(from)?;
                let (to_folder, to) = self.beneath.entry(to)?;
                let flags = RenameFlags::from_bits_retain(*flags);
                done(fs::renameat_with(from_folder, from, to_folder, to, flags))
            }
            Call::Link { from, to, follow } => done(match from {
                Target::File(file) => self.beneath.link_open(&*self.file(*file)?, to),
                Target::Path(from) if *follow => self
                    .beneath
                    .link_open(&self.beneath.handle(from, true)?, to),
                Target::Path(from) => self.beneath.link(from, to),
            }),
            Call::Symlink { target, path } => {
                let (folder, last) = self.beneath.entry(path)?;
                done(fs::symlinkat(target.as_slice(), folder, last))
            }
            Call::Unlink(path) => self.remove(path, AtFlags::empty()),
            Call::Rmdir(path) => self.remove(path, AtFlags::REMOVEDIR),
            Call::Mkdir { path, mode } => {
                let (folder, last) = self.beneath.entry(path)?;
                done(fs::mkdirat(folder, last, permissions(*mode)))
            }
            Call::Mknod { path, mode } => {
                let (folder, last) = self.beneath.entry(path)?;
                let kind = match *mode & flags::S_IFMT {
                    0 => FileType::RegularFile,
                    kind => FileType::from_raw_mode(kind),
                };
                done(fs::mknodat(folder, last, kind, permissions(*mode), 0))
            }
            Call::Sync => done(fs::syncfs(self.beneath.root())),
            Call::Change(target, change) => done(match target {
                Target::File(file) => self.change_file(*file, change),
                Target::Path(path) => self.change_path(path, change),
            }),
        }
    }

    fn open(&self, opened: &Opened, flags: u32) -> Result<u64> {
        let path = opened.path.as_ref().ok_or(Errno::BADF)?;
        let file = self.open_regular(path, flags, opened.mode)?;
        let slot = opened.file.and_then(|file| self.files.get(&file));
        if let Some(slot) = slot {
            lock(slot).open = Some(Arc::new(file));
        }
        Ok(0)
    }

    /// Opens a file or a folder. For anything else, the result is ENXIO, and the call does not wait for another end.
    fn open_regular(&self, path: &Name, flags: u32, mode: u32) -> Result<OwnedFd> {
        let mut native = flags::native(flags);
        let mode = match native.intersects(OFlags::CREATE) || native.contains(OFlags::TMPFILE) {
            true => permissions(mode),
            false => Mode::empty(),
        };
        match native.contains(OFlags::PATH) {
            // open ignores all other flags, and openat2 refuses them.
            true => native &= OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW,
            false => native |= OFlags::NONBLOCK | OFlags::NOCTTY,
        }
        let file = self.beneath.open(path.as_path(), native, mode)?;
        let kind = FileType::from_raw_mode(fs::fstat(&file)?.st_mode);
        let known = matches!(kind, FileType::RegularFile | FileType::Directory);
        match known || native.contains(OFlags::PATH) {
            true => Ok(file),
            false => Err(Errno::NXIO),
        }
    }

    fn close(&self, file: FileId, number: u32) -> Result<u64> {
        let mut slot = lock(self.files.get(&file).ok_or(Errno::BADF)?);
        let closed = slot.open.take().ok_or(Errno::BADF)?;
        if self.last_uses.get(&file).is_some_and(|last| number < *last) {
            slot.mapped = Some(closed);
        }
        Ok(0)
    }

    fn file(&self, file: FileId) -> Result<Arc<OwnedFd>> {
        let slot = self.files.get(&file).ok_or(Errno::BADF)?;
        lock(slot).open.clone().ok_or(Errno::BADF)
    }

    /// Returns a mapped file; the mapping may outlive the file's descriptor.
    fn mapped(&self, file: FileId, number: u32) -> Result<Arc<OwnedFd>> {
        let mut slot = lock(self.files.get(&file).ok_or(Errno::BADF)?);
        let last = self.last_uses.get(&file) == Some(&number);
        let after_close = if last {
            slot.mapped.take()
        } else {
            slot.mapped.clone()
        };
        after_close.or(slot.open.clone()).ok_or(Errno::BADF)
    }

    fn remove(&self, path: &Name, flags: AtFlags) -> Result<u64> {
        let (folder, last) = self.beneath.entry(path)?;
        done(fs::unlinkat(folder, last, flags))
    }

    fn contents(&self, id: FileId, call: FileCall, number: u32, recorded: i64) -> Result<u64> {
        let file = match call {
            FileCall::Store(_) | FileCall::Msync(..) => self.mapped(id, number)?,
            _ => self.file(id)?,
        };
        let fd = file.as_fd();
        done(match call {
            FileCall::Read { offset, bytes } => return self.sink.read(fd, bytes, offset),
            FileCall::Write { offset, bytes } => {
                return self.write(&file, offset, wrote(bytes, recorded));
            }
            FileCall::Fallocate(range, mode) => {
                let mode = FallocateFlags::from_bits_retain(mode);
                fs::fallocate(fd, mode, range.offset, range.bytes)
            }
            FileCall::Fsync => fs::fsync(fd),
            FileCall::Fdatasync => fs::fdatasync(fd),
            FileCall::SyncRange(range, flags) => sys::sync_file_range(fd, range, flags),
            FileCall::Fadvise(range, advice) => sys::fadvise(fd, range, advice),
            FileCall::Syncfs => fs::syncfs(fd),
            FileCall::Msync(range, flags) => sys::msync(fd, range, flags),
            FileCall::Store(range) => sys::store(fd, within(&file, range)?, self.zero.as_fd()),
            FileCall::Copy {
                from,
                mut from_offset,
                mut offset,
                bytes,
            } => {
                let bytes = wrote(bytes, recorded);
                let Some(from) = from else {
                    return self.write(&file, offset, bytes);
                };
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                let from = self.file(from)?;
                let (at, to) = (from_offset.as_mut(), offset.as_mut());
                return fs::copy_file_range(from, at, fd, to, bytes).map(|bytes| bytes as u64);
            }
            FileCall::Clone {
                from,
                from_offset,
                range,
            } => sys::clone_range(self.file(from)?.as_fd(), from_offset, fd, range),
            FileCall::AtomicStart => sys::command::<{ sys::ATOMIC_START }>(fd),
            FileCall::AtomicCommit => sys::command::<{ sys::ATOMIC_COMMIT }>(fd),
            FileCall::AtomicAbort => sys::command::<{ sys::ATOMIC_ABORT }>(fd),
            FileCall::Close => Ok(()),
        })
    }

    fn write(&self, file: &OwnedFd, offset: Option<u64>, bytes: u64) -> Result<u64> {
        let one = self.bytes.first(bytes);
        let written = match offset {
            _ if bytes > one.len() as u64 => {
                let buffers = self.bytes.buffers(bytes);
                match offset {
                    Some(offset) => io::pwritev(file, &buffers, offset),
                    None => io::writev(file, &buffers),
                }
            }
            Some(offset) => io::pwrite(file, one, offset),
            None => io::write(file, one),
        };
        written.map(|bytes| bytes as u64)
    }

    fn change_file(&self, file: FileId, change: &Change) -> Result<()> {
        let file = self.file(file)?;
        match change {
            Change::Truncate(length) => fs::ftruncate(file, *length),
            Change::Chmod(mode) => fs::fchmod(file, permissions(*mode)),
            Change::Chown { uid, gid } => fs::fchown(file, user(*uid), group(*gid)),
            Change::Utimes => fs::futimens(file, &now()),
            Change::Setxattr { name, bytes, flags } => {
                let flags = XattrFlags::from_bits_retain(*flags);
                fs::fsetxattr(file, name.as_slice(), self.bytes.first(*bytes), flags)
            }
            Change::Removexattr(name) => fs::fremovexattr(file, name.as_slice()),
        }
    }

    /// Changes the file at a path. truncate and chmod follow a symbolic link, within the folder, because they do not work on links;
    /// the other calls change the link.
    fn change_path(&self, path: &Name, change: &Change) -> Result<()> {
        match change {
            Change::Truncate(length) => {
                fs::ftruncate(self.open_regular(path, flags::O_WRONLY, 0)?, *length)
            }
            Change::Chmod(mode) => self.beneath.chmod(path, *mode & 0o7777),
            Change::Chown { uid, gid } => {
                let (folder, last) = self.beneath.entry(path)?;
                fs::chownat(
                    folder,
                    last,
                    user(*uid),
                    group(*gid),
                    AtFlags::SYMLINK_NOFOLLOW,
                )
            }
            Change::Utimes => {
                let (folder, last) = self.beneath.entry(path)?;
                fs::utimensat(folder, last, &now(), AtFlags::SYMLINK_NOFOLLOW)
            }
            Change::Setxattr { name, bytes, flags } => {
                let file = self.beneath.handle(path, false)?;
                let flags = XattrFlags::from_bits_retain(*flags);
                fs::setxattr(
                    reopen(&file),
                    name.as_slice(),
                    self.bytes.first(*bytes),
                    flags,
                )
            }
            Change::Removexattr(name) => {
                let file = self.beneath.handle(path, false)?;
                fs::removexattr(reopen(&file), name.as_slice())
            }
        }
    }
}

/// Returns a slot for each file that is opened, and the last operation on a mapping of each file.
fn files(operations: &[Operation]) -> (HashMap<FileId, Mutex<File>>, HashMap<FileId, u32>) {
    let mut files = HashMap::new();
    let mut last_uses = HashMap::new();
    for (number, operation) in (0u32..).zip(operations) {
        match &operation.call {
            Call::Open(opened) | Call::Opened(opened) => {
                files.extend(opened.file.map(|file| (file, Mutex::default())));
            }
            Call::Of(file, FileCall::Store(_) | FileCall::Msync(..)) => {
                last_uses.insert(*file, number);
            }
            _ => {}
        }
    }
    (files, last_uses)
}

fn lock(file: &Mutex<File>) -> MutexGuard<'_, File> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the reason why a call on an open file is refused, if there is one.
fn refuses(call: &FileCall, result: i64) -> Option<LeftOut> {
    match call {
        FileCall::Store(range) if range.bytes > STORE_MAX => Some("a store of more than 1 GiB"),
        // With the replay's own buffer, the call would write something.
        FileCall::Write { .. } if ended::errno(result) == Some(Errno::FAULT) => {
            Some("its buffer could not be read")
        }
        FileCall::Read { bytes, .. }
        | FileCall::Write { bytes, .. }
        | FileCall::Copy { bytes, .. } => {
            let moved = u64::try_from(result).unwrap_or(0);
            let impossible = moved > CALL_MAX || moved > *bytes;
            impossible.then_some("the result is more than a call can have moved")
        }
        _ => None,
    }
}

fn done(made: Result<()>) -> Result<u64> {
    made.map(|()| 0)
}

/// Returns the number of bytes that a write should write, which is the number that it wrote in the recording. A write that failed
/// wrote nothing, whatever it asked for, and is repeated with at most one buffer.
fn wrote(bytes: u64, recorded: i64) -> u64 {
    const FAILED_MAX: u64 = 1 << 20;
    u64::try_from(recorded).unwrap_or(bytes.min(FAILED_MAX))
}

/// Returns the part of a range that lies within the file. If there is none, the result is EFAULT, as for a store behind the end.
fn within(file: &OwnedFd, range: Range) -> Result<Range> {
    let size = u64::try_from(fs::fstat(file)?.st_size).unwrap_or(0);
    let bytes = range.bytes.min(size.saturating_sub(range.offset));
    match bytes == 0 && range.bytes > 0 {
        true => Err(Errno::FAULT),
        false => Ok(Range { bytes, ..range }),
    }
}

fn without_creation(flags: u32) -> u32 {
    let creation = flags::O_CREAT | flags::O_EXCL | flags::O_TRUNC;
    let unnamed = flags::O_TMPFILE & !flags::O_DIRECTORY;
    flags & !(creation | unnamed)
}

fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}

fn user(id: u32) -> Option<Uid> {
    (id != u32::MAX).then(|| Uid::from_raw(id))
}

fn group(id: u32) -> Option<Gid> {
    (id != u32::MAX).then(|| Gid::from_raw(id))
}

/// Returns the current time, whatever was recorded.
fn now() -> Timestamps {
    let now = rustix::fs::Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_NOW,
    };
    Timestamps {
        last_access: now,
        last_modification: now,
    }
}
