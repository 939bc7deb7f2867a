// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a cell, summed up.

use super::repeat::half_width_percent;
use super::{Cell, Figure, Figures, Results};

/// The runs of a cell, summed up.
pub(super) struct Summary {
    /// The sums over all runs.
    pub(super) sum: Figures,
    pub(super) runs: u64,
    /// Half the width of the 95 % confidence interval of the mean bytes per transaction, per cent of that mean. None for a
    /// single run.
    pub(super) interval_percent: Option<f64>,
}

impl Summary {
    /// Sums up a cell; None if it was not measured yet.
    pub(super) fn of(cell: &Cell, results: &Results) -> Option<Summary> {
        let all: Vec<&Figures> = results.of(cell).map(|run| &run.figures).collect();
        let (first, others) = all.split_first()?;
        let bytes: Vec<f64> = all.iter().map(|f| f.bytes_per_transaction()).collect();
        Some(Summary {
            sum: others.iter().fold((*first).clone(), add),
            runs: all.len() as u64,
            interval_percent: half_width_percent(&bytes),
        })
    }

    /// Divides by the number of transactions.
    pub(super) fn each(&self, of: u64) -> f64 {
        of as f64 / self.sum.transactions.max(1) as f64
    }

    /// Returns transactions per second; None if the command did not report its time.
    pub(super) fn per_second(&self) -> Option<f64> {
        let seconds = self.sum.elapsed_ns as f64 / 1e9;
        (seconds > 0.0).then(|| self.sum.transactions as f64 / seconds)
    }

    /// Returns the bytes written per byte stored.
    pub(super) fn amplification(&self) -> Option<f64> {
        let payload = self.sum.payload_bytes;
        (payload > 0).then(|| self.sum.write_bytes as f64 / payload as f64)
    }

    /// Returns a figure in the terms of a claim, without what occurs `besides` once in each run; None if it is unknown.
    pub(super) fn figure(&self, figure: Figure, besides: f64) -> Option<f64> {
        let sum = &self.sum;
        let each =
            |of: u64| (of as f64 - besides * self.runs as f64) / sum.transactions.max(1) as f64;
        Some(match figure {
            Figure::Syncs => each(sum.syncs),
            Figure::Writes => each(sum.writes),
            Figure::WriteBytes => each(sum.write_bytes),
            Figure::CalledBytes => each(sum.called_bytes),
            Figure::Flushes => each(sum.flushes),
            Figure::Amplification => return self.amplification(),
            Figure::JournalPercent => sum.percent(&["journal"]),
            Figure::JournalWritesPercent => {
                sum.journal_writes? as f64 * 100.0 / sum.writes.max(1) as f64
            }
            Figure::MetadataPercent => sum.percent(&["metadata"]),
            Figure::DataPercent => {
                let data = sum.rest(&["journal", "metadata", "unknown"]);
                data as f64 * 100.0 / sum.write_bytes.max(1) as f64
            }
            Figure::DbPercent => sum.percent(&["db"]),
            Figure::JournalingPercent => {
                sum.percent(&["journal", "rollback_journal", "wal", "super_journal"])
            }
            Figure::PerSecond => return self.per_second(),
        })
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
    // If it is unknown for one run, it is unknown for all.
    let both = sum.journal_writes.zip(more.journal_writes);
    sum.journal_writes = both.map(|(sum, more)| sum + more);
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
