// SPDX-License-Identifier: MIT OR Apache-2.0
//! Submits requests with io_uring. A write to a device with `RWF_DSYNC` becomes a single write with FUA this way, while `pwritev2`
//! adds a flush (`generic_write_sync` of the kernel).

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;

use super::request::{Op, Request};
use super::target::BlockTarget;
use crate::bytes::{Bytes, Contents};
use crate::error::{Error, Result};
use crate::sys::Sink;

/// The most requests that may be in flight.
const IN_FLIGHT_MAX: u32 = 1024;

// <linux/fs.h>
const BLKDISCARD: libc::c_ulong = 0x1277;

/// The requests in flight on a target.
pub(super) struct Ring {
    ring: IoUring,
    target: BlockTarget,
    bytes: Bytes,
    sink: Sink,
    in_flight: u32,
}

/// A request that was completed, and its result.
pub(super) type Completed = (usize, io::Result<()>);

impl Ring {
    /// # Errors
    /// Returns an error if the kernel has no io_uring, or does not allow it.
    pub fn new(target: BlockTarget, contents: Contents) -> Result<Ring> {
        let ring = IoUring::builder()
            .setup_cqsize(4 * IN_FLIGHT_MAX)
            .build(2 * IN_FLIGHT_MAX);
        let ring = ring.map_err(|e| Error::Refused {
            path: target.path.clone(),
            why: format!("io_uring cannot be used: {e}"),
        })?;
        let sink = Sink::new().map_err(Error::io(&target.path))?;
        Ok(Ring {
            ring,
            bytes: Bytes::new(contents),
            sink,
            target,
            in_flight: 0,
        })
    }

    pub fn is_full(&self) -> bool {
        self.in_flight >= IN_FLIGHT_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.in_flight == 0
    }

    /// Makes a request. Returns its result if it was completed at once, as a discard is: io_uring has no discard of a device before
    /// 6.12.
    ///
    /// # Errors
    /// Returns an error if the ring cannot take it.
    pub fn start(&mut self, index: usize, request: &Request) -> Result<Option<Completed>> {
        if request.op == Op::Discard && self.target.is_device {
            return Ok(Some((index, self.discard(request))));
        }
        if request.preflush {
            // The write is only made once the flush has succeeded.
            let flush = self.flush().flags(squeue::Flags::IO_LINK);
            self.push(flush, index * 2 + 1)?;
        }
        let fd = Fd(self.target.file.as_raw_fd());
        let offset = request.sector.saturating_mul(512);
        let buffers = match request.op {
            Op::Read => self.sink.buffers(request.bytes.into()),
            Op::Write => self.bytes.iovecs(request.bytes.into()),
            _ => Vec::new(),
        };
        let (list, count) = (buffers.as_ptr(), buffers.len() as u32);
        let entry = match request.op {
            Op::Flush => self.flush(),
            Op::Read => opcode::Readv::new(fd, list, count).offset(offset).build(),
            Op::Write => opcode::Writev::new(fd, list, count)
                .offset(offset)
                .rw_flags(if request.fua { libc::RWF_DSYNC } else { 0 })
                .build(),
            Op::Discard | Op::WriteZeroes => opcode::Fallocate::new(fd, request.bytes.into())
                .offset(offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
        };
        self.push(entry, index * 2)?;
        // While it takes the request, the kernel copies the list of buffers (IORING_FEAT_SUBMIT_STABLE).
        self.submit()?;
        self.in_flight += 1;
        Ok(None)
    }

    fn flush(&self) -> squeue::Entry {
        let fd = Fd(self.target.file.as_raw_fd());
        opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()
    }

    // SAFETY: the target, and the memory that reads and writes use, live as long as the ring; the list of the buffers lives
    // until the entry was submitted.
    #[allow(unsafe_code)]
    fn push(&mut self, entry: squeue::Entry, data: usize) -> Result<()> {
        let entry = entry.user_data(data as u64);
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| self.failed(io::Error::from(io::ErrorKind::OutOfMemory)))
    }

    /// Passes the entries to the kernel, one request at a time, because it would merge neighbouring requests.
    fn submit(&mut self) -> Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed(e)),
            }
        }
    }

    // SAFETY: the ioctl reads the two numbers.
    #[allow(unsafe_code)]
    fn discard(&self, request: &Request) -> io::Result<()> {
        let range = [request.sector.saturating_mul(512), request.bytes.into()];
        let fd = self.target.file.as_raw_fd();
        match unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until a request is completed, or until `timeout`, and returns what was completed.
    pub fn wait(
        &mut self,
        requests: &[Request],
        timeout: Option<Duration>,
    ) -> Result<Vec<Completed>> {
        let timespec = timeout.map(Timespec::from);
        let mut args = SubmitArgs::new();
        if let Some(timespec) = &timespec {
            args = args.timespec(timespec);
        }
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => {}
            Err(e) if e.raw_os_error() == Some(Errno::TIME.raw_os_error()) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(self.failed(e)),
        }
        let mut completed = Vec::new();
        for entry in self.ring.completion() {
            let data = entry.user_data() as usize;
            // This is the flush ahead of a write: if it fails, the write is cancelled.
            if data % 2 == 1 {
                continue;
            }
            let index = data / 2;
            completed.push((index, result(entry.result(), &requests[index])));
        }
        self.in_flight -= completed.len() as u32;
        Ok(completed)
    }

    fn failed(&self, cause: io::Error) -> Error {
        Error::io(&self.target.path)(cause)
    }
}

/// Converts the result of a request.
fn result(returned: i32, request: &Request) -> io::Result<()> {
    let carries = matches!(request.op, Op::Read | Op::Write);
    match u32::try_from(returned) {
        Err(_) => Err(io::Error::from_raw_os_error(returned.saturating_neg())),
        Ok(bytes) if carries && bytes != request.bytes => Err(io::ErrorKind::WriteZero.into()),
        Ok(_) => Ok(()),
    }
}
