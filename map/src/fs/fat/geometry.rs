// SPDX-License-Identifier: MIT OR Apache-2.0
//! From clusters to sectors to bytes, by the boot record.

use std::ops::Range;

use fixedbitset::FixedBitSet;

use super::boot_record::BootRecord;
use super::cluster::{Cluster, FAT_START_ENT, FatSector, Run};

impl BootRecord {
    /// An empty set of clusters, by their numbers.
    pub fn no_clusters(&self) -> FixedBitSet {
        FixedBitSet::with_capacity(self.max_cluster.index())
    }

    /// Bytes from the start of the filesystem to a sector.
    pub fn byte_of(&self, sector: FatSector) -> u64 {
        sector.0.saturating_mul(self.sector_size.into())
    }

    /// One past the last sector.
    pub fn end(&self) -> FatSector {
        FatSector(self.total_sectors.into())
    }

    /// First sector of a cluster, which must be one of `FAT_START_ENT..max_cluster`.
    pub fn sector_of(&self, cluster: Cluster) -> FatSector {
        let before = u64::from(FAT_START_ENT.up_to(cluster));
        let sectors = before.saturating_mul(self.sec_per_clus.into());
        self.data_start.plus(sectors)
    }

    /// The sectors of clusters, which all must be there.
    pub fn sectors_of(&self, run: Run) -> Range<FatSector> {
        self.sector_of(run.cluster)..self.sector_of(run.end())
    }

    /// Bytes in a cluster, up to 512 KiB.
    pub fn cluster_size(&self) -> u32 {
        self.sector_size.saturating_mul(self.sec_per_clus)
    }

    /// log2 of the directory entries in a sector.
    pub fn dir_per_block_bits(&self) -> u32 {
        (self.sector_size >> 5).trailing_zeros()
    }
}
