// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of clusters.

/// One bit for each cluster; what lies beyond the last is never in the set.
pub struct Bits(Vec<u64>);

impl Bits {
    /// The empty set of clusters below `max_cluster`.
    pub fn new(max_cluster: u32) -> Bits {
        let words = usize::try_from(max_cluster.div_ceil(64)).unwrap_or(0);
        Bits(vec![0; words])
    }

    /// Adds a cluster; says whether it is new.
    pub fn insert(&mut self, cluster: u32) -> bool {
        let (word, bit) = place(cluster);
        let Some(word) = self.0.get_mut(word) else {
            return false;
        };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Whether a cluster is in the set.
    pub fn has(&self, cluster: u32) -> bool {
        let (word, bit) = place(cluster);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

fn place(cluster: u32) -> (usize, u64) {
    let word = usize::try_from(cluster >> 6).unwrap_or(usize::MAX);
    (word, 1 << (cluster & 63))
}
