// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which sectors are whose.

use std::ops::Range;

use super::boot_record::BootRecord;
use super::cluster::{FatSector, Run};
use crate::class::Kind;
use crate::fs::volume::Volume;
use crate::map::Extent;

/// The claims so far. Clusters are claimed once only, by who has taken them.
pub struct Claims<'a> {
    boot: &'a BootRecord,
    volume: Volume,
    extents: Vec<Extent>,
}

impl<'a> Claims<'a> {
    /// No claims yet.
    pub fn new(boot: &'a BootRecord, volume: Volume) -> Claims<'a> {
        Claims {
            boot,
            volume,
            extents: Vec::new(),
        }
    }

    /// Claims sectors of the filesystem's size for an inode, 0 for none. `file_offset` is in bytes.
    pub fn sectors(
        &mut self,
        sectors: Range<FatSector>,
        kind: Kind,
        inode: u64,
        file_offset: Option<u64>,
    ) {
        let length = sectors.start.up_to(sectors.end);
        if length > 0 {
            self.extents.push(Extent {
                inode,
                file_offset,
                ..self.volume.extent(sectors.start, length, kind)
            });
        }
    }

    /// Claims clusters of an inode, 0 for none, without a place in its contents.
    pub fn clusters(&mut self, run: Run, kind: Kind, inode: u64) {
        self.run(run, kind, inode, None);
    }

    /// Claims the clusters of an inode's contents, in their order.
    pub fn contents(&mut self, runs: &[Run], kind: Kind, inode: u64) {
        let mut offset = 0u64;
        for &run in runs {
            self.run(run, kind, inode, Some(offset));
            let bytes = u64::from(run.clusters).saturating_mul(self.boot.cluster_size().into());
            offset = offset.saturating_add(bytes);
        }
    }

    fn run(&mut self, run: Run, kind: Kind, inode: u64, file_offset: Option<u64>) {
        let sectors = self.boot.sectors_of(run);
        self.sectors(sectors, kind, inode, file_offset);
    }

    /// All claims, in the order in which they count.
    pub fn into_extents(self) -> Vec<Extent> {
        self.extents
    }
}
