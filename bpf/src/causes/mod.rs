// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: the handles of a journal, the blocks that each dirtied, and the system calls behind them.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::str::FromStr;

use mostrace_bundle::Folder;

use crate::entries::{Counts, Cut};
use crate::error::Result;
use crate::machine::kernel::Symbols;
use crate::names::NameFilter;
use crate::probes::Stream;
use crate::probes::causes::CauseProbes;

pub(crate) mod calls;
mod check;
mod family;
mod tables;

pub(crate) use check::compare;
pub(crate) use tables::Tables;

/// `--causes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Causes {
    /// By our probes, if the kernel takes them, or by the kernel's recorder, if that is read.
    Auto,
    /// By our probes.
    Bpf,
    /// By the kernel's own recorder, which has to be the source of entries too.
    Kernel,
    /// None.
    None,
}

impl FromStr for Causes {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Causes, String> {
        Ok(match text {
            "auto" => Causes::Auto,
            "bpf" => Causes::Bpf,
            "kernel" => Causes::Kernel,
            "none" => Causes::None,
            other => return Err(format!("`{other}` is none of auto, bpf, kernel, none")),
        })
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Causes::Auto => "auto",
            Causes::Bpf => "bpf",
            Causes::Kernel => "kernel",
            Causes::None => "none",
        })
    }
}

/// Where causes come from while they are recorded.
pub(crate) trait CauseSource {
    /// Its name in the manifest.
    fn name(&self) -> &'static str;

    /// Can be read when there is something to poll for.
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The command has been started, as this process. Until it is told nothing is moved into the tables of what it does.
    fn begin(&mut self, _command: u32) {}

    /// Moves what has come since the last call into the tables.
    ///
    /// # Errors
    /// What came makes no sense, or the bundle cannot be written.
    fn poll(&mut self) -> Result<()>;

    /// Entries kept so far, by the manifest's names.
    fn counts(&self) -> Counts;

    /// Goes on in another folder, with what the transactions that may not be committed yet have there too.
    ///
    /// # Errors
    /// As [`CauseSource::poll`].
    fn cut(&mut self, folder: &Folder) -> Result<Cut>;

    /// Stops, and moves the rest into the tables.
    ///
    /// # Errors
    /// As [`CauseSource::poll`].
    fn stop(&mut self) -> Result<()>;

    /// The names of the functions that began handles, in the order of their numbers in the tables. `known` are those that
    /// were asked for before.
    fn functions(&self, known: &[String]) -> Vec<String>;
}

/// The attached probes of causes.
pub(crate) struct BpfCauses {
    stream: Stream<Tables>,
}

impl BpfCauses {
    /// Attaches the probes, into tables in `folder`. If the recording `is_cut`, [`CauseSource::cut`] will be called.
    ///
    /// # Errors
    /// The kernel refuses them, or the bundle cannot be written.
    pub fn start(
        probes: &CauseProbes<'_>,
        folder: &Folder,
        names: NameFilter,
        is_cut: bool,
    ) -> Result<BpfCauses> {
        let tables = Tables::create(folder, names, is_cut)?;
        let stream = probes.attach(tables, Tables::take)?;
        Ok(BpfCauses { stream })
    }
}

impl CauseSource for BpfCauses {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.bell())
    }

    fn begin(&mut self, command: u32) {
        self.stream.sink_mut().begin(command);
    }

    fn poll(&mut self) -> Result<()> {
        self.stream.drain()?;
        self.stream.sink_mut().flush()
    }

    fn counts(&self) -> Counts {
        self.stream.sink().counts()
    }

    fn cut(&mut self, folder: &Folder) -> Result<Cut> {
        self.stream.take_rest()?;
        self.stream.sink_mut().cut(folder)
    }

    fn stop(&mut self) -> Result<()> {
        self.stream.finish()?;
        self.stream.sink_mut().flush()
    }

    fn functions(&self, known: &[String]) -> Vec<String> {
        named(self.stream.sink().functions(), known)
    }
}

/// What of the kernel's recorder is of causes: whoever reads its stream puts it into the tables.
pub(crate) struct KernelCauses(pub Rc<RefCell<Tables>>);

impl CauseSource for KernelCauses {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn poll(&mut self) -> Result<()> {
        self.0.borrow_mut().flush()
    }

    fn counts(&self) -> Counts {
        self.0.borrow().counts()
    }

    fn cut(&mut self, folder: &Folder) -> Result<Cut> {
        self.0.borrow_mut().cut(folder)
    }

    fn stop(&mut self) -> Result<()> {
        self.0.borrow_mut().flush()
    }

    fn functions(&self, known: &[String]) -> Vec<String> {
        named(self.0.borrow().functions(), known)
    }
}

/// The functions at these addresses. A recording that is cut asks at each cut, mostly for the same ones, and all of the kernel's
/// symbols are read for them.
fn named(addresses: &[u64], known: &[String]) -> Vec<String> {
    match addresses.len() == known.len() {
        true => known.to_vec(),
        false => Symbols::read().around(addresses),
    }
}
