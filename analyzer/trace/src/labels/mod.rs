// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words for the numbers of processes, files and causes that rows have, as tables and answers show them.

mod files;
mod lookup;
mod processes;

pub use files::{cause_or_files, cause_or_final_files, file_label, file_labels, kind_code, roles};
pub use lookup::Lookup;
pub use processes::{causes_or_submitters, process_labels};

use crate::attribute::{File, Process};
use crate::causes::Cause;
use crate::origins::Origins;

/// What the numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Processes or files.
    Own,
    /// Causes, each of which has a process and a file.
    Cause,
}

/// Returns a value for each process, or for that of each cause.
pub fn of_processes<T>(
    origins: &Origins,
    by: By,
    value: impl Fn(usize, &Process) -> Option<T>,
) -> Vec<Option<T>> {
    let processes = &origins.names.processes;
    let value = |at: usize| value(at, processes.get(at)?);
    match by {
        By::Cause => of_causes(origins, |cause| value(cause.process.0 as usize)),
        By::Own => (0..processes.len()).map(value).collect(),
    }
}

/// Returns a value for each file, or for that of each cause.
pub fn of_files<T>(
    origins: &Origins,
    by: By,
    value: impl Fn(usize, &File) -> Option<T>,
) -> Vec<Option<T>> {
    let files = &origins.names.files;
    let value = |at: usize| value(at, files.get(at)?);
    match by {
        By::Cause => of_causes(origins, |cause| value(cause.file.0 as usize)),
        By::Own => (0..files.len()).map(value).collect(),
    }
}

/// Returns a value for each cause; there is at least one.
pub fn of_causes<T>(origins: &Origins, value: impl Fn(&Cause) -> Option<T>) -> Vec<Option<T>> {
    let unknown = origins.causes.is_empty().then_some(None);
    origins.causes.iter().map(value).chain(unknown).collect()
}

/// Returns a number for each cause whose process is known.
fn of_known_causes(origins: &Origins, number: impl Fn(&Cause) -> u32) -> Vec<Option<u32>> {
    of_causes(origins, |cause| {
        let process = origins.names.processes.get(cause.process.0 as usize)?;
        process.tgid.or(process.pid)?;
        Some(number(cause))
    })
}
