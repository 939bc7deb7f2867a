// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clusters by number.

/// Number of the first cluster: the entries 0 and 1 of the FAT stand for none.
pub const FAT_START_ENT: u32 = 2;

/// A cluster's number as that of a bit or of an entry in memory.
pub fn index(cluster: u32) -> usize {
    usize::try_from(cluster).unwrap_or(usize::MAX)
}

/// Clusters that follow each other on the disk and in their file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First cluster.
    pub cluster: u32,
    /// Length in clusters.
    pub clusters: u32,
}

impl Run {
    /// Its clusters, one by one.
    pub fn members(&self) -> std::ops::Range<u32> {
        self.cluster..self.cluster.saturating_add(self.clusters)
    }
}

/// Adds a cluster at the end of a list of runs.
pub fn push(runs: &mut Vec<Run>, cluster: u32) {
    match runs.last_mut() {
        Some(last) if last.cluster.checked_add(last.clusters) == Some(cluster) => {
            last.clusters = last.clusters.saturating_add(1);
        }
        _ => runs.push(Run {
            cluster,
            clusters: 1,
        }),
    }
}
