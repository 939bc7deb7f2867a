// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct fat_boot_sector`: the fields from which the layout follows.
//!
//! It is read as Linux does (`fat_read_bpb` and `fat_fill_super` in fs/fat/inode.c): a volume whose 16-bit FAT length
//! is 0 is FAT32, and for others the number of clusters decides between FAT12 and FAT16. In Microsoft's fatgen103 the
//! number of clusters alone decides; the two differ only for a FAT32 with less than 65525 clusters, as in small test
//! images.

use super::cluster::{Cluster, FAT_START_ENT, FatSector};
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le::{u16_at, u32_at};
use crate::fs::notices::Notices;

/// Number of bytes of a boot record that are read, whatever the sector size.
const RECORD: usize = 512;
/// The sector in which FAT32's backup is looked for if the first boot record is damaged.
const BACKUP: FatSector = FatSector(6);
/// The largest numbers of clusters that FAT12, FAT16 and FAT32 can have.
const MAX_FAT12: u32 = 0xff4;
const MAX_FAT16: u32 = 0xfff4;
const MAX_FAT32: u32 = 0x0fff_fff6;

/// Width of an entry of the FAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatBits {
    /// FAT12.
    Twelve,
    /// FAT16.
    Sixteen,
    /// FAT32, whose entries use 28 bits.
    ThirtyTwo,
}

/// The fields that are used here, with the names of `struct msdos_sb_info`. All sectors are the filesystem's own, of
/// `sector_size` bytes, and count from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootRecord {
    /// Size of a sector, 512 to 4096 bytes.
    pub sector_size: u32,
    pub sec_per_clus: u32,
    pub fats: u32,
    pub fat_bits: FatBits,
    /// First sector of the first FAT, which is the number of reserved sectors.
    pub fat_start: FatSector,
    /// Length of one FAT in sectors.
    pub fat_length: u32,
    /// First sector of the root directory of FAT12 and FAT16.
    pub dir_start: FatSector,
    /// First sector of cluster 2.
    pub data_start: FatSector,
    pub total_sectors: u32,
    /// One past the number of the last cluster.
    pub max_cluster: Cluster,
    /// First cluster of the root directory of FAT32.
    pub root_cluster: Cluster,
    /// FAT32: sector of the free-space hints.
    pub fsinfo_sector: Option<FatSector>,
    /// FAT32: sector of the boot record's backup.
    pub backup: Option<FatSector>,
    /// FAT32 with mirroring off: index of the only FAT that is up to date.
    pub active_fat: Option<u32>,
}

impl BootRecord {
    /// Reads the boot record, or its backup if the first is damaged. Notes in `notices` which one was used, and whether
    /// the volume was left dirty.
    pub fn read(image: &Image, notices: &mut Notices) -> Result<BootRecord> {
        let buf = image.read(0, RECORD, "boot record")?;
        match Self::parse(&buf) {
            Ok(boot) => {
                boot.compare_backup(image, notices);
                if boot.is_dirty(&buf) {
                    notices.push("the volume is marked as in use, or as not cleanly unmounted");
                }
                Ok(boot)
            }
            Err(what) => {
                let boot = Self::find_backup(image).ok_or_else(|| {
                    image.corrupt("boot record", format!("not a FAT boot record: {what}"))
                })?;
                notices.push(format!(
                    "the boot record is damaged ({what}), its backup in sector {BACKUP} is used"
                ));
                Ok(boot)
            }
        }
    }

    /// Returns a FAT32's backup from its usual place, which depends on the sector size. It must name that place itself:
    /// what looks like a boot record may be part of a file.
    fn find_backup(image: &Image) -> Option<BootRecord> {
        [512u32, 1024, 2048, 4096].into_iter().find_map(|size| {
            let at = u64::from(size).checked_mul(BACKUP.0)?;
            let buf = image.read(at, RECORD, "backup of the boot record").ok()?;
            let boot = Self::parse(&buf).ok()?;
            (boot.sector_size == size && boot.backup == Some(BACKUP)).then_some(boot)
        })
    }

