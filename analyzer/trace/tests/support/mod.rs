// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces, for the tests and benchmarks of this crate and of the program.
#![allow(dead_code)] // each test binary uses its own share

pub mod generator;
mod io;
pub mod oracle;
mod random;
pub mod synthetic;

use mostrace_trace::blktrace::{Completion, Completions, Event, Trace};
use std::path::{Path, PathBuf};

/// The real traces, by basename; `data/make.sh` records them.
pub const REAL: [&str; 3] = ["ext4-fsync", "ext4-direct", "ext4-sqlite"];

pub fn real(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../trace/tests/data")
        .join(name)
}

/// Returns every event; the trace must be readable to its end.
pub fn events(trace: &mut Trace) -> Vec<Event<'static>> {
    let mut all = Vec::new();
    while let Some(event) = trace.next().expect("reads") {
        all.push(keep_event(&event));
    }
    all
}

/// Returns every completion.
pub fn completions(trace: Trace) -> (Vec<Completion<'static>>, Completions) {
    let mut completions = Completions::new(trace);
    let mut all = Vec::new();
    while let Some(completion) = completions.next().expect("reads") {
        all.push(keep(&completion));
    }
    (all, completions)
}

/// Returns a copy with a static lifetime: a test leaks little memory.
pub fn keep(completion: &Completion<'_>) -> Completion<'static> {
    Completion {
        parts: completion.parts.to_vec().leak(),
        ..*completion
    }
}

pub fn keep_event(event: &Event<'_>) -> Event<'static> {
    Event {
        pdu: event.pdu.to_vec().leak(),
        ..*event
    }
}
