// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: the handles of a journal, the blocks that each dirtied, and the system calls behind them.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::str::FromStr;

use mostrace_bundle::Folder;

use crate::entries::{Counts, Cut};
use crate::error::Result;
use crate::kernel::Symbols;
use crate::probes::Stream;
use crate::probes::causes::CauseProbes;

pub(crate) mod calls;
mod check;
mod tables;

pub(crate) use check::compare;
use tables::Tables;

/// `--causes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Causes {
    /// By our probes, if the kernel takes them.
    Auto,
    /// By our probes.
    Bpf,
    /// None.
    None,
}

impl FromStr for Causes {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Causes, String> {
        Ok(match text {
            "auto" => Causes::Auto,
            "bpf" => Causes::Bpf,
            "none" => Causes::None,
            other => return Err(format!("`{other}` is none of auto, bpf, none")),
        })
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Causes::Auto => "auto",
            Causes::Bpf => "bpf",
            Causes::None => "none",
        })
    }
}

/// The attached probes of causes.
pub(crate) struct CauseSource {
    stream: Stream<Tables>,
}

impl CauseSource {
    /// Attaches the probes, into tables in `folder`. If the recording `is_cut`, [`CauseSource::cut`] will be called.
    ///
    /// # Errors
    /// The kernel refuses them, or the bundle cannot be written.
    pub fn start(probes: &CauseProbes<'_>, folder: &Folder, is_cut: bool) -> Result<CauseSource> {
        let tables = Tables::create(folder, is_cut)?;
        let stream = probes.attach(tables, Tables::take)?;
        Ok(CauseSource { stream })
    }

    /// Its name in the manifest.
    pub fn name(&self) -> &'static str {
        "bpf"
    }

    /// Can be read when there is something to poll for.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.stream.bell()
    }

    /// Moves what has come since the last call into the tables.
    ///
    /// # Errors
    /// What came makes no sense, or the bundle cannot be written.
    pub fn poll(&mut self) -> Result<()> {
        self.stream.drain()?;
        self.stream.sink_mut().flush()
    }

    /// Entries kept so far, by the manifest's names.
    pub fn counts(&self) -> Counts {
        self.stream.sink().counts()
    }

    /// Goes on in another folder, with what the transactions that may not be committed yet have there too.
    ///
    /// # Errors
    /// As [`CauseSource::poll`].
    pub fn cut(&mut self, folder: &Folder) -> Result<Cut> {
        self.stream.take_rest()?;
        self.stream.sink_mut().cut(folder)
    }

    /// Stops, and moves the rest into the tables.
    ///
    /// # Errors
    /// As [`CauseSource::poll`].
    pub fn stop(&mut self) -> Result<()> {
        self.stream.finish()?;
        self.stream.sink_mut().flush()
    }

    /// The names of the functions that began handles, in the order of their numbers in the tables.
    pub fn functions(&self) -> Vec<String> {
        Symbols::read().around(self.stream.sink().functions())
    }
}
