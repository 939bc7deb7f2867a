// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: the handles of a journal, the blocks that each dirtied, and the system calls behind them.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::str::FromStr;

use mostrace_bundle::{Folder, Manifest};

use crate::entries::Counts;
use crate::error::Result;
use crate::kernel::Symbols;
use crate::probes::Stream;
use crate::probes::causes::CauseProbes;

pub(crate) mod calls;
mod check;
mod tables;

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
    /// Attaches the probes, into tables in `folder`.
    ///
    /// # Errors
    /// The kernel refuses them, or the bundle cannot be written.
    pub fn start(probes: &CauseProbes<'_>, folder: &Folder) -> Result<CauseSource> {
        let tables = Tables::create(folder)?;
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

    /// Stops, moves the rest into the tables, and names the functions.
    ///
    /// # Errors
    /// As [`CauseSource::poll`].
    pub fn stop(&mut self, manifest: &mut Manifest) -> Result<()> {
        self.stream.finish()?;
        self.stream.sink_mut().flush()?;
        let functions = self.stream.sink().functions();
        manifest.functions = Symbols::read().around(functions);
        Ok(())
    }

    /// Holds the tables, which have to be whole, against the journal's copies.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn check(folder: &Folder, manifest: &mut Manifest) -> Result<()> {
        manifest.causes = Some(check::compare(folder)?);
        Ok(())
    }
}
