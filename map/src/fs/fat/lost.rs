// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clusters that no file has: bad ones, and chains that no directory entry begins.

use super::cluster::{Run, push};
use super::table::{Entry, Table};
use crate::fs::bits;
use fixedbitset::FixedBitSet;

/// The clusters that are neither free nor a file's.
#[derive(Default)]
pub struct Nobodys {
    pub bad: Vec<Run>,
    pub lost: Vec<Run>,
    /// How many chains the lost clusters make.
    pub lost_chains: u32,
}

/// Finds them among the clusters that no file has taken, and takes them.
pub fn find(table: &Table, taken: &mut FixedBitSet) -> Nobodys {
    let mut found = Nobodys::default();
    let mut followed = FixedBitSet::with_capacity(taken.len());
    let is_lost = |cluster| match table.entry(cluster) {
        Entry::Free | Entry::Bad => false,
        Entry::Next(_) | Entry::End => true,
    };
    for cluster in table
        .clusters()
        .filter(|&cluster| !taken.contains(cluster.index()))
    {
        match table.entry(cluster) {
            Entry::Free => {}
            Entry::Bad => push(&mut found.bad, cluster),
            Entry::End => push(&mut found.lost, cluster),
            Entry::Next(next) => {
                push(&mut found.lost, cluster);
                bits::insert(&mut followed, next.index());
            }
        }
    }
    // First the chains that begin somewhere, then those that are circles.
    for circles in [false, true] {
        for cluster in found.lost.iter().flat_map(Run::members) {
            if taken.contains(cluster.index()) || followed.contains(cluster.index()) != circles {
                continue;
            }
            found.lost_chains = found.lost_chains.saturating_add(1);
            let mut at = cluster;
            while table.has(at) && is_lost(at) && bits::insert(taken, at.index()) {
                if let Entry::Next(next) = table.entry(at) {
                    at = next;
                }
            }
        }
    }
    found
}
