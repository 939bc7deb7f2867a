// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares what handles dirtied with what the journal copied.
//!
//! jbd2 writes one copy of each buffer that a transaction's handles modified, and counts for each handle the buffers that it was
//! the first to modify. The two sums are equal, except for buffers that were forgotten again.

use std::collections::{BTreeMap, HashSet};

use mostrace_bundle::entry::{Entry, Jbd2, handle_flags};
use mostrace_bundle::manifest::Causes;
use mostrace_bundle::table::TableReader;
use mostrace_bundle::{Folder, layout};

use crate::error::Result;

/// One transaction of one journal.
#[derive(Default)]
struct Transaction {
    copies: u64,
    dirtied: u64,
    named: u64,
    /// True if a handle was open when the recording began, so that its earlier work is not known.
    is_torn: bool,
    has_handle: bool,
}

/// Compares the tables of a recording that has stopped.
///
/// # Errors
/// Returns an error if the tables cannot be read.
pub(crate) fn compare(folder: &Folder) -> Result<Causes> {
    let mut transactions: BTreeMap<u32, Transaction> = BTreeMap::new();
    let mut named: HashSet<(u32, u64)> = HashSet::new();
    each(folder, layout::DIRTIED, |entry| {
        if let Entry::Dirtied(d) = entry {
            named.insert((d.tid.get(), d.head.sector.get()));
        }
    })?;
    each(folder, layout::HANDLE, |entry| {
        if let Entry::Handle(h) = entry {
            let transaction = transactions.entry(h.tid.get()).or_default();
            let partial = [handle_flags::UNSEEN, handle_flags::RESTARTED];
            transaction.is_torn |= partial.iter().any(|f| h.head.flags.has(*f));
            transaction.has_handle = true;
            transaction.dirtied += u64::from(h.dirtied.get());
        }
    })?;
    let first = transactions.keys().next().copied();
    each(folder, layout::PROCESS, |entry| {
        if let Entry::Process(p) = entry
            && [Jbd2::METADATA_COPY, Jbd2::DATA_COPY].contains(&p.jbd2)
            && let Some(transaction) = transactions.get_mut(&p.tid.get())
        {
            transaction.copies += 1;
            let is_named = named.contains(&(p.tid.get(), p.home_sector.get()));
            transaction.named += u64::from(is_named);
        }
    })?;
    let mut sums = Causes::default();
    // The first transaction may have had handles before the recording.
    let whole = transactions
        .iter()
        .filter(|(tid, t)| Some(**tid) != first && !t.is_torn && t.has_handle && t.copies > 0);
    for (_, t) in whole {
        sums.transactions += 1;
        sums.copies += t.copies;
        sums.dirtied += t.dirtied;
        sums.named += t.named;
    }
    Ok(sums)
}

fn each(folder: &Folder, name: &str, mut take: impl FnMut(&Entry)) -> Result<()> {
    let path = folder.path().join(name);
    let table = TableReader::new(folder.read(name)?, &path, true)?;
    for entry in table {
        take(&entry?);
    }
    Ok(())
}
