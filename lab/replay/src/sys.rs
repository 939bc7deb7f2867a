// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls that rustix does not offer, or offers only with a separate buffer for each byte that is read.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use crate::bytes::CALL_MAX;
use crate::operation::Range;

fn result(returned: i64) -> Result<u64> {
    u64::try_from(returned).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_raw_os_error(error.raw_os_error().unwrap_or(0))
    })
}

/// The most buffers that one call may have (`UIO_MAXIOV`).
const BUFFERS_MAX: usize = 1024;
const SINK: usize = 2 << 20;

/// The memory to which all reads are directed; nobody looks at it.
#[derive(Debug)]
pub(crate) struct Sink(*mut libc::c_void);

// SAFETY: the memory is only written, and only by the kernel.
#[allow(unsafe_code)]
unsafe impl Send for Sink {}
// SAFETY: likewise.
#[allow(unsafe_code)]
unsafe impl Sync for Sink {}

impl Sink {
    // SAFETY: this is new memory that holds no Rust object.
    #[allow(unsafe_code)]
    pub(crate) fn new() -> Result<Sink> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let memory = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), SINK, access, MapFlags::PRIVATE)
        };
        memory.map(Sink)
    }

    /// Returns buffers for one call that reads this many bytes. All of them are the sink's memory, so memory does not grow with the
    /// length that a recording claims.
    pub(crate) fn buffers(&self, bytes: u64) -> Vec<libc::iovec> {
        let mut rest = usize::try_from(bytes.min(CALL_MAX)).unwrap_or(usize::MAX);
        let mut buffers = Vec::new();
        while rest > 0 && buffers.len() < BUFFERS_MAX {
            let iov_len = rest.min(SINK);
            let iov_base = self.0;
            rest = rest.saturating_sub(iov_len);
            buffers.push(libc::iovec { iov_base, iov_len });
        }
        buffers
    }

    /// Reads with one call.
    // SAFETY: the buffers lie in the sink's memory, which lives as long as it.
    #[allow(unsafe_code)]
    pub(crate) fn read(
        &self,
        file: BorrowedFd<'_>,
        bytes: u64,
        offset: Option<u64>,
    ) -> Result<u64> {
        let buffers = self.buffers(bytes);
        let (fd, count) = (file.as_raw_fd(), buffers.len() as libc::c_int);
        result(match offset {
            Some(offset) => unsafe {
                libc::preadv(fd, buffers.as_ptr(), count, offset as libc::off_t)
            },
            None => unsafe { libc::readv(fd, buffers.as_ptr(), count) },
        } as i64)
    }
}

impl Drop for Sink {
    // SAFETY: this is the memory that `new` mapped, and nobody else can refer to it any more.
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let _ = unsafe { rustix::mm::munmap(self.0, SINK) };
    }
}

/// A part of a file in memory, which starts at a page.
struct Mapping {
    memory: *mut libc::c_void,
    bytes: usize,
}

impl Mapping {
    // SAFETY: this is new memory. Nothing here reads or writes it, because a page that the file does not have would end the
    // process. Only the kernel accesses it; for the kernel, such a page is an error (EFAULT).
    #[allow(unsafe_code)]
    fn new(file: BorrowedFd<'_>, range: Range, access: ProtFlags) -> Result<Mapping> {
        let bytes = usize::try_from(range.bytes).map_err(|_| Errno::NOMEM)?;
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                MapFlags::SHARED,
                file,
                range.offset,
            )
        };
        mapped.map(|memory| Mapping { memory, bytes })
    }
}

impl Drop for Mapping {
    // SAFETY: this is the memory that `new` mapped.
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let _ = unsafe { rustix::mm::munmap(self.memory, self.bytes) };
    }
}

/// Extends a range to whole pages.
fn pages(range: Range, page: u64) -> Result<Range> {
    let offset = range.offset & !(page - 1);
    let end = range.offset.checked_add(range.bytes).ok_or(Errno::INVAL)?;
    let end = end.checked_next_multiple_of(page).ok_or(Errno::INVAL)?;
    let bytes = end.saturating_sub(offset);
    Ok(Range { offset, bytes })
}

