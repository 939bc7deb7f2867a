// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of causes, each read only as far as is needed.

use std::collections::BTreeMap;
use std::io::Read;

use mostrace_bundle::entry::{EntryRef, RawCall, RawDirtied, RawF2fs, RawHandle};
use mostrace_bundle::table::TableReader;
use mostrace_bundle::{Error, Manifest};

use super::ahead::{LONG_NS, is_long};

/// The largest deviation of entries from time order in their table, ns.
pub(super) const DISORDER_NS: u64 = 20_000_000;
/// How far the entries of short calls are read ahead, ns.
const CALLS_NS: u64 = LONG_NS + 500_000_000;

/// The losses in the manifest that may include entries of these tables.
const LOSSES: [&str; 2] = ["causes_ring", "causes_tasks"];

/// The runs of these tables' probes that the kernel skipped. Recordings by earlier versions count those of all probes together.
const MISSES: [&str; 2] = ["causes_misses", "probe_misses"];

/// Returns true if the kernel skipped no run of a probe that makes entries of these tables.
pub fn is_without_misses(losses: &BTreeMap<String, u64>) -> bool {
    MISSES.iter().find_map(|name| losses.get(*name)) == Some(&0)
}

/// Returns true if no entry of these tables was lost. A recorder that was killed leaves no counts of losses, and other
/// recorders than the probes count otherwise: theirs are not known to be whole.
pub fn are_whole(manifest: &Manifest) -> bool {
    let losses = &manifest.losses;
    LOSSES.iter().all(|name| losses.get(*name) == Some(&0)) && is_without_misses(losses)
}

/// The age at which jbd2's timer commits a transaction unless the mount options have another, ns (`JBD2_DEFAULT_MAX_COMMIT_AGE`).
const COMMIT_NS: u64 = 5_000_000_000;

/// Returns the age at which jbd2's timer commits a transaction of the recorded filesystem, ns; None if it is not known.
pub fn commit_ns(manifest: &Manifest) -> Option<u64> {
    let filesystem = manifest.filesystem.as_ref()?;
    let mut options = filesystem.mount_options.as_deref()?.split(',');
    let seconds = options.find_map(|option| option.strip_prefix("commit="));
    match seconds.map(str::parse::<u64>) {
        None | Some(Ok(0)) => Some(COMMIT_NS),
        Some(seconds) => seconds.ok()?.checked_mul(1_000_000_000),
    }
}

/// The tables that a bundle has.
pub struct Tables<'a, R> {
    /// `handle.entries`
    pub handles: Option<&'a mut TableReader<R>>,
    /// `dirtied.entries`
    pub dirtied: Option<&'a mut TableReader<R>>,
    /// `call.entries`, which is read twice: the second reader reads all of it, for the calls that last long.
    pub calls: Option<(&'a mut TableReader<R>, &'a mut TableReader<R>)>,
    /// `f2fs.entries`
    pub f2fs: Option<&'a mut TableReader<R>>,
}

impl<R> Tables<'_, R> {
    /// Returns true if the trace has a table of the journal's handles.
    pub(super) fn has_handles(&self) -> bool {
        self.handles.is_some()
    }

    /// Returns true if the trace has a table of system calls.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.is_some()
    }
}

impl<R: Read> Tables<'_, R> {
    /// Makes the tables read on: they may have grown past the end that was reached.
    pub(super) fn go_on(&mut self) {
        let all = [&mut self.handles, &mut self.dirtied, &mut self.f2fs];
        all.into_iter().flatten().for_each(|table| table.go_on());
        if let Some((calls, all)) = &mut self.calls {
            calls.go_on();
            all.go_on();
        }
    }

    /// Returns the next handle that ended by `time_ns`.
    pub(super) fn handle(&mut self, time_ns: u64) -> Result<Option<&RawHandle>, Error> {
        match next(&mut self.handles, time_ns)? {
            Some(EntryRef::Handle(raw)) => Ok(Some(raw)),
            _ => Ok(None),
        }
    }

    /// Returns the next block that was dirtied by `time_ns`.
    pub(super) fn dirtied(&mut self, time_ns: u64) -> Result<Option<&RawDirtied>, Error> {
        match next(&mut self.dirtied, time_ns)? {
            Some(EntryRef::Dirtied(raw)) => Ok(Some(raw)),
            _ => Ok(None),
        }
    }

    /// Returns the next step of f2fs by `time_ns`.
    pub(super) fn step(&mut self, time_ns: u64) -> Result<Option<&RawF2fs>, Error> {
        match next(&mut self.f2fs, time_ns)? {
            Some(EntryRef::F2fs(raw)) => Ok(Some(raw)),
            _ => Ok(None),
        }
    }

    /// Returns the next call that may have been in progress at `time_ns`, unless it lasted long.
    pub(super) fn call(&mut self, time_ns: u64) -> Result<Option<RawCall>, Error> {
        let Some((calls, _)) = &mut self.calls else {
            return Ok(None);
        };
        let last_ns = time_ns.saturating_add(CALLS_NS);
        while let Some(entry) = calls.next_if(|head| head.time_ns.get() <= last_ns)? {
            match entry {
                EntryRef::Call(raw) if !is_long(raw) => return Ok(Some(*raw)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the next call that lasted long, of all that are in the table by now.
    pub(super) fn long_call(&mut self) -> Result<Option<RawCall>, Error> {
        let Some((_, all)) = &mut self.calls else {
            return Ok(None);
        };
        while let Some(entry) = all.next_if(|_| true)? {
            match entry {
                EntryRef::Call(raw) if is_long(raw) => return Ok(Some(*raw)),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Returns a table's next entry by `time_ns`, as far as its disorder allows.
fn next<'t, R: Read>(
    table: &'t mut Option<&mut TableReader<R>>,
    time_ns: u64,
) -> Result<Option<EntryRef<'t>>, Error> {
    let Some(table) = table else { return Ok(None) };
    let last_ns = time_ns.saturating_add(DISORDER_NS);
    table.next_if(|head| head.time_ns.get() <= last_ns)
}
