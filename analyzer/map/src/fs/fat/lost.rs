// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clusters without a file: bad ones, and chains to which no directory entry leads.

use super::cluster::{Run, push};
use super::table::{FatEntry, Table};
use crate::fs::bits;
use fixedbitset::FixedBitSet;

/// The clusters that are neither free nor owned by a file.
#[derive(Default)]
pub struct Nobodys {
    pub bad: Vec<Run>,
    pub lost: Vec<Run>,
    /// Number of chains that the lost clusters form.
    pub lost_chains: u32,
}

/// Finds these clusters among those that no file has taken, and marks them as taken.
pub fn find(table: &Table, taken: &mut FixedBitSet) -> Nobodys {
    let mut found = Nobodys::default();
    let mut followed = FixedBitSet::with_capacity(taken.len());
    let is_lost = |cluster| match table.entry(cluster) {
        FatEntry::Free | FatEntry::Bad => false,
        FatEntry::Next(_) | FatEntry::End => true,
    };
    for cluster in table
        .clusters()
        .filter(|&cluster| !taken.contains(cluster.index()))
    {
        match table.entry(cluster) {
            FatEntry::Free => {}
            FatEntry::Bad => push(&mut found.bad, cluster),
            FatEntry::End => push(&mut found.lost, cluster),
            FatEntry::Next(next) => {
                push(&mut found.lost, cluster);
                bits::insert(&mut followed, next.index());
            }
        }
    }
    // First the chains with a beginning are counted, then the circular ones.
    for circles in [false, true] {
        for cluster in found.lost.iter().flat_map(Run::members) {
            if taken.contains(cluster.index()) || followed.contains(cluster.index()) != circles {
                continue;
            }
            found.lost_chains = found.lost_chains.saturating_add(1);
            let mut at = cluster;
            while table.has(at) && is_lost(at) && bits::insert(taken, at.index()) {
                if let FatEntry::Next(next) = table.entry(at) {
                    at = next;
                }
            }
        }
    }
    found
}