/// Stores one byte to each page of the range through a shared mapping. The kernel copies the byte from `zero`, which is /dev/zero.
/// So a page behind the file's end, or one for which there is no space, gives EFAULT and not SIGBUS.
// SAFETY: the buffers lie in the mapping, and no Rust object does.
#[allow(unsafe_code)]
pub(crate) fn store(file: BorrowedFd<'_>, range: Range, zero: BorrowedFd<'_>) -> Result<()> {
    let page = rustix::param::page_size();
    let all = pages(range, page as u64)?;
    let end = all.offset.saturating_add(all.bytes);
    let step = page.saturating_mul(BUFFERS_MAX) as u64;
    let mut offset = all.offset;
    while offset < end {
        let bytes = step.min(end.saturating_sub(offset));
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let mapping = Mapping::new(file, Range { offset, bytes }, access)?;
        let buffers = (0..mapping.bytes / page).map(|nth| libc::iovec {
            iov_base: mapping.memory.wrapping_byte_add(nth.saturating_mul(page)),
            iov_len: 1,
        });
        let buffers: Vec<libc::iovec> = buffers.collect();
        let count = buffers.len();
        let stored =
            unsafe { libc::readv(zero.as_raw_fd(), buffers.as_ptr(), count as libc::c_int) };
        if result(stored as i64)? != count as u64 {
            return Err(Errno::FAULT);
        }
        offset = offset.saturating_add(bytes);
    }
    Ok(())
}

/// Calls msync on a range of a file.
// SAFETY: the range is that of the mapping.
#[allow(unsafe_code)]
pub(crate) fn msync(file: BorrowedFd<'_>, range: Range, flags: u32) -> Result<()> {
    let all = pages(range, rustix::param::page_size() as u64)?;
    if all.bytes == 0 {
        return Ok(());
    }
    let mapping = Mapping::new(file, all, ProtFlags::READ)?;
    let flags = MsyncFlags::from_bits_retain(flags);
    unsafe { rustix::mm::msync(mapping.memory, mapping.bytes, flags) }
}

/// sync_file_range
// SAFETY: the call takes no pointers.
#[allow(unsafe_code)]
pub(crate) fn sync_file_range(file: BorrowedFd<'_>, range: Range, flags: u32) -> Result<()> {
    let (offset, bytes) = (range.offset as libc::off64_t, range.bytes as libc::off64_t);
    let returned = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, flags) };
    result(returned.into()).map(drop)
}

/// posix_fadvise
// SAFETY: the call takes no pointers.
#[allow(unsafe_code)]
pub(crate) fn fadvise(file: BorrowedFd<'_>, range: Range, advice: u32) -> Result<()> {
    let (offset, bytes) = (range.offset as libc::off64_t, range.bytes as libc::off64_t);
    let advice = advice as libc::c_int;
    match unsafe { libc::posix_fadvise64(file.as_raw_fd(), offset, bytes, advice) } {
        0 => Ok(()),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

/// `struct file_clone_range` of linux/fs.h.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct CloneRange {
    src_fd: i64,
    src_offset: u64,
    src_length: u64,
    dest_offset: u64,
}

/// `FICLONERANGE`
// SAFETY: the command takes a `struct file_clone_range`.
#[allow(unsafe_code)]
pub(crate) fn clone_range(
    from: BorrowedFd<'_>,
    from_offset: u64,
    to: BorrowedFd<'_>,
    range: Range,
) -> Result<()> {
    const FICLONERANGE: u32 = rustix::ioctl::opcode::write::<CloneRange>(0x94, 13);
    let asked = CloneRange {
        src_fd: from.as_raw_fd().into(),
        src_offset: from_offset,
        src_length: range.bytes,
        dest_offset: range.offset,
    };
    unsafe { rustix::ioctl::ioctl(to, rustix::ioctl::Setter::<FICLONERANGE, _>::new(asked)) }
}

/// `F2FS_IOC_START_ATOMIC_WRITE` of linux/f2fs.h
pub(crate) const ATOMIC_START: u32 = 0xf501;
/// `F2FS_IOC_COMMIT_ATOMIC_WRITE`
pub(crate) const ATOMIC_COMMIT: u32 = 0xf502;
/// `F2FS_IOC_ABORT_ATOMIC_WRITE`
pub(crate) const ATOMIC_ABORT: u32 = 0xf505;

/// Makes one of f2fs's calls above.
// SAFETY: they take no argument.
#[allow(unsafe_code)]
pub(crate) fn command<const COMMAND: u32>(file: impl AsFd) -> Result<()> {
    unsafe { rustix::ioctl::ioctl(file, rustix::ioctl::NoArg::<COMMAND>::new()) }
}
