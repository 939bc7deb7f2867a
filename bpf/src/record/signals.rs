// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals for which a recording waits: those that end it, a child's end, and a question for its progress.

use std::io::{PipeReader, Read, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;
use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGUSR1};
use signal_hook::low_level;

use crate::error::{At, Result};

const END: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
/// The value that stands for no signal, instead of an index of [`END`].
const NONE: usize = END.len();

/// The signal handlers, which are active while this exists. It can be read when one of the signals came.
#[derive(Debug)]
pub(super) struct Signals {
    /// The index in [`END`] of the latest signal.
    stop: Arc<AtomicUsize>,
    came: PipeReader,
    handlers: Vec<SigId>,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// Returns an error if the operating system refuses.
    pub fn new(tells_progress: bool) -> Result<Signals> {
        let (came, wake) = pipe().at("pipe")?;
        fcntl_setfl(&came, OFlags::NONBLOCK).at("pipe")?;
        let mut signals = Signals {
            stop: Arc::new(AtomicUsize::new(NONE)),
            came,
            handlers: Vec::new(),
        };
        // The flag is set before the wake-up, so that whoever wakes finds it set.
        for (number, signal) in END.into_iter().enumerate() {
            let stop = Arc::clone(&signals.stop);
            let set = signal_hook::flag::register_usize(signal.as_raw(), stop, number);
            signals.handlers.push(set.at("signal handler")?);
        }
        let asks = tells_progress.then_some(SIGUSR1);
        let ends = END.map(Signal::as_raw).into_iter();
        for signal in ends.chain([SIGCHLD]).chain(asks) {
            let wake = wake.try_clone().at("pipe")?;
            let woken = low_level::pipe::register(signal, wake);
            signals.handlers.push(woken.at("signal handler")?);
        }
        Ok(signals)
    }

    /// Returns the signal that ended the recording, if one came.
    pub fn stop(&self) -> Option<Signal> {
        END.get(self.stop.load(Ordering::Relaxed)).copied()
    }

    /// Takes note of the signals that have come so far.
    pub fn clear(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.came).read(&mut bytes), Ok(len) if len > 0) {}
    }
}

impl AsFd for &Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.came.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}
