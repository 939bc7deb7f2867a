// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clusters that no file has: bad ones, and chains that nobody knows.

use super::bits::Bits;
use super::cluster::{Run, push};
use super::table::{Entry, Table};

/// The clusters that are neither free nor a file's.
#[derive(Default)]
pub struct Nobodys {
    pub bad: Vec<Run>,
    pub lost: Vec<Run>,
    /// How many chains the lost clusters make.
    pub lost_chains: u32,
}

/// Finds them among the clusters that no file has taken, and takes them.
pub fn find(table: &Table, taken: &mut Bits) -> Nobodys {
    let mut found = Nobodys::default();
    let mut followed = Bits::new(table.clusters().end);
    let is_lost = |cluster| match table.entry(cluster) {
        Entry::Free | Entry::Bad => false,
        Entry::Next(_) | Entry::End => true,
    };
    for cluster in table.clusters().filter(|&cluster| !taken.has(cluster)) {
        match table.entry(cluster) {
            Entry::Free => {}
            Entry::Bad => push(&mut found.bad, cluster),
            Entry::End => push(&mut found.lost, cluster),
            Entry::Next(next) => {
                push(&mut found.lost, cluster);
                followed.insert(next);
            }
        }
    }
    // First the chains that begin somewhere, then those that are circles.
    for circles in [false, true] {
        for cluster in found.lost.iter().flat_map(Run::members) {
            if taken.has(cluster) || followed.has(cluster) != circles {
                continue;
            }
            found.lost_chains = found.lost_chains.saturating_add(1);
            let mut at = cluster;
            while table.has(at) && is_lost(at) && taken.insert(at) {
                if let Entry::Next(next) = table.entry(at) {
                    at = next;
                }
            }
        }
    }
    found
}
