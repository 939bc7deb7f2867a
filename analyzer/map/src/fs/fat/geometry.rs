// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversion of clusters to sectors and bytes.

use std::ops::Range;

use fixedbitset::FixedBitSet;

use super::boot_record::BootRecord;
use super::cluster::{Cluster, FAT_START_ENT, FatSector, Run};

impl BootRecord {
    /// Returns an empty set for clusters, by their numbers.
    pub fn no_clusters(&self) -> FixedBitSet {
        FixedBitSet::with_capacity(self.max_cluster.index())
    }

    /// Returns the byte offset of a sector from the start of the filesystem.
    pub fn byte_of(&self, sector: FatSector) -> u64 {
        sector.0.saturating_mul(self.sector_size.into())
    }

    /// Returns the sector behind the last one.
    pub fn end(&self) -> FatSector {
        FatSector(self.total_sectors.into())
    }

    /// Returns the first sector of a cluster, which must be in `FAT_START_ENT..max_cluster`.
    pub fn sector_of(&self, cluster: Cluster) -> FatSector {
        let before = u64::from(FAT_START_ENT.up_to(cluster));
        let sectors = before.saturating_mul(self.sec_per_clus.into());
        self.data_start.plus(sectors)
    }

    /// Returns the sectors of a run of clusters, which must all exist.
    pub fn sectors_of(&self, run: Run) -> Range<FatSector> {
        self.sector_of(run.cluster)..self.sector_of(run.end())
    }

    /// Returns the size of a cluster in bytes, up to 512 KiB.
    pub fn cluster_size(&self) -> u32 {
        self.sector_size.saturating_mul(self.sec_per_clus)
    }

    /// Returns log2 of the number of directory entries in a sector.
    pub fn dir_per_block_bits(&self) -> u32 {
        (self.sector_size >> 5).trailing_zeros()
    }
}
