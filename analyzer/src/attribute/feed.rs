// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table read just as far as the completions have come.

use std::iter::Peekable;

use mostrace_bundle::{Entry, Error};

/// How far entries may stand out of the order of time in their table, ns: a probe takes the time
/// and then reserves its place, and may be preempted in between.
const DISORDER_NS: u64 = 20_000_000;

/// The entries of a table, in about the order of time.
pub type EntryTable<'a> = Box<dyn Iterator<Item = Result<Entry, Error>> + 'a>;

/// One entry table.
pub(super) struct Feed<'a> {
    table: Peekable<EntryTable<'a>>,
}

impl<'a> Feed<'a> {
    pub fn new(table: EntryTable<'a>) -> Self {
        Feed {
            table: table.peekable(),
        }
    }

    /// The next entry, unless it is later than `time_ns` by more than the disorder.
    pub fn next_until(&mut self, time_ns: u64) -> Result<Option<Entry>, Error> {
        let last = time_ns.saturating_add(DISORDER_NS);
        let due = |next: &Result<Entry, Error>| match next {
            Ok(entry) => entry.head().time_ns.get() <= last,
            Err(_) => true,
        };
        self.table.next_if(due).transpose()
    }
}
