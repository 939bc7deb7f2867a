// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place where a pattern writes, and files that stamp what they write.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::ioctl::{Getter, ioctl, opcode};

use crate::changes;
use crate::contents;
use crate::names::{self, Inode};
use crate::stamp::{How, SECTOR, Stamp, now_ns};

const BLOCK: usize = 4096;

/// The names of the log files.
pub const NAMES: &str = "names";
pub const CONTENTS: &str = "contents";
pub const CHANGES: &str = "changes";

/// A folder of the mounted filesystem, and the logs.
pub struct Site {
    /// The folder's path in the system.
    pub root: PathBuf,
    pub names: names::Writer,
    pub contents: contents::Writer,
    pub changes: changes::Writer,
}

/// A file in which every sector is stamped.
pub struct Stamped {
    pub file: File,
    pub inode: Inode,
    direct: bool,
}

impl Site {
    /// Opens the folder `folder` (`/…`, or empty for the root) of the filesystem mounted at `mount`; the logs are files
    /// in `logs`.
    pub fn open(mount: &Path, folder: &str, logs: &Path) -> io::Result<Site> {
        Ok(Site {
            root: mount.join(folder.trim_start_matches('/')),
            names: names::Writer::open(&logs.join(NAMES), folder)?,
            contents: contents::Writer::open(&logs.join(CONTENTS))?,
            changes: changes::Writer::open(&logs.join(CHANGES))?,
        })
    }

    /// Returns the system's path for a path in the filesystem, `/…`.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Makes a file for buffered IO.
    pub fn create(&self, path: &str) -> io::Result<Stamped> {
        let file = self.stamped(path, |options| options.create_new(true))?;
        self.names.gains(file.inode, path)?;
        Ok(file)
    }

    /// Opens a file for direct IO, and makes it if it does not exist.
    pub fn direct(&self, path: &str) -> io::Result<Stamped> {
        if !self.at(path).exists() {
            self.create(path)?;
        }
        const O_DIRECT: i32 = 0o40000;
        let mut file = self.stamped(path, |options| options.custom_flags(O_DIRECT))?;
        file.direct = true;
        Ok(file)
    }

    /// Makes a folder.
    pub fn folder(&self, path: &str) -> io::Result<Inode> {
        fs::create_dir(self.at(path))?;
        let inode = inode_of(&File::open(self.at(path))?)?;
        self.names.gains(inode, path)?;
        Ok(inode)
    }

    /// Commits all that was done to the journal.
    pub fn commit(&self) -> io::Result<()> {
        File::open(&self.root)?.sync_all()
    }

    fn stamped(
        &self,
        path: &str,
        how: impl FnOnce(&mut OpenOptions) -> &mut OpenOptions,
    ) -> io::Result<Stamped> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = how(&mut options).open(self.at(path))?;
        Ok(Stamped {
            inode: inode_of(&file)?,
            file,
            direct: false,
        })
    }

    pub fn rename(&self, inode: Inode, from: &str, to: &str) -> io::Result<()> {
        self.names.gains(inode, to)?;
        fs::rename(self.at(from), self.at(to))?;
        self.names.loses(inode, from)
    }

    /// Adds a second name to a file, if the filesystem has hard links.
    pub fn link(&self, inode: Inode, from: &str, to: &str) -> io::Result<()> {
        self.names.gains(inode, to)?;
        match fs::hard_link(self.at(from), self.at(to)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.names.loses(inode, to)
            }
            done => done,
        }
    }

    pub fn unlink(&self, inode: Inode, path: &str) -> io::Result<()> {
        fs::remove_file(self.at(path))?;
        self.names.loses(inode, path)
    }
}

/// Returns the inode of an open file.
pub fn inode_of(file: &File) -> io::Result<Inode> {
    Ok((file.metadata()?.ino(), generation(file)?))
}

/// Returns the inode of an open file. If the filesystem tells no generation, it is the one in memory, as in the file's handle
/// (FILEID_INO32_GEN in <linux/exportfs.h>).
pub fn inode_in_memory(file: &File) -> io::Result<Inode> {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        words: [u32; 2],
    }
    let (ino, generation) = inode_of(file)?;
    if generation != 0 {
        return Ok((ino, generation));
    }
    let mut handle = Handle {
        bytes: 8,
        kind: 0,
        words: [0; 2],
    };
    let mut mount = 0_i32;
    // SAFETY: the path ends with a NUL, and the kernel writes no more than `bytes` behind the handle's head.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file.as_raw_fd(),
            c"".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    match (result, handle.kind) {
        (0, 1) => Ok((ino, handle.words[1])),
        (0, _) => Ok((ino, 0)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the inode's generation (FS_IOC_GETVERSION in <linux/fs.h>), or 0 if the filesystem has none. The kernel
/// writes an int, whatever size the ioctl's number encodes.
fn generation(file: &File) -> io::Result<u32> {
    const GETVERSION: rustix::ioctl::Opcode = opcode::read::<i64>(b'v', 1);
    // SAFETY: the kernel writes the four bytes of an int.
    match unsafe { ioctl(file, Getter::<GETVERSION, u32>::new()) } {
        Ok(version) => Ok(version),
        Err(rustix::io::Errno::NOTTY) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

impl Stamped {
    /// Writes `bytes` bytes, which must be whole sectors, at `offset`.
    pub fn write(&self, offset: u64, bytes: usize, how: How) -> io::Result<()> {
        let mut buffer = Aligned::new(bytes);
        let data = buffer.bytes();
        self.stamp(data, offset, if self.direct { How::Direct } else { how });
        self.file.write_all_at(data, offset)
    }

    /// Stamps the sectors of `data`, which is to be written at `offset`.
    pub fn stamp(&self, data: &mut [u8], offset: u64, how: How) {
        let stamp = Stamp::new(self.inode, now_ns(), how);
        for (at, sector) in data.chunks_mut(SECTOR).enumerate() {
            let offset = offset + (at * SECTOR) as u64;
            Stamp { offset, ..stamp }.put(sector);
        }
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Memory that is aligned for direct IO.
pub struct Aligned {
    buffer: Vec<u8>,
    bytes: usize,
}

impl Aligned {
    pub fn new(bytes: usize) -> Aligned {
        let buffer = vec![0; bytes + BLOCK];
        Aligned { buffer, bytes }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        let skip = self.buffer.as_ptr().align_offset(BLOCK);
        &mut self.buffer[skip..skip + self.bytes]
    }
}

/// Random numbers.
pub struct Random(File);

impl Random {
    pub fn new() -> io::Result<Random> {
        File::open("/dev/urandom").map(Random)
    }

    pub fn below(&mut self, limit: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes) % limit)
    }
}
