// SPDX-License-Identifier: MIT OR Apache-2.0
//! FAT's numbers, sectors and clusters, as types of their own.

use crate::fs::number::number;

number! {
    /// A sector of the filesystem's own size, counted from its start.
    FatSector(u64)
}

number! {
    /// The number of a cluster in the FAT and in directories; it need not exist.
    Cluster(u32)
}

/// The first cluster; the entries 0 and 1 of the FAT belong to no cluster.
pub const FAT_START_ENT: Cluster = Cluster(2);

impl Cluster {
    /// Returns the number as an index of a bit or an entry in memory.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Clusters that are consecutive on the disk and in their file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First cluster.
    pub cluster: Cluster,
    /// Length in clusters.
    pub clusters: u32,
}

impl Run {
    /// Returns the number behind the last cluster.
    pub fn end(&self) -> Cluster {
        self.cluster.plus(self.clusters)
    }

    /// Returns its clusters one by one.
    pub fn members(&self) -> impl Iterator<Item = Cluster> + use<> {
        self.cluster.until(self.end())
    }
}

/// Appends a cluster to a list of runs.
pub fn push(runs: &mut Vec<Run>, cluster: Cluster) {
    match runs.last_mut() {
        Some(last) if last.end() == cluster => last.clusters = last.clusters.saturating_add(1),
        _ => runs.push(Run {
            cluster,
            clusters: 1,
        }),
    }
}
