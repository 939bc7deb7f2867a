// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells as one table, and the claims as another.

use super::published::Figure;
use super::{Cell, Definition, Figures, Results, Verdict};
use crate::tables::{Result, Table, numbers, reals, texts};

/// Roles of data that have a column.
const ROLES: [&str; 4] = ["db", "rollback_journal", "wal", "other"];

/// A cell's runs together.
pub(super) struct Summary {
    /// Added up.
    sum: Figures,
    runs: u64,
    /// By how much the bytes of a transaction differ between them: the largest less the smallest, per cent of the mean.
    spread_percent: f64,
}

impl Summary {
    /// None of a cell that was not measured yet.
    pub(super) fn of(cell: &Cell, results: &Results) -> Option<Summary> {
        let all: Vec<&Figures> = results.of(cell).map(|run| &run.figures).collect();
        let (first, others) = all.split_first()?;
        let sum = others.iter().fold((*first).clone(), add);
        let bytes = all.iter().map(|f| f.bytes_per_transaction());
        let (least, most) = bytes.fold((f64::MAX, 0.0_f64), |(a, b), n| (a.min(n), b.max(n)));
        let mean = sum.bytes_per_transaction();
        Some(Summary {
            spread_percent: if mean > 0.0 {
                (most - least) * 100.0 / mean
            } else {
                0.0
            },
            runs: all.len() as u64,
            sum,
        })
    }

    fn each(&self, of: u64) -> f64 {
        of as f64 / self.sum.transactions.max(1) as f64
    }

    /// None where the command did not tell its time.
    fn per_second(&self) -> Option<f64> {
        let seconds = self.sum.elapsed_ns as f64 / 1e9;
        (seconds > 0.0).then(|| self.sum.transactions as f64 / seconds)
    }

    /// A figure as it is claimed: without what comes `besides` in each run.
    pub(super) fn figure(&self, figure: Figure, besides: f64) -> f64 {
        let sum = &self.sum;
        let each =
            |of: u64| (of as f64 - besides * self.runs as f64) / sum.transactions.max(1) as f64;
        match figure {
            Figure::Syncs => each(sum.syncs),
            Figure::Writes => each(sum.writes),
            Figure::WriteBytes => each(sum.write_bytes),
            Figure::CalledBytes => each(sum.called_bytes),
            Figure::Flushes => each(sum.flushes),
            Figure::Amplification => sum.write_bytes as f64 / sum.payload_bytes.max(1) as f64,
            Figure::JournalPercent => sum.percent("journal"),
            Figure::MetadataPercent => sum.percent("metadata"),
            Figure::DbPercent => sum.percent("db"),
            Figure::JournalingPercent => {
                let journals = ["journal", "rollback_journal", "wal"];
                journals.iter().map(|layer| sum.percent(layer)).sum()
            }
            Figure::PerSecond => self.per_second().unwrap_or(0.0),
            Figure::DataPercent => ROLES.iter().map(|role| sum.percent(role)).sum(),
        }
    }
}

fn add(mut sum: Figures, more: &&Figures) -> Figures {
    let pairs = [
        (&mut sum.transactions, more.transactions),
        (&mut sum.payload_bytes, more.payload_bytes),
        (&mut sum.called_bytes, more.called_bytes),
        (&mut sum.syncs, more.syncs),
        (&mut sum.writes, more.writes),
        (&mut sum.write_bytes, more.write_bytes),
        (&mut sum.read_bytes, more.read_bytes),
        (&mut sum.flushes, more.flushes),
        (&mut sum.elapsed_ns, more.elapsed_ns),
    ];
    for (sum, more) in pairs {
        *sum += more;
    }
    sum.transactions_sure = sum.transactions_sure.max(more.transactions_sure);
    for (parts, more) in [
        (&mut sum.layers, &more.layers),
        (&mut sum.causes, &more.causes),
    ] {
        for (name, bytes) in more {
            *parts.entry(name.clone()).or_default() += bytes;
        }
    }
    sum
}

/// A row for each cell that was measured: its parameters; sums for each transaction, over all of its runs.
///
/// # Errors
/// A parameter is called as one of the columns.
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
    columns.push(reals("device_flushes", each(|f| f.flushes)));
    columns.push(reals("payload_bytes", each(|f| f.payload_bytes)));
    columns.push(reals("called_bytes", each(|f| f.called_bytes)));
    columns.push(reals("write_bytes", each(|f| f.write_bytes)));
    for layer in ["journal", "metadata"]
        .iter()
        .chain(&ROLES)
        .chain(&["unknown"])
    {
        let values = real(&|s| Some(s.each(s.sum.layer(layer))));
        columns.push(reals(&format!("{layer}_bytes"), values));
    }
    columns.push(reals("read_bytes", each(|f| f.read_bytes)));
    let amplification = |s: &Summary| {
        let payload = s.sum.payload_bytes;
        (payload > 0).then(|| s.sum.write_bytes as f64 / payload as f64)
    };
    columns.push(reals("amplification", real(&amplification)));
    columns.push(reals("per_second", real(&Summary::per_second)));
    columns.push(reals("spread_percent", real(&|s| Some(s.spread_percent))));
    let cause = rows
        .iter()
        .map(|(_, s)| s.sum.main_cause().map(|(name, _)| name.to_owned()));
    columns.push(texts("main_cause", cause));
    let percent = real(&|s| s.sum.main_cause().map(|(_, percent)| percent));
    columns.push(reals("main_cause_percent", percent));
    Table::new(columns)
}

/// A row for each claim and cell: what was published, what was measured, and whether they agree.
///
/// # Errors
/// Never, as no two columns have one name.
pub fn claims(verdicts: &[Verdict<'_>]) -> Result<Table> {
    let text = |of: &dyn Fn(&Verdict<'_>) -> String| {
        verdicts.iter().map(|v| Some(of(v))).collect::<Vec<_>>()
    };
    let figure = |v: &Verdict<'_>| match &v.claim.to {
        None => v.claim.figure.to_string(),
        Some(to) => {
            let to: Vec<String> = to
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!("{} to that of {}", v.claim.figure, to.join(" "))
        }
    };
    Table::new(vec![
        texts("cell", text(&|v| v.cell.key())),
        texts("figure", text(&figure)),
        texts("published", text(&|v| v.claim.words())),
        reals("ours", verdicts.iter().map(|v| Some(v.ours))),
        texts(
            "verdict",
            text(&|v| if v.agrees { "agrees" } else { "differs" }.into()),
        ),
        texts("source", text(&|v| v.claim.source.clone())),
        texts(
            "why",
            verdicts
                .iter()
                .map(|v| Some(v.claim.why.clone()).filter(|w| !w.is_empty())),
        ),
    ])
}
