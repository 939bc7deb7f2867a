// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where block events come from: three sources, the same bytes out.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use mostrace_bundle::{Folder, layout};

use crate::error::Result;

pub(crate) mod blktrace;
pub(crate) mod bpf;
mod cpu_files;
pub(crate) mod ftrace;
mod in_flight;
pub(crate) mod unfinished;

pub(crate) use cpu_files::CpuFiles;

use in_flight::InFlight;

use crate::cut::Ends;

/// What a source has to say where the recording is cut.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Events written into the segment that ends, without those that were repeated at its beginning.
    pub events: u64,
    /// Requests that were issued in it, or that it began with, and did not complete; None if the source does not count them.
    pub unfinished: Option<u64>,
    /// The completions of its last while.
    pub ends: Ends,
    /// Those of them that are known to the next one.
    pub requests: InFlight,
    /// Of the next segment's files, by name: where its own events begin, behind those that are in the ones before too.
    pub own_from: BTreeMap<String, u64>,
}

/// The names of the event files in a bundle, unordered.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn files_in(folder: &Folder) -> Result<Vec<String>> {
    let mut names = folder.names()?;
    names.retain(|name| layout::cpu_of(name).is_some());
    Ok(names)
}

/// A source that is running. It writes `trace.blktrace.N` into the bundle.
pub(crate) trait EventSource {
    /// Its name in the manifest.
    fn name(&self) -> &'static str;

    /// Can be read when there is something to poll for.
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// How long it may be left alone, if no bell rings.
    fn rhythm(&self) -> Duration {
        crate::TICK
    }

    /// Moves what has come since the last call into the bundle; called often.
    ///
    /// # Errors
    /// The source ended, or the bundle cannot be written.
    fn poll(&mut self) -> Result<()>;

    /// Events written so far, as far as is known.
    fn events(&self) -> u64;

    /// Goes on in another folder: there is what came at `at_ns`, which is now, or later, and once more what came before of
    /// requests that have not completed.
    ///
    /// # Errors
    /// As [`EventSource::poll`]; or it cannot be cut.
    fn cut(&mut self, at_ns: u64, folder: &Folder) -> Result<Cut>;

    /// Stops, and moves the rest into the bundle.
    ///
    /// # Errors
    /// As [`EventSource::poll`].
    fn stop(&mut self) -> Result<()>;

    /// Events lost, by the manifest's names; complete after [`EventSource::stop`].
    fn losses(&self) -> BTreeMap<String, u64>;

    /// Requests that were issued and have no completion in the trace, if the source counts them; complete after
    /// [`EventSource::stop`].
    fn unfinished(&self) -> Option<u64> {
        None
    }

    /// What a reader of the trace should know of its end; complete after [`EventSource::stop`].
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What others did to the trace while it ran, one line each; complete after [`EventSource::stop`].
    fn interference(&self) -> Vec<String> {
        Vec::new()
    }
}