    fn compare_backup(&self, image: &Image, notices: &mut Notices) {
        let Some(sector) = self.backup else {
            return;
        };
        let at = format!("backup of the boot record in sector {sector}");
        let buf = match image.read(self.byte_of(sector), RECORD, &at) {
            Ok(buf) => buf,
            Err(error) => return notices.push(error.to_string()),
        };
        match Self::parse(&buf) {
            Ok(backup) if backup == *self => {}
            Ok(_) => notices.push(format!(
                "the boot record and its backup in sector {sector} differ, the first is used"
            )),
            Err(what) => notices.push(format!("the {at} is damaged ({what})")),
        }
    }

    /// Parses a boot record. The error says which field is impossible.
    fn parse(buf: &[u8]) -> std::result::Result<BootRecord, String> {
        let short = || "it is cut short".to_owned();
        let u16 = |at| u16_at(buf, at).map(u32::from).ok_or_else(short);
        let u32 = |at| u32_at(buf, at).ok_or_else(short);
        let byte = |at: usize| buf.get(at).copied().map(u32::from).ok_or_else(short);

        let sector_size = u16(11)?;
        if !sector_size.is_power_of_two() || !(512..=4096).contains(&sector_size) {
            return Err(format!("sectors of {sector_size} bytes"));
        }
        let sec_per_clus = byte(13)?;
        if !sec_per_clus.is_power_of_two() {
            return Err(format!("{sec_per_clus} sectors in a cluster"));
        }
        let (reserved, fats, media) = (u16(14)?, byte(16)?, byte(21)?);
        if reserved == 0 || fats == 0 {
            return Err(format!("{reserved} reserved sectors, {fats} FATs"));
        }
        if media != 0xf0 && media < 0xf8 {
            return Err(format!("medium {media:#x}"));
        }
        let is_fat32 = u16(22)? == 0;
        let fat_length = if is_fat32 { u32(36)? } else { u16(22)? };
        if fat_length == 0 {
            return Err("FATs of 0 sectors".into());
        }
        let (dir_entries, per_sector) = (u16(17)?, sector_size >> 5);
        if !dir_entries.is_multiple_of(per_sector) {
            return Err(format!("{dir_entries} entries in the root directory"));
        }
        let total_sectors = if u16(19)? == 0 { u32(32)? } else { u16(19)? };
        let fat_start = FatSector(reserved.into());
        let dir_start = fat_start.plus(u64::from(fat_length).saturating_mul(fats.into()));
        let dir_length = dir_entries.checked_div(per_sector).unwrap_or(0);
        let data_start = dir_start.plus(dir_length.into());
        let mut boot = BootRecord {
            sector_size,
            sec_per_clus,
            fats,
            fat_bits: FatBits::ThirtyTwo,
            fat_start,
            fat_length,
            dir_start,
            data_start,
            total_sectors,
            max_cluster: FAT_START_ENT,
            root_cluster: Cluster(0),
            fsinfo_sector: None,
            backup: None,
            active_fat: None,
        };
        boot.count_clusters(is_fat32)?;
        if is_fat32 {
            let flags = u16(40)?;
            boot.root_cluster = Cluster(u32(44)?);
            let reserved = |sector: u32| {
                let sector = FatSector(sector.into());
                Some(sector).filter(|&sector| sector > FatSector(0) && sector < fat_start)
            };
            boot.fsinfo_sector = reserved(u16(48)?.max(1));
            boot.backup = reserved(u16(50)?);
            boot.active_fat = Some(flags & 0xf).filter(|_| flags & 0x80 != 0);
        }
        Ok(boot)
    }

    /// Sets `fat_bits` and `max_cluster`. If a FAT is too short for all clusters, the rest of them cannot be reached.
    fn count_clusters(&mut self, is_fat32: bool) -> std::result::Result<(), String> {
        let sectors = u64::from(self.total_sectors);
        let clusters = sectors
            .checked_sub(self.data_start.0)
            .and_then(|sectors| sectors.checked_div(self.sec_per_clus.into()))
            .and_then(|clusters| u32::try_from(clusters).ok())
            .ok_or_else(|| {
                format!(
                    "{sectors} sectors, but its data begin at {}",
                    self.data_start
                )
            })?;
        let (fat_bits, width, most) = match clusters {
            _ if is_fat32 => (FatBits::ThirtyTwo, 32, MAX_FAT32),
            ..=MAX_FAT12 => (FatBits::Twelve, 12, MAX_FAT12),
            _ => (FatBits::Sixteen, 16, MAX_FAT16),
        };
        let bytes = u64::from(self.fat_length).saturating_mul(self.sector_size.into());
        let bits = bytes.saturating_mul(8);
        let entries = u32::try_from(bits.checked_div(width).unwrap_or(0)).unwrap_or(u32::MAX);
        self.fat_bits = fat_bits;
        self.max_cluster = FAT_START_ENT.plus(clusters).min(Cluster(entries));
        let clusters = FAT_START_ENT.up_to(self.max_cluster);
        if clusters > most {
            return Err(format!("{clusters} clusters, at most {most} are possible"));
        }
        Ok(())
    }

