// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of processes and files, with what each caused beside its own contents.

use std::collections::HashMap;

use super::colour::Colour;
use super::icicle::{Basis, Icicle, Share};
use crate::facts::Facts;
use crate::tables::{Grouping, Groups, Label, Result, Table, Totals, numbers, texts};

/// The most rows of a table.
const MOST: usize = 200;

/// Returns the tables by process and by file.
///
/// # Errors
/// Returns an error if a temporary file cannot be read.
pub(super) fn tables(facts: &Facts, icicle: &Icicle) -> Result<[Table; 2]> {
    let names = match icicle.basis {
        Basis::Caused => ["cause_process", "cause_file"],
        Basis::Submitted => ["process", "file"],
    };
    let groupings = names.map(|name| Grouping::of((&[name], Some(MOST))));
    let groups = Groups::several(facts, &groupings, None)?;
    let table = |at: usize, name, shares| match groups.get(at) {
        Some(groups) => table(name, groups, shares),
        None => Ok(Table::default()),
    };
    Ok([
        table(0, "process", &icicle.processes)?,
        table(1, "file", &icicle.files)?,
    ])
}

fn table(name: &str, groups: &Groups, shares: &HashMap<Label, Share>) -> Result<Table> {
    let one = |(labels, totals): &(Vec<Label>, Totals)| {
        let label = labels.first().cloned().unwrap_or(Label::Empty);
        let share = shares.get(&label).copied().unwrap_or_default();
        (label, share, *totals)
    };
    // The rest was not summed up by colour.
    let is_one = |(label, ..): &(Label, Share, Totals)| !matches!(label, Label::Rest(_));
    let rows: Vec<(Label, Share, Totals)> = groups.groups.iter().map(one).filter(is_one).collect();
    let of = |colour: Colour| {
        let bytes =
            move |(_, share, _): &(Label, Share, Totals)| Some(share.written[colour as usize]);
        rows.iter().map(bytes)
    };
    let total = |field: fn(&Totals) -> u64| rows.iter().map(move |(.., t)| Some(field(t)));
    Table::new(vec![
        texts(
            name,
            rows.iter().map(|(label, ..)| {
                let name = label.text();
                Some(name.unwrap_or_else(|| "not known".into()))
            }),
        ),
        numbers("write_bytes", total(|t| t.write_bytes)),
        numbers("database_bytes", of(Colour::Database)),
        numbers("sqlite_journal_bytes", of(Colour::Journal)),
        numbers("other_file_bytes", of(Colour::File)),
        numbers("fs_journal_bytes", of(Colour::FilesystemJournal)),
        numbers("fs_metadata_bytes", of(Colour::Metadata)),
        numbers("unknown_bytes", of(Colour::Unknown)),
        numbers("writes", total(|t| t.writes)),
        numbers("flushes", total(|t| t.flushes)),
        numbers("read_bytes", total(|t| t.read_bytes)),
        numbers("reads", total(|t| t.reads)),
    ])
}
