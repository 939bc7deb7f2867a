// SPDX-License-Identifier: MIT OR Apache-2.0
//! The signals that a recording waits for: those that end it, and a child's end.

use std::io::{PipeReader, Read, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, fcntl_setfl};
use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

use crate::error::{At, Result};

const END: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Set up for as long as it lives. Can be read when one of them came.
#[derive(Debug)]
pub(super) struct Signals {
    stop: Arc<AtomicBool>,
    came: PipeReader,
    handlers: Vec<SigId>,
}

impl Signals {
    /// Sets the handlers.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn new() -> Result<Signals> {
        let (came, wake) = pipe().at("pipe")?;
        fcntl_setfl(&came, OFlags::NONBLOCK).at("pipe")?;
        let mut signals = Signals {
            stop: Arc::default(),
            came,
            handlers: Vec::new(),
        };
        // The flag first: who wakes finds it set.
        for signal in END {
            let set = signal_hook::flag::register(signal, Arc::clone(&signals.stop));
            signals.handlers.push(set.at("signal handler")?);
        }
        for signal in END.into_iter().chain([SIGCHLD]) {
            let wake = wake.try_clone().at("pipe")?;
            let woken = low_level::pipe::register(signal, wake);
            signals.handlers.push(woken.at("signal handler")?);
        }
        Ok(signals)
    }

    /// Whether one came that ends the recording.
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes note of those that came until now.
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
