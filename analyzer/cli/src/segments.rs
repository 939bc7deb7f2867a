// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments of a running recording, as they end.

use std::fs;
use std::path::PathBuf;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use mostrace_bundle::{Bundle, layout};
use mostrace_capture::segment;
use mostrace_trace::recording::Error;

/// Segments that may wait while the recording goes on. If there are more, the reader is too slow, and the oldest are left out.
const WAITING: u32 = 16;
/// The same once the recording has ended, so that the reader ends soon.
const WAITING_AT_THE_END: u32 = 2;

/// Iterates over the segments; each is removed when the next is asked for, unless the recording is kept. If the reader is too slow,
/// segments are left out, unless they are kept.
pub struct Arriving<'r, T> {
    output: PathBuf,
    is_kept: bool,
    recorder: &'r JoinHandle<T>,
    /// Time between two checks whether a segment has ended.
    look: Duration,
    /// The number of the last segment.
    number: u32,
}

impl<'r, T> Arriving<'r, T> {
    /// Iterates over the segments of the recording to `output` that the thread `recorder` makes. A segment is noticed at most
    /// `look` after its end.
    pub fn new(
        output: PathBuf,
        is_kept: bool,
        recorder: &'r JoinHandle<T>,
        look: Duration,
    ) -> Self {
        Arriving {
            output,
            is_kept,
            recorder,
            look,
            number: 0,
        }
    }

    /// Leaves out the oldest segments if too many wait.
    fn leave_out(&mut self) {
        let waiting = match self.recorder.is_finished() {
            true => WAITING_AT_THE_END,
            false => WAITING,
        };
        let has_ended = |number| {
            let manifest = segment(&self.output, number).join(layout::MANIFEST);
            manifest.exists()
        };
        while !self.is_kept && has_ended(self.number.saturating_add(waiting)) {
            let _ = fs::remove_dir_all(segment(&self.output, self.number));
            self.number += 1;
        }
    }

    fn await_next(&self) -> Option<Result<Bundle, Error>> {
        let path = segment(&self.output, self.number);
        loop {
            // This is asked first, so that everything written before the recorder's end is seen.
            let is_over = self.recorder.is_finished();
            if path.join(layout::MANIFEST).exists() {
                match Bundle::open(&path) {
                    Ok(bundle) if bundle.is_cut() => {}
                    opened => return Some(opened.map_err(Error::from)),
                }
            }
            if is_over {
                return None;
            }
            sleep(self.look);
        }
    }
}

impl<T> Iterator for Arriving<'_, T> {
    type Item = Result<Bundle, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_kept && self.number > 0 {
            // A segment that cannot be removed now is removed with its directory.
            let _ = fs::remove_dir_all(segment(&self.output, self.number));
        }
        self.number += 1;
        self.leave_out();
        self.await_next()
    }
}
