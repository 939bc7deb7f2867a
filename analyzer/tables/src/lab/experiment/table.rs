// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells as one table, and the claims as another.

use std::collections::BTreeMap;

use super::summary::Summary;
use super::{Cell, Definition, Figures, Results, Verdict};
use crate::tables::{Result, Table, numbers, reals, texts};

/// The layers that have a column of their own; those of data are roles.
const LAYERS: [&str; 7] = [
    "journal",
    "metadata",
    "db",
    "rollback_journal",
    "wal",
    "other",
    "unknown",
];

/// Returns a row for each cell that was measured, with its parameters and, over all of its runs, sums per transaction. The
/// layers' columns and `rest_bytes` add up to the bytes written: the rest is data of roles without a column, such as
/// directories, super-journals and temporary files.
///
/// # Errors
/// Returns an error if a parameter has the name of a column.
pub fn table(definition: &Definition, results: &Results) -> Result<Table> {
    let cells = definition.cells.iter();
    let rows: Vec<(&Cell, Summary)> = cells
        .filter_map(|cell| Some((cell, Summary::of(cell, results)?)))
        .collect();
    let mut columns = Vec::new();
    for name in &definition.parameters {
        let values = rows
            .iter()
            .map(|(cell, _)| cell.value(name).map(Into::into));
        columns.push(texts(name, values));
    }
    if rows.iter().any(|(cell, _)| cell.is_control()) {
        let control = |cell: &Cell| cell.is_control().then(|| cell.control_key());
        columns.push(texts("control", rows.iter().map(|(cell, _)| control(cell))));
    }
    let count = |of: fn(&Summary) -> u64| rows.iter().map(move |(_, s)| Some(of(s)));
    let real =
        |of: &dyn Fn(&Summary) -> Option<f64>| rows.iter().map(|(_, s)| of(s)).collect::<Vec<_>>();
    columns.push(numbers("runs", count(|s| s.runs)));
    columns.push(numbers("transactions", count(|s| s.sum.transactions)));
    let sure = rows.iter().map(|(_, s)| s.sum.transactions_sure.as_str());
    columns.push(texts(
        "transactions_sure",
        sure.map(|sure| Some(sure.to_owned())),
    ));
    let each = |of: fn(&Figures) -> u64| real(&move |s: &Summary| Some(s.each(of(&s.sum))));
    columns.push(reals("syncs", each(|f| f.syncs)));
    columns.push(reals("writes", each(|f| f.writes)));
    let journal_writes = real(&|s| Some(s.each(s.sum.journal_writes?)));
    columns.push(reals("journal_writes", journal_writes));
    columns.push(reals("device_flushes", each(|f| f.flushes)));
    columns.push(reals("payload_bytes", each(|f| f.payload_bytes)));
    columns.push(reals("called_bytes", each(|f| f.called_bytes)));
    columns.push(reals("write_bytes", each(|f| f.write_bytes)));
    columns.push(reals(
        "write_bytes_ci_percent",
        real(&|s| s.interval_percent),
    ));
    for layer in LAYERS {
        let values = real(&|s| Some(s.each(s.sum.layer(layer))));
        columns.push(reals(&format!("{layer}_bytes"), values));
    }
    columns.push(reals(
        "rest_bytes",
        real(&|s| Some(s.each(s.sum.rest(&LAYERS)))),
    ));
    columns.push(reals("read_bytes", each(|f| f.read_bytes)));
    columns.push(reals("amplification", real(&Summary::amplification)));
    columns.push(reals("per_second", real(&Summary::per_second)));
    let cause = rows
        .iter()
        .map(|(_, s)| s.sum.main_cause().map(|(name, _)| name.to_owned()));
    columns.push(texts("main_cause", cause));
    let percent = real(&|s| s.sum.main_cause().map(|(_, percent)| percent));
    columns.push(reals("main_cause_percent", percent));
    Table::new(columns)
}

/// Returns a row for each claim and cell: the claim and its source, the measured figure, whether they agree, and the control
/// cell's figure.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn claims(verdicts: &[Verdict<'_>]) -> Result<Table> {
    let text = |of: &dyn Fn(&Verdict<'_>) -> String| {
        verdicts.iter().map(|v| Some(of(v))).collect::<Vec<_>>()
    };
    let figure = |v: &Verdict<'_>| match &v.claim.to {
        None => v.claim.figure.to_string(),
        Some(to) => format!("{} to that of {}", v.claim.figure, words(to)),
    };
    let unit = |v: &Verdict<'_>| match &v.claim.to {
        None => v.claim.figure.unit().to_owned(),
        Some(_) => format!("ratio of {}", v.claim.figure.unit()),
    };
    let verdict = |v: &Verdict<'_>| if v.agrees() { "agrees" } else { "differs" }.to_owned();
    let control = |v: &Verdict<'_>| Some(words(&v.claim.control)).filter(|words| !words.is_empty());
    Table::new(vec![
        texts("kind", text(&|v| v.claim.kind.to_string())),
        texts("cell", text(&|v| v.cell.key())),
        texts("figure", text(&figure)),
        texts("unit", text(&unit)),
        texts("claimed", text(&|v| v.claim.words())),
        reals(
            "tolerance_percent",
            verdicts.iter().map(|v| Some(v.claim.tolerance_percent)),
        ),
        reals("ours", verdicts.iter().map(|v| Some(v.ours))),
        texts("verdict", text(&verdict)),
        texts("source", text(&|v| v.claim.source.clone())),
        texts("control", verdicts.iter().map(control)),
        reals("control_ours", verdicts.iter().map(|v| v.control)),
        texts("why", verdicts.iter().map(|v| v.why().map(str::to_owned))),
    ])
}

fn words(values: &BTreeMap<String, String>) -> String {
    let words = values.iter().map(|(name, value)| format!("{name}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_all_that_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("n.toml");
        std::fs::write(
            &file,
            "name = 'n'\ncommand = 'app {a}'\n[matrix]\na = [1]\n",
        )
        .unwrap();
        let definition = Definition::read(&file).unwrap();
        let mut results = Results::open(&file.with_extension("jsonl"), &definition).unwrap();
        let layers = [
            ("the filesystem's journal", 1),
            ("the filesystem's metadata", 2),
            ("data: db", 4),
            ("data: rollback journal", 8),
            ("data: wal", 16),
            ("data: other", 32),
            ("unknown", 64),
            // These roles have no column of their own.
            ("data", 128),
            ("data: shm", 256),
            ("data: super journal", 512),
        ];
        let figures = Figures {
            transactions: 2,
            write_bytes: 1023,
            layers: layers.map(|(name, bytes)| (name.to_owned(), bytes)).into(),
            ..Figures::default()
        };
        results.add(&definition.cells[0], figures).unwrap();
        let table = table(&definition, &results).unwrap().frame;
        let of = |name: &str| table.column(name).unwrap().f64().unwrap().get(0).unwrap();
        let parts = LAYERS.map(|layer| of(&format!("{layer}_bytes")));
        assert_eq!(of("rest_bytes"), 448.0);
        assert_eq!(
            parts.iter().sum::<f64>() + of("rest_bytes"),
            of("write_bytes")
        );
    }
}
