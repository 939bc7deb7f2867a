// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cell's runs together.

use super::repeat::half_width_percent;
use super::{Cell, Figure, Figures, Results};

/// A cell's runs together.
pub(super) struct Summary {
    /// Added up.
    pub(super) sum: Figures,
    pub(super) runs: u64,
    /// Of the bytes of a transaction: half the width of the mean's 95 % confidence interval, per cent of it. None of a single run.
    pub(super) interval_percent: Option<f64>,
}

impl Summary {
    /// None of a cell that was not measured yet.
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

    /// For each transaction.
    pub(super) fn each(&self, of: u64) -> f64 {
        of as f64 / self.sum.transactions.max(1) as f64
    }

    /// None where the command did not tell its time.
    pub(super) fn per_second(&self) -> Option<f64> {
        let seconds = self.sum.elapsed_ns as f64 / 1e9;
        (seconds > 0.0).then(|| self.sum.transactions as f64 / seconds)
    }

    /// Bytes written for each byte stored.
    pub(super) fn amplification(&self) -> Option<f64> {
        let payload = self.sum.payload_bytes;
        (payload > 0).then(|| self.sum.write_bytes as f64 / payload as f64)
    }

    /// A figure as it is claimed: without what comes `besides` in each run. None where it is not known.
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
    // Unknown of one is unknown of all.
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
