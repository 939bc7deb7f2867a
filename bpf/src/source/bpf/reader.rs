// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the thread that empties a ring. What it takes waits in a [`backlog`]. If that is full, the ring fills up too, and records that
//! find it full are counted there.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::BorrowedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mostrace_bundle::Folder;
use rustix::fs::{OFlags, fcntl_setfl};

use super::backlog::{Inlet, Outlet, Room, Taken, backlog};
use super::ring::Ring;
use crate::error::{At, Error, Result};
use crate::machine::wait::Wait;

/// The time that a record may stay in the ring if nothing wakes the thread.
const REST: Duration = Duration::from_millis(800);
/// The thread is woken when one part in this many of the ring waits (`ring.bpf.h`).
const PART: usize = 8;
/// The most bytes of a batch, which is converted in one go.
const BATCH: usize = 1 << 17;
/// The most that waits in memory, in contents of the ring.
const RINGS: usize = 8;
/// The most batches that wait in the file.
pub(super) const IN_FILE: usize = 1 << 12;
/// The time that an unfinished record is waited for. A program that has reserved a record submits it within microseconds, but a
/// guest's CPU may be taken away.
const FINISH_LIMIT: Duration = Duration::from_secs(10);

/// The running thread.
pub(super) struct Reader {
    /// It has the batches that the thread has taken.
    backlog: Outlet,
    /// Asks the thread for the rest; None once it should end.
    control: Option<PipeWriter>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Reader {
    /// Starts emptying `ring`. What has no room in memory goes to a file in `folder`.
    ///
    /// # Errors
    /// Returns an error if no thread or descriptor is left.
    pub fn start(ring: Ring, folder: Option<&Folder>) -> Result<Reader> {
        let batch = BATCH.min(ring.size() / PART);
        let room = Room {
            in_memory: RINGS * ring.size() / batch,
            in_file: IN_FILE,
        };
        let (inlet, outlet) = backlog(&room, folder)?;
        let (asked, control) = io::pipe().at("pipe")?;
        fcntl_setfl(&asked, OFlags::NONBLOCK).at("pipe")?;
        let wait = Wait::new().at("epoll")?;
        wait.when_woken(&ring).at("BPF ring")?;
        wait.while_readable(&asked).at("pipe")?;
        let thread = Thread {
            ring,
            batch,
            backlog: inlet,
            asked,
        };
        let thread = std::thread::Builder::new()
            .name("ring-reader".into())
            .spawn(move || thread.run(&wait))
            .at("thread")?;
        Ok(Reader {
            backlog: outlet,
            control: Some(control),
            thread: Some(thread),
        })
    }

    /// Returns a descriptor that can be read when something was passed on.
    pub fn wakeup_fd(&self) -> BorrowedFd<'_> {
        self.backlog.wakeup_fd()
    }

    /// Returns how many batches wait.
    pub fn waiting(&self) -> usize {
        self.backlog.len()
    }

    /// Returns the next batch of records, if there is one.
    ///
    /// # Errors
    /// Returns the error with which the thread ended.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        match self.backlog.try_take()? {
            Some(Taken::Batch(batch)) => Ok(Some(batch)),
            Some(Taken::End) => Err(self.failure()),
            Some(Taken::Mark) | None => Ok(None),
        }
    }

    /// Passes everything that is in the ring now to `each`, including records that are not yet finished.
    ///
    /// # Errors
    /// Returns the error with which the thread ended, or the first error of `each`.
    pub fn rest(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(control) = &mut self.control {
            control.write_all(&[0]).at("pipe")?;
        }
        loop {
            match self.backlog.take()? {
                Taken::Batch(batch) => each(&batch)?,
                Taken::Mark => return Ok(()),
                Taken::End => return Err(self.failure()),
            }
        }
    }

    /// Returns the reason why the thread has ended.
    fn failure(&mut self) -> Error {
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(Err(e))) => e,
            _ => Error::bpf("the thread that empties the ring has ended"),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Without a control the thread ends, once there is room for what it has.
        self.control = None;
        while !matches!(self.backlog.take(), Ok(Taken::End)) {}
        if let Some(thread) = self.thread.take() {
            // Its errors no longer matter.
            let _ = thread.join();
        }
    }
}

/// The thread's own side.
struct Thread {
    ring: Ring,
    /// The most bytes of a batch.
    batch: usize,
    backlog: Inlet,
    asked: PipeReader,
}

/// What the thread is asked to do.
enum Asked {
    Nothing,
    Rest,
    End,
}

impl Thread {
    fn run(mut self, wait: &Wait) -> Result<()> {
        loop {
            wait.sleep(REST).at("epoll")?;
            let asked = self.asked()?;
            let end = self.ring.produced();
            let goes_on = match asked {
                Asked::End => return Ok(()),
                Asked::Nothing => self.hand_over_up_to(end, false)?,
                Asked::Rest => self.hand_over_up_to(end, true)? && self.backlog.mark(),
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    fn asked(&mut self) -> Result<Asked> {
        match self.asked.read(&mut [0]) {
            Ok(0) => Ok(Asked::End),
            Ok(_) => Ok(Asked::Rest),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(Asked::Nothing),
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(Asked::Nothing),
            Err(e) => Err(e).at("pipe"),
        }
    }

    /// Passes on what was reserved before `end`. If `all` is false, it leaves what would not fill a second batch: passing it on costs
    /// as much as a full one. If `all` is true, it waits for records that are not yet finished. Returns false if nobody takes the
    /// records.
    fn hand_over_up_to(&mut self, end: usize, all: bool) -> Result<bool> {
        let since = Instant::now();
        loop {
            let batch = self.ring.take(self.batch);
            let taken = !batch.is_empty();
            if taken && !self.backlog.put(batch)? {
                return Ok(false);
            }
            let left = end.wrapping_sub(self.ring.consumed()).cast_signed();
            if left <= 0 || !all && (!taken || left.cast_unsigned() < self.batch) {
                return Ok(true);
            }
            if !taken {
                if since.elapsed() > FINISH_LIMIT {
                    return Err(Error::bpf("a record in the ring is never finished"));
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}
