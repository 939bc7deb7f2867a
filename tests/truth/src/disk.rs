// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk that logs what is written to it: a loop device over the only file of a FUSE filesystem of our own.
//!
//! A loop device completes a request after it has written to its file, so the data of a request is logged between its D
//! and its C.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::contents::checksum;
use crate::mark::Mark;
use crate::stamp::{SECTOR, Stamp, now_ns};

/// One sector as it reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub time_ns: u64,
    pub sector: u64,
    pub what: What,
}

/// The contents of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Stamped(Stamp),
    /// Metadata of a file, with the file's number in it.
    Marked(Mark),
    Zeroes,
    /// Other metadata of the filesystem, or another program's data, as a checksum.
    Other(u64),
}

/// Everything that was written, in time order.
pub type Log = Arc<Mutex<Vec<Written>>>;

/// The byte offsets at which the filesystems on the disk begin, in order.
pub type Starts = Arc<Mutex<Vec<u64>>>;

const NAME: &str = "disk";
const TTL: Duration = Duration::from_secs(3600);
const DISK: INodeNo = INodeNo(2);

struct Logged {
    backing: File,
    bytes: u64,
    log: Log,
    starts: Starts,
}

/// The disk, mounted until this is dropped.
pub struct Disk {
    session: Option<BackgroundSession>,
    pub path: PathBuf,
    pub log: Log,
    pub starts: Starts,
}

impl Disk {
    /// Makes a disk of this many bytes, with its backing file in `folder`.
    pub fn new(folder: &Path, bytes: u64) -> io::Result<Disk> {
        let backing = folder.join("backing");
        let mount = folder.join("fuse");
        std::fs::create_dir(&mount)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(backing)?;
        file.set_len(bytes)?;
        let (log, starts) = (Log::default(), Starts::default());
        let logged = Logged {
            backing: file,
            bytes,
            log: Arc::clone(&log),
            starts: Arc::clone(&starts),
        };
        let session = fuser::spawn_mount(logged, &mount, &Config::default())?;
        Ok(Disk {
            session: Some(session),
            path: mount.join(NAME),
            log,
            starts,
        })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.session.take());
    }
}

impl Logged {
    fn attr(&self, ino: INodeNo) -> FileAttr {
        let is_disk = ino == DISK;
        FileAttr {
            ino,
            size: if is_disk { self.bytes } else { 0 },
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_disk {
                FileType::RegularFile
            } else {
                FileType::Directory
            },
            perm: if is_disk { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Returns the block size of the ext4 at this offset; SECTOR if there is none yet.
    fn block_size(&self, offset: u64) -> usize {
        let starts = self.starts.lock().unwrap_or_else(|e| e.into_inner());
        let before = starts.iter().rfind(|&&start| start <= offset);
        let superblock_at = before.unwrap_or(&0) + 1024;
        let mut superblock = [0; 64];
        let read = self.backing.read_exact_at(&mut superblock, superblock_at);
        match superblock[56..58] {
            [0x53, 0xef] if read.is_ok() => 1024 << (superblock[24] & 7),
            _ => SECTOR,
        }
    }

    fn note(&self, offset: u64, data: &[u8]) {
        let time_ns = now_ns();
        let marks = data.chunks(self.block_size(offset)).flat_map(Mark::find);
        let sectors = data.chunks(SECTOR).zip(marks).enumerate();
        let written = sectors.map(|(at, (sector, mark))| Written {
            time_ns,
            sector: offset / SECTOR as u64 + at as u64,
            what: match (Stamp::read(sector), mark) {
                (Some(stamp), _) => What::Stamped(stamp),
                (_, Some(mark)) => What::Marked(mark),
                _ if sector.iter().all(|&b| b == 0) => What::Zeroes,
                _ => What::Other(checksum(sector)),
            },
        });
        // A panic of another thread leaves the list intact.
        let mut log = self.log.lock().unwrap_or_else(|e| e.into_inner());
        log.extend(written);
    }
}

impl Filesystem for Logged {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == NAME {
            true => reply.entry(&TTL, &self.attr(DISK), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attr(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let left = self.bytes.saturating_sub(offset).min(size.into());
        let mut data = vec![0; left as usize];
        match self.backing.read_exact_at(&mut data, offset) {
            Ok(()) => reply.data(&data),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.note(offset, data);
        match self.backing.write_all_at(data, offset) {
            Ok(()) => reply.written(data.len() as u32),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: i32,
        reply: ReplyEmpty,
    ) {
        // Discards are refused, because the contents after a discard are undefined.
        reply.error(Errno::EOPNOTSUPP);
    }
}
