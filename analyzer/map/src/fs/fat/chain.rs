// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clusters of one file, one after the other.

use super::cluster::{Cluster, Run, push};
use super::table::{FatEntry, Table};
use crate::fs::bits;
use fixedbitset::FixedBitSet;

/// The place where a chain stopped, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The chain ended in order.
    End,
    /// The chain's last cluster is marked as bad, which Linux also takes for the end.
    Bad(Cluster),
    /// The next cluster is free according to the FAT.
    Free(Cluster),
    /// The next number is not a cluster's.
    Outside(Cluster),
    /// The next cluster is one of the chain's own.
    Circle(Cluster),
    /// The next cluster belongs to another file.
    Taken(Cluster),
}

/// The clusters that a file owns, up to the first that it cannot own.
pub struct Chain {
    pub runs: Vec<Run>,
    /// Length in clusters.
    pub clusters: u32,
    pub stop: Stop,
}

/// Follows the chain that begins at `start` and marks its clusters in `taken`; clusters that are taken already end it.
pub fn follow(table: &Table, taken: &mut FixedBitSet, start: Cluster) -> Chain {
    let mut runs: Vec<Run> = Vec::new();
    let mut clusters = 0u32;
    let mut at = start;
    let stop = loop {
        if !table.has(at) {
            break Stop::Outside(at);
        }
        let entry = table.entry(at);
        if entry == FatEntry::Free {
            break Stop::Free(at);
        }
        if !bits::insert(taken, at.index()) {
            let circle = runs
                .iter()
                .any(|run| (run.cluster..run.end()).contains(&at));
            break if circle {
                Stop::Circle(at)
            } else {
                Stop::Taken(at)
            };
        }
        push(&mut runs, at);
        clusters = clusters.saturating_add(1);
        match entry {
            FatEntry::Next(next) => at = next,
            FatEntry::Bad => break Stop::Bad(at),
            FatEntry::End | FatEntry::Free => break Stop::End,
        }
    };
    Chain {
        runs,
        clusters,
        stop,
    }
}
