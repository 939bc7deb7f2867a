// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sectors that belong to the filesystem itself.

use super::boot_record::{BootRecord, FatBits};
use super::claims::Claims;
use crate::class::Kind;
use crate::fs::image::Image;
use crate::fs::le::u32_at;

/// `MSDOS_ROOT_INO`: the number of the root directory, which has no entry.
pub const MSDOS_ROOT_INO: u64 = 1;

/// Claims the reserved sectors, the FATs, FAT12's and FAT16's root directory, and the sectors at
/// the end that make no whole cluster.
pub fn claim(image: &Image, boot: &BootRecord, claims: &mut Claims) {
    let fat_start = u64::from(boot.fat_start);
    for sector in fsinfos(image, boot) {
        claims.sectors(sector..sector.saturating_add(1), Kind::Fsinfo, 0, None);
    }
    claims.sectors(0..fat_start, Kind::BootRecord, 0, None);
    claims.sectors(fat_start..boot.dir_start, Kind::Fat, 0, None);
    let root = boot.dir_start..boot.data_start;
    match boot.fat_bits {
        // Linux leaves room for the entries that the record counts, and never reads them.
        FatBits::ThirtyTwo => claims.sectors(root, Kind::Unmapped, 0, None),
        _ => claims.sectors(root, Kind::Directory, MSDOS_ROOT_INO, Some(0)),
    }
    let end = boot.sector_of(boot.max_cluster);
    claims.sectors(end..boot.total_sectors.into(), Kind::Unmapped, 0, None);
}

/// The free-space hints and their copy, which follows the boot record's copy, where they are.
fn fsinfos(image: &Image, boot: &BootRecord) -> Vec<u64> {
    let Some(first) = boot.fsinfo_sector else {
        return Vec::new();
    };
    let copy = boot.backup.and_then(|backup| backup.checked_add(first));
    [Some(first), copy]
        .into_iter()
        .flatten()
        .filter(|&sector| sector < boot.fat_start)
        .map(u64::from)
        .filter(|&sector| is_fsinfo(image, boot.byte_of(sector)))
        .collect()
}

/// `IS_FSINFO`.
fn is_fsinfo(image: &Image, at: u64) -> bool {
    let Ok(buf) = image.read(at, 512, "FSInfo") else {
        return false;
    };
    u32_at(&buf, 0) == Some(0x4161_5252) && u32_at(&buf, 484) == Some(0x6141_7272)
}