    /// Returns true if `FAT_STATE_DIRTY` is set, which Linux does while the volume is mounted.
    fn is_dirty(&self, buf: &[u8]) -> bool {
        let state = match self.fat_bits {
            FatBits::ThirtyTwo => buf.get(65),
            _ => buf.get(37),
        };
        state.is_some_and(|state| state & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a boot record with one reserved sector, one FAT, and this many clusters behind them, one sector each.
    fn record(fat_length: (u16, u32), clusters: u32) -> Vec<u8> {
        let (short, long) = fat_length;
        let mut buf = vec![0; RECORD];
        let total = 1 + u32::from(short) + long + clusters;
        for (at, bytes) in [
            (11, &512u16.to_le_bytes()[..]),
            (13, &[1]),
            (14, &1u16.to_le_bytes()),
            (16, &[1]),
            (21, &[0xf8]),
            (22, &short.to_le_bytes()),
            (32, &total.to_le_bytes()),
            (36, &long.to_le_bytes()),
        ] {
            buf[at..at + bytes.len()].copy_from_slice(bytes);
        }
        buf
    }

    #[test]
    fn the_count_of_clusters_tells_fat12_from_fat16() {
        for (lengths, clusters, expected) in [
            ((12, 0), 4084, Ok((FatBits::Twelve, 4084))),
            ((16, 0), 4085, Ok((FatBits::Sixteen, 4085))),
            ((256, 0), 65524, Ok((FatBits::Sixteen, 65524))),
            (
                (257, 0),
                65525,
                Err("65525 clusters, at most 65524 are possible"),
            ),
            // Linux accepts a FAT32 with less than the 65525 clusters that fatgen103 demands.
            ((0, 512), 100, Ok((FatBits::ThirtyTwo, 100))),
            ((0, 600), 65525, Ok((FatBits::ThirtyTwo, 65525))),
            // A FAT that is too short limits the clusters: to 2 * 512 * 8 / 12 and to 2 * 256 entries.
            ((2, 0), 4084, Ok((FatBits::Twelve, 680))),
            ((2, 0), 4085, Ok((FatBits::Sixteen, 510))),
            ((0, 0), 4085, Err("FATs of 0 sectors")),
        ] {
            let boot = BootRecord::parse(&record(lengths, clusters));
            let told = boot.map(|boot| (boot.fat_bits, FAT_START_ENT.up_to(boot.max_cluster)));
            assert_eq!(told, expected.map_err(str::to_owned), "{lengths:?}");
        }
    }

    #[test]
    fn what_linux_refuses_is_refused() {
        let sound = record((12, 0), 4000);
        assert!(BootRecord::parse(&sound).is_ok());
        for (at, byte, what) in [
            (11, 1, "sectors of 513 bytes"),
            (12, 0, "sectors of 0 bytes"),
            (12, 1, "sectors of 256 bytes"),
            (12, 0x20, "sectors of 8192 bytes"),
            (13, 0, "0 sectors in a cluster"),
            (13, 3, "3 sectors in a cluster"),
            (14, 0, "0 reserved sectors, 1 FATs"),
            (16, 0, "1 reserved sectors, 0 FATs"),
            (17, 15, "15 entries in the root directory"),
            (21, 0xf1, "medium 0xf1"),
            (19, 12, "12 sectors, but its data begin at 13"),
        ] {
            let mut buf = sound.clone();
            buf[at] = byte;
            assert_eq!(BootRecord::parse(&buf), Err(what.into()));
        }
        assert!(BootRecord::parse(&sound[..300]).is_ok());
        assert_eq!(
            BootRecord::parse(&sound[..20]),
            Err("it is cut short".into())
        );
    }
}
