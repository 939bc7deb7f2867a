// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clusters of one file, one after the other.

use super::cluster::{Cluster, Run, push};
use super::table::{Entry, Table};
use crate::fs::bits;
use fixedbitset::FixedBitSet;

/// Where a chain stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At its end.
    End,
    /// At its last cluster, which is marked as bad. Linux takes that for the end too.
    Bad(Cluster),
    /// Before a cluster that the FAT says is free.
    Free(Cluster),
    /// Before a number that no cluster has.
    Outside(Cluster),
    /// Before one of its own clusters.
    Circle(Cluster),
    /// Before a cluster of another file.
    Taken(Cluster),
}

/// A file's clusters, as far as they are its own.
pub struct Chain {
    pub runs: Vec<Run>,
    /// Length in clusters.
    pub clusters: u32,
    pub stop: Stop,
}

/// Follows the chain that begins with a cluster, and takes the clusters that nobody has taken.
pub fn follow(table: &Table, taken: &mut FixedBitSet, start: Cluster) -> Chain {
    let mut runs: Vec<Run> = Vec::new();
    let mut clusters = 0u32;
    let mut at = start;
    let stop = loop {
        if !table.has(at) {
            break Stop::Outside(at);
        }
        let entry = table.entry(at);
        if entry == Entry::Free {
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
            Entry::Next(next) => at = next,
            Entry::Bad => break Stop::Bad(at),
            Entry::End | Entry::Free => break Stop::End,
        }
    };
    Chain {
        runs,
        clusters,
        stop,
    }
}
