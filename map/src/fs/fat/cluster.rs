// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers that FAT counts with: sectors and clusters.

use crate::fs::number::number;

number! {
    /// A sector of the filesystem's own size, counted from its start.
    FatSector(u64)
}

number! {
    /// A cluster as the FAT and the directories number it, also one that there is not.
    Cluster(u32)
}

/// The first cluster: the entries 0 and 1 of the FAT stand for none.
pub const FAT_START_ENT: Cluster = Cluster(2);

impl Cluster {
    /// Its number as that of a bit or of an entry in memory.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Clusters that follow each other on the disk and in their file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First cluster.
    pub cluster: Cluster,
    /// Length in clusters.
    pub clusters: u32,
}

impl Run {
    /// One past the last cluster.
    pub fn end(&self) -> Cluster {
        self.cluster.plus(self.clusters)
    }

    /// Its clusters, one by one.
    pub fn members(&self) -> impl Iterator<Item = Cluster> + use<> {
        self.cluster.until(self.end())
    }
}

/// Adds a cluster at the end of a list of runs.
pub fn push(runs: &mut Vec<Run>, cluster: Cluster) {
    match runs.last_mut() {
        Some(last) if last.end() == cluster => last.clusters = last.clusters.saturating_add(1),
        _ => runs.push(Run {
            cluster,
            clusters: 1,
        }),
    }
}
