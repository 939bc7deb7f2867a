// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the thread that empties a ring. The thread does nothing else, so that no stalled disk delays it; what it takes waits in a
//! queue. If the queue is full, the ring fills up too, and records that find it full are counted there.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};

use super::ring::Ring;
use crate::error::{At, Error, Result};
use crate::machine::wait::Wait;

/// The time that a record may stay in the ring if nothing wakes the thread.
const REST: Duration = Duration::from_millis(800);
/// A batch takes one part in this many of the ring; the thread is woken when this much waits (`ring.bpf.h`).
const PART: usize = 8;
/// The most batches that wait: at most eight times the ring's contents.
const QUEUE: usize = 8 * PART;
/// The time that an unfinished record is waited for. A program that has reserved a record submits it within microseconds, but a
/// guest's CPU may be taken away.
const FINISH_LIMIT: Duration = Duration::from_secs(10);

/// What the thread passes on.
enum Taken {
    /// A batch of records.
    Batch(Vec<u8>),
    /// A mark: everything that was in the ring when the thread was asked has been passed on.
    All,
}

/// The running thread.
pub(super) struct Reader {
    /// The queue; None once the thread should end.
    queue: Option<Receiver<Taken>>,
    control: Option<PipeWriter>,
    /// A pipe with one byte for each item of the queue.
    woken: PipeReader,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Reader {
    /// Starts emptying `ring`.
    ///
    /// # Errors
    /// Returns an error if no thread or descriptor is left.
    pub fn start(ring: Ring) -> Result<Reader> {
        let (sender, queue) = sync_channel(QUEUE);
        let (woken, wakeup) = io::pipe().at("pipe")?;
        let (asked, control) = io::pipe().at("pipe")?;
        fcntl_setfl(&asked, OFlags::NONBLOCK).at("pipe")?;
        let wait = Wait::new().at("epoll")?;
        wait.when_woken(&ring).at("BPF ring")?;
        wait.while_readable(&asked).at("pipe")?;
        let thread = Thread {
            ring,
            queue: sender,
            wakeup,
            asked,
        };
        let thread = std::thread::Builder::new()
            .name("ring-reader".into())
            .spawn(move || thread.run(&wait))
            .at("thread")?;
        Ok(Reader {
            queue: Some(queue),
            control: Some(control),
            woken,
            thread: Some(thread),
        })
    }

    /// Returns a descriptor that can be read when something was passed on.
    pub fn wakeup_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Returns the next batch of records, if there is one.
    ///
    /// # Errors
    /// Returns the error with which the thread ended.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(queue) = &self.queue else {
            return Ok(None);
        };
        match queue.try_recv() {
            Ok(Taken::Batch(batch)) => self.take_byte().map(|()| Some(batch)),
            Ok(Taken::All) => self.take_byte().map(|()| None),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.failure()),
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
            let taken = self.queue.as_ref().and_then(|queue| queue.recv().ok());
            match taken {
                Some(Taken::Batch(batch)) => {
                    self.take_byte()?;
                    each(&batch)?;
                }
                Some(Taken::All) => return self.take_byte(),
                None => return Err(self.failure()),
            }
        }
    }

    /// Reads the byte that belongs to an item taken from the queue.
    fn take_byte(&mut self) -> Result<()> {
        // The byte is there, or will be at once.
        self.woken.read_exact(&mut [0]).at("pipe")
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
        // Without a queue and a control, the thread ends, wherever it is.
        self.queue = None;
        self.control = None;
        if let Some(thread) = self.thread.take() {
            // Its errors no longer matter.
            let _ = thread.join();
        }
    }
}

/// The thread's own side.
struct Thread {
    ring: Ring,
    queue: SyncSender<Taken>,
    wakeup: PipeWriter,
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
            let end = self.ring.produced();
            let goes_on = match self.asked()? {
                Asked::End => return Ok(()),
                Asked::Nothing => self.hand_over_up_to(end, false)?,
                Asked::Rest => self.hand_over_up_to(end, true)? && self.put(Taken::All),
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
        let full = self.ring.size() / PART;
        loop {
            let batch = self.ring.take(full);
            let taken = !batch.is_empty();
            if taken && !self.put(Taken::Batch(batch)) {
                return Ok(false);
            }
            let left = end.wrapping_sub(self.ring.consumed()).cast_signed();
            if left <= 0 || !all && (!taken || left.cast_unsigned() < full) {
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

    fn put(&mut self, taken: Taken) -> bool {
        self.queue.send(taken).is_ok() && self.wakeup.write_all(&[0]).is_ok()
    }
}
