// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owners of sectors.

use std::ops::Range;

use super::boot_record::BootRecord;
use super::cluster::{FatSector, Run};
use crate::class::Kind;
use crate::extent::Extent;
use crate::fs::volume::Volume;

/// The claims collected so far. A cluster is claimed once only, by the file that has taken it.
pub struct Claims<'a> {
    boot: &'a BootRecord,
    volume: Volume,
    extents: Vec<Extent>,
}

impl<'a> Claims<'a> {
    /// Starts without claims.
    pub fn new(boot: &'a BootRecord, volume: Volume) -> Claims<'a> {
        Claims {
            boot,
            volume,
            extents: Vec::new(),
        }
    }

    /// Claims sectors of the filesystem's own size for an inode (0 for none). `file_offset` is in bytes.
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

    /// Claims clusters for an inode (0 for none) that have no position in its contents.
    pub fn clusters(&mut self, run: Run, kind: Kind, inode: u64) {
        self.run(run, kind, inode, None);
    }

    /// Claims the clusters of an inode's contents, in file order.
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

    /// Returns all claims in order of precedence.
    pub fn into_extents(self) -> Vec<Extent> {
        self.extents
    }
}
