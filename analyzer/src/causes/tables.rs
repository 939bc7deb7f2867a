// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of causes, each read just as far as is needed.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{EntryRef, RawCall, RawDirtied, RawF2fs, RawHandle};
use mostrace_bundle::table::TableReader;

/// How far entries may stand out of the order of time in their table, ns.
const DISORDER_NS: u64 = 20_000_000;
/// A call's entry is made at its return: so long a call is still found for what is written while it lasts, ns.
const LONGEST_CALL_NS: u64 = 10_000_000_000;

/// The tables that a bundle has.
pub struct Tables<'a, R> {
    /// `handle.entries`
    pub handles: Option<&'a mut TableReader<R>>,
    /// `dirtied.entries`
    pub dirtied: Option<&'a mut TableReader<R>>,
    /// `call.entries`
    pub calls: Option<&'a mut TableReader<R>>,
    /// `f2fs.entries`
    pub f2fs: Option<&'a mut TableReader<R>>,
}

impl<R: Read> Tables<'_, R> {
    /// Whether nothing is known of the journal's handles.
    pub(super) fn has_handles(&self) -> bool {
        self.handles.is_some()
    }

    /// They may have more now, behind their ends.
    pub(super) fn go_on(&mut self) {
        let all = [
            &mut self.handles,
            &mut self.dirtied,
            &mut self.calls,
            &mut self.f2fs,
        ];
        all.into_iter().flatten().for_each(|table| table.go_on());
    }

    pub(super) fn has_calls(&self) -> bool {
        self.calls.is_some()
    }

    /// The next handle that ended by this time.
    pub(super) fn handle(&mut self, time_ns: u64) -> Result<Option<&RawHandle>, Error> {
        let entry = next(&mut self.handles, time_ns.saturating_add(DISORDER_NS))?;
        Ok(entry.and_then(|entry| match entry {
            EntryRef::Handle(raw) => Some(raw),
            _ => None,
        }))
    }

    /// The next block that was dirtied by this time.
    pub(super) fn dirtied(&mut self, time_ns: u64) -> Result<Option<&RawDirtied>, Error> {
        let entry = next(&mut self.dirtied, time_ns.saturating_add(DISORDER_NS))?;
        Ok(entry.and_then(|entry| match entry {
            EntryRef::Dirtied(raw) => Some(raw),
            _ => None,
        }))
    }

    /// The next step of f2fs's by this time.
    pub(super) fn step(&mut self, time_ns: u64) -> Result<Option<&RawF2fs>, Error> {
        let entry = next(&mut self.f2fs, time_ns.saturating_add(DISORDER_NS))?;
        Ok(entry.and_then(|entry| match entry {
            EntryRef::F2fs(raw) => Some(raw),
            _ => None,
        }))
    }

    /// The next call that may have been under way at this time.
    pub(super) fn call(&mut self, time_ns: u64) -> Result<Option<&RawCall>, Error> {
        let entry = next(&mut self.calls, time_ns.saturating_add(LONGEST_CALL_NS))?;
        Ok(entry.and_then(|entry| match entry {
            EntryRef::Call(raw) => Some(raw),
            _ => None,
        }))
    }
}

fn next<'t, R: Read>(
    table: &'t mut Option<&mut TableReader<R>>,
    last_ns: u64,
) -> Result<Option<EntryRef<'t>>, Error> {
    match table {
        Some(table) => table.next_if(|head| head.time_ns.get() <= last_ns),
        None => Ok(None),
    }
}
