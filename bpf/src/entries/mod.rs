// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where entries come from: three sources, the same tables out.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::time::Duration;

use mostrace_bundle::Folder;

use crate::causes::CauseSource;
use crate::cut::Ends;
use crate::error::Result;
use crate::probes::Teller;

pub(crate) mod bpf;
pub(crate) mod kernel;
mod parameters;
mod stream;
mod tables;

pub(crate) use tables::{Counts, FileNames, Table, Tables};

/// What a source has to say where the recording is cut.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Entries of the segment that ends, without those that were repeated at its beginning.
    pub counts: Counts,
    /// Of the next segment's tables, by name: where its own entries begin, behind those that are in the ones before too.
    pub own_from: BTreeMap<String, u64>,
}

/// A source that is running. It writes the entry tables into the bundle.
pub(crate) trait EntrySource {
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

    /// What leads to causes, if it comes from the same place.
    fn causes(&self) -> Option<Box<dyn CauseSource>> {
        None
    }

    /// What lets its probes tell block events too, if it has such probes; once.
    fn teller(&mut self) -> Option<Teller> {
        None
    }

    /// Moves what has come since the last call into the tables; called often.
    ///
    /// # Errors
    /// What came makes no sense, or the bundle cannot be written.
    fn poll(&mut self) -> Result<()>;

    /// Entries kept so far, by the manifest's names.
    fn counts(&self) -> Counts;

    /// Goes on in another folder: there is what came at `at_ns`, which is now, or later, and once more what came before and
    /// none of `ends` ended.
    ///
    /// # Errors
    /// As [`EntrySource::poll`].
    fn cut(&mut self, at_ns: u64, folder: &Folder, ends: Ends) -> Result<Cut>;

    /// Stops, and moves the rest into the tables.
    ///
    /// # Errors
    /// As [`EntrySource::poll`].
    fn stop(&mut self) -> Result<()>;

    /// What was lost, by the manifest's names; complete after [`EntrySource::stop`].
    ///
    /// # Errors
    /// The kernel does not give the counters.
    fn losses(&self) -> Result<BTreeMap<String, u64>>;

    /// What a reader of the entries should know of their end; complete after [`EntrySource::stop`].
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What others did to the entries' source while it ran, one line each; complete after [`EntrySource::stop`].
    fn interference(&self) -> Vec<String> {
        Vec::new()
    }
}

/// `--entries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// The first that works, in the order below.
    Auto,
    /// The project's own probes.
    Bpf,
    /// The kernel's own recorder, a module or built in.
    Kernel,
    /// Plain tracepoints.
    Tracefs,
    /// Block events alone.
    None,
}

impl FromStr for Entries {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Entries, String> {
        Ok(match text {
            "auto" => Entries::Auto,
            "bpf" => Entries::Bpf,
            "kernel" => Entries::Kernel,
            "tracefs" => Entries::Tracefs,
            "none" => Entries::None,
            other => {
                return Err(format!(
                    "`{other}` is none of auto, bpf, kernel, tracefs, none"
                ));
            }
        })
    }
}

impl fmt::Display for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entries::Auto => "auto",
            Entries::Bpf => "bpf",
            Entries::Kernel => "kernel",
            Entries::Tracefs => "tracefs",
            Entries::None => "none",
        })
    }
}
