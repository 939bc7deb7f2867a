// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a recording that a bundle lacks.
//!
//! They are found by the files' names and sizes alone. The manifest lists the files with their sizes; older manifests
//! have only counts of records, which give a lower bound.

use std::fs;
use std::path::Path;

use zerocopy::LE;

use crate::archive::Cut;
use crate::blk_io_trace::BlkIoTrace;
use crate::blk_io_trace::compact::SHORTEST;
use crate::entry::operation::RawOperation;
use crate::entry::stack::RawStack;
use crate::entry::{
    RawCall, RawCgroup, RawComm, RawDirtied, RawDirtier, RawF2fs, RawFile, RawFork, RawFreed,
    RawHandle, RawProcess, RawServed,
};
use crate::layout;
use crate::length::as_u64;
use crate::manifest::Manifest;
use crate::table::HEADER_LEN;

/// The most missing CPUs that are listed: a file's name may claim any CPU number.
const LISTED: usize = 8;

/// The tables whose entries the manifest counts, and the length of an entry without a payload.
const COUNTED: [(&str, usize); 14] = [
    (layout::PROCESS, size_of::<RawProcess>()),
    (layout::FILE, size_of::<RawFile>()),
    (layout::DIRTIER, size_of::<RawDirtier>()),
    (layout::HANDLE, size_of::<RawHandle>()),
    (layout::DIRTIED, size_of::<RawDirtied>()),
    (layout::CALL, size_of::<RawCall>()),
    (layout::F2FS, size_of::<RawF2fs>()),
    (layout::FREED, size_of::<RawFreed>()),
    (layout::FORK, size_of::<RawFork>()),
    (layout::SERVED, size_of::<RawServed>()),
    (layout::CGROUP, size_of::<RawCgroup>()),
    (layout::COMM, size_of::<RawComm>()),
    (layout::STACK, size_of::<RawStack>()),
    (layout::OPERATION, size_of::<RawOperation>()),
];

/// One missing part. Displays as one line, without the bundle's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortfall {
    /// The archive ends too early.
    #[error("the archive is cut short at byte {}{}", .0.at, within(.0))]
    Cut(Cut),
    /// A file does not exist.
    #[error("{name} is missing")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A file is shorter than recorded.
    #[error("{name} is cut short: {bytes} of {of} bytes")]
    Short {
        /// Its name.
        name: String,
        /// Its length, bytes.
        bytes: u64,
        /// Its length when it was recorded, bytes.
        of: u64,
    },
    /// The event files together are too short for the number of events that was counted.
    #[error(
        "at most {at_most} of the {of} block events that were counted are there{}",
        absent(without_file)
    )]
    Events {
        /// The most events that fit into the files.
        at_most: u64,
        /// The number of events that was counted.
        of: u64,
        /// CPUs without a file, below the highest CPU that has one.
        without_file: Vec<u32>,
    },
    /// A table is too short for the number of entries that was counted.
    #[error("{name}: at most {at_most} of the {of} entries that were counted are there")]
    Entries {
        /// The table.
        name: &'static str,
        /// The most entries that fit into the file.
        at_most: u64,
        /// The number of entries that was counted.
        of: u64,
    },
}

fn within(cut: &Cut) -> String {
    let name = cut.within.iter();
    name.map(|name| format!(", within {name}")).collect()
}

fn absent(without_file: &[u32]) -> String {
    let names = without_file.iter().map(|&cpu| layout::trace_of_cpu(cpu));
    match names.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        names => format!("; there is no {names}"),
    }
}

/// Returns everything that the files in `dir` lack.
pub(crate) fn find(dir: &Path, manifest: &Manifest, cut: Option<&Cut>) -> Vec<Shortfall> {
    let mut found: Vec<_> = cut.cloned().map(Shortfall::Cut).into_iter().collect();
    if manifest.files.is_empty() {
        found.extend(by_counts(dir, manifest));
    } else {
        found.extend(by_sizes(dir, manifest));
    }
    found
}

fn by_sizes<'a>(dir: &'a Path, manifest: &'a Manifest) -> impl Iterator<Item = Shortfall> + 'a {
    // A manifest may come from anybody too, so only names that a bundle can have are looked up.
    let files = manifest.files.iter();
    let files = files.filter(|(name, _)| layout::is_known(name));
    files.filter_map(|(name, &of)| {
        let name = name.clone();
        match size(dir, &name) {
            None => Some(Shortfall::Missing { name }),
            Some(bytes) if bytes < of => Some(Shortfall::Short { name, bytes, of }),
            Some(_) => None,
        }
    })
}

fn by_counts<'a>(dir: &'a Path, manifest: &'a Manifest) -> impl Iterator<Item = Shortfall> + 'a {
    let count = |name: &str| manifest.counts.get(name).copied().unwrap_or(0);
    let tables = COUNTED.into_iter();
    let tables = tables
        .filter_map(move |(name, len)| entries(dir, name, len, count(&layout::count_of(name))));
    let snapshot = manifest.snapshot.is_some() && size(dir, layout::SNAPSHOT).is_none();
    let snapshot = snapshot.then(|| Shortfall::Missing {
        name: layout::SNAPSHOT.into(),
    });
    events(dir, count("events"))
        .into_iter()
        .chain(tables)
        .chain(snapshot)
}

/// The counted events are compared with what the event files have room for. Recorders count records, or divide a file's
/// length by that of the shortest record.
fn events(dir: &Path, of: u64) -> Option<Shortfall> {
    let names = layout::files_in(dir).unwrap_or_default();
    let at_most: u64 = names
        .iter()
        .filter(|name| layout::cpu_of(name).is_some())
        .filter_map(|name| Some(room_for(size(dir, name)?, shortest(name))))
        .fold(0, u64::saturating_add);
    (at_most < of).then(|| {
        let last = names.iter().filter_map(|name| layout::cpu_of(name)).max();
        let without_file = (0..last.unwrap_or(0))
            .filter(|&cpu| !names.contains(&layout::trace_of_cpu(cpu)))
            .take(LISTED)
            .collect();
        Shortfall::Events {
            at_most,
            of,
            without_file,
        }
    })
}

/// Returns the length of the shortest record in an event file, bytes.
fn shortest(name: &str) -> usize {
    match layout::is_compact(name) {
        true => SHORTEST,
        false => size_of::<BlkIoTrace<LE>>(),
    }
}

fn entries(dir: &Path, name: &'static str, len: usize, of: u64) -> Option<Shortfall> {
    let Some(bytes) = size(dir, name) else {
        return (of > 0).then(|| Shortfall::Missing { name: name.into() });
    };
    let at_most = room_for(bytes.saturating_sub(as_u64(HEADER_LEN)), len);
    (at_most < of).then_some(Shortfall::Entries { name, at_most, of })
}

/// Returns the most records of a length, plus any payload, that fit into `bytes`.
fn room_for(bytes: u64, len: usize) -> u64 {
    bytes.checked_div(as_u64(len)).unwrap_or(0)
}

/// Returns the length of a file in bytes; None if it is not there.
fn size(dir: &Path, name: &str) -> Option<u64> {
    let file = fs::metadata(dir.join(name)).ok()?;
    file.is_file().then_some(file.len())
}
