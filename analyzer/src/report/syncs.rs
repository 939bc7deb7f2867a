// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls for durability: who made them for which file, how often, and how long each took.

use std::collections::HashMap;
use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, EntryRef};
use mostrace_bundle::table::TableReader;

use super::latency::Times;
use crate::causes::is_sync;
use crate::facts::Facts;
use crate::facts::labels::file_label;
use crate::tables::{Result, Table, numbers, texts};
use crate::text::escape;

/// The most processes and files that are kept apart; later ones are summed up as one.
const MOST: usize = 1000;

/// Process, call and the file's name; not the inode, because a rollback journal has one name and many inodes.
type Key = (u32, CallKind, Option<String>);

/// The calls, summed up.
#[derive(Default)]
pub(super) struct Syncs {
    /// The name of the thread that called first, and the times.
    times: HashMap<Key, (String, Times)>,
    others: Times,
}

impl Syncs {
    /// Reads the whole table; files have their final names.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub fn read<R: Read>(
        calls: &mut TableReader<R>,
        facts: &Facts,
    ) -> std::result::Result<Syncs, Error> {
        let files = facts.names().files.iter();
        let names: HashMap<(u64, u32), String> = files
            .filter_map(|file| Some(((file.inode?, file.generation?), file_label(file)?)))
            .collect();
        let mut syncs = Syncs::default();
        while let Some(entry) = calls.next_if(|_| true)? {
            let EntryRef::Call(raw) = entry else { continue };
            let kind = CallKind::of(raw.kind.get());
            if !is_sync(kind) {
                continue;
            }
            let took = raw.head.time_ns.get().saturating_sub(raw.start_ns.get());
            let file = names.get(&(raw.ino.get(), raw.generation.get()));
            let key = (raw.tgid.get(), kind, file.cloned());
            let is_full = syncs.times.len() >= MOST;
            match syncs.times.get_mut(&key) {
                Some((_, times)) => times.add(took),
                None if is_full => syncs.others.add(took),
                None => {
                    let comm = raw.comm.split(|&b| b == 0).next().unwrap_or_default();
                    let new = (escape(&facts.shown(comm)), Times::default());
                    let (_, times) = syncs.times.entry(key).or_insert(new);
                    times.add(took);
                }
            }
        }
        Ok(syncs)
    }

    /// Returns a row for each key; those with the most calls come first.
    ///
    /// # Errors
    /// Never fails, because all columns have different names.
    pub fn table(&self) -> Result<Table> {
        let mut rows: Vec<_> = self
            .times
            .iter()
            .map(|((tgid, kind, file), (comm, times))| {
                let word: &str = (*kind).into();
                (
                    format!("{comm}:{tgid}"),
                    word,
                    file.clone(),
                    times.percentiles(),
                )
            })
            .collect();
        let others = self.others.percentiles();
        if others.count > 0 {
            rows.push(("(others)".into(), "", None, others));
        }
        rows.sort_by(|a, b| (b.3.count, &a.0, &a.2).cmp(&(a.3.count, &b.0, &b.2)));
        Table::new(vec![
            texts("process", rows.iter().map(|row| Some(row.0.clone()))),
            texts("call", rows.iter().map(|row| Some(row.1.to_owned()))),
            texts("file", rows.iter().map(|row| row.2.clone())),
            numbers("calls", rows.iter().map(|row| Some(row.3.count))),
            numbers("p50_ns", rows.iter().map(|row| row.3.p50)),
            numbers("p90_ns", rows.iter().map(|row| row.3.p90)),
            numbers("p99_ns", rows.iter().map(|row| row.3.p99)),
            numbers("max_ns", rows.iter().map(|row| row.3.max)),
        ])
    }
}
