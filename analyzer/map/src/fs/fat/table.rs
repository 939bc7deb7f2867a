// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file allocation table (FAT), which gives the successor of each cluster.

use super::boot_record::{BootRecord, FatBits};
use super::cluster::{Cluster, FAT_START_ENT};
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le::{u16_at, u32_at};
use crate::fs::notices::Notices;

/// The FAT's entry for one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatEntry {
    /// The cluster is free.
    Free,
    /// The cluster is in use and this one follows; the number need not be a cluster's.
    Next(Cluster),
    /// The cluster is bad.
    Bad,
    /// The cluster is the last of its chain.
    End,
}

/// One copy of the FAT, up to the last cluster.
pub struct Table {
    bytes: Vec<u8>,
    fat_bits: FatBits,
    max_cluster: Cluster,
}

/// Copies are compared in parts of this many bytes, each of which holds whole entries of every width.
const PART: usize = 3 << 18;

impl Table {
    /// Reads the valid FAT and compares the other copies with it. Linux reads the first copy and writes changes to all.
    pub fn read(image: &Image, boot: &BootRecord, notices: &mut Notices) -> Result<Table> {
        let active = active(boot, notices);
        let mut table = Table {
            bytes: Vec::new(),
            fat_bits: boot.fat_bits,
            max_cluster: boot.max_cluster,
        };
        let len = table.place(boot.max_cluster).0;
        // The last entry of FAT12 may share its second byte with one that is not needed.
        let odd = boot.fat_bits == FatBits::Twelve && boot.max_cluster.0 % 2 == 1;
        let len = len.saturating_add(odd.into());
        table.bytes = image.read_sparse(place_of(boot, active), len, format!("FAT {active}"))?;
        table.note_flags(notices);
        for copy in (0..boot.fats).filter(|&copy| copy != active) {
            match table.differences(image, boot, [active, copy]) {
                Ok(None) => {}
                Ok(Some((count, first))) => notices.push(format!(
                    "FAT {copy} is not as FAT {active}, which is used: \
                     clusters that differ: {count}, the first: {first}"
                )),
                Err(error) => notices.push(error.to_string()),
            }
        }
        Ok(table)
    }

    /// Returns the FAT's entry for a cluster, which must be in `FAT_START_ENT..max_cluster`.
    pub fn entry(&self, cluster: Cluster) -> FatEntry {
        let value = self.value(&self.bytes, cluster);
        let bad = self.all_bits() & !8;
        match value {
            0 => FatEntry::Free,
            _ if value == bad => FatEntry::Bad,
            _ if value > bad => FatEntry::End,
            _ => FatEntry::Next(Cluster(value)),
        }
    }

    /// Returns true if the cluster exists.
    pub fn has(&self, cluster: Cluster) -> bool {
        (FAT_START_ENT..self.max_cluster).contains(&cluster)
    }

    /// Returns all existing clusters.
    pub fn clusters(&self) -> impl Iterator<Item = Cluster> + use<> {
        FAT_START_ENT.until(self.max_cluster)
    }

    /// Returns the number of clusters that are not free.
    pub fn in_use(&self) -> usize {
        let in_use = |cluster: &Cluster| self.entry(*cluster) != FatEntry::Free;
        self.clusters().filter(in_use).count()
    }

    fn all_bits(&self) -> u32 {
        match self.fat_bits {
            FatBits::Twelve => 0xfff,
            FatBits::Sixteen => 0xffff,
            FatBits::ThirtyTwo => 0x0fff_ffff,
        }
    }

    /// Returns the byte offset of an entry, and the shift of its lowest bit within that byte.
    fn place(&self, cluster: Cluster) -> (usize, u32) {
        let at = cluster.index();
        match self.fat_bits {
            FatBits::Twelve => (at.saturating_add(at >> 1), (cluster.0 & 1) << 2),
            FatBits::Sixteen => (at.saturating_mul(2), 0),
            FatBits::ThirtyTwo => (at.saturating_mul(4), 0),
        }
    }

    /// Returns the raw value of an entry in `bytes`, which begin with entry 0; 0 (free) if the FAT is cut short.
    fn value(&self, bytes: &[u8], cluster: Cluster) -> u32 {
        let (at, shift) = self.place(cluster);
        let value = match self.fat_bits {
            FatBits::ThirtyTwo => u32_at(bytes, at),
            _ => u16_at(bytes, at).map(u32::from),
        };
        value.unwrap_or(0) >> shift & self.all_bits()
    }

    /// Notes the two flags in entry 1, which Windows clears if something is wrong.
    fn note_flags(&self, notices: &mut Notices) {
        let flags = self.value(&self.bytes, Cluster(1));
        let (clean, sound) = match self.fat_bits {
            FatBits::Twelve => return,
            FatBits::Sixteen => (0x8000, 0x4000),
            FatBits::ThirtyTwo => (0x0800_0000, 0x0400_0000),
        };
        if flags & clean == 0 {
            notices.push("the FAT says that the volume was not cleanly unmounted");
        }
        if flags & sound == 0 {
            notices.push("the FAT says that the disk had errors");
        }
    }

    /// Returns the number of clusters whose entries differ in another copy, and the first of them.
    fn differences(
        &self,
        image: &Image,
        boot: &BootRecord,
        [active, copy]: [u32; 2],
    ) -> Result<Option<(u32, Cluster)>> {
        let [here, begin] = [active, copy].map(|nth| place_of(boot, nth));
        let (mut count, mut first) = (0u32, None);
        let mut offset = 0u64;
        let mut cluster = Cluster(0);
        for ours in self.bytes.chunks(PART) {
            let at = begin.saturating_add(offset);
            let entries = self.entries_in(ours.len());
            let len = u64::try_from(ours.len()).unwrap_or(u64::MAX);
            let of = |from: u64| {
                from.saturating_add(offset)..from.saturating_add(offset).saturating_add(len)
            };
            let are_zeros = image.is_hole(of(here)) && image.is_hole(of(begin));
            let theirs = match are_zeros && of(begin).end <= image.bytes() {
                true => None,
                false => Some(image.read(at, ours.len(), format!("FAT {copy}"))?),
            };
            if let Some(theirs) = theirs.filter(|theirs| theirs != ours) {
                let differ = (0..entries)
                    .filter(|&nth| {
                        let nth = Cluster(nth);
                        self.value(ours, nth) != self.value(&theirs, nth)
                    })
                    .map(|nth| cluster.plus(nth))
                    .filter(|&cluster| self.has(cluster));
                for cluster in differ {
                    count = count.saturating_add(1);
                    first = first.or(Some(cluster));
                }
            }
            cluster = cluster.plus(entries);
            offset = offset.saturating_add(len);
        }
        Ok(first.map(|first| (count, first)))
    }

    fn entries_in(&self, bytes: usize) -> u32 {
        let entries = match self.fat_bits {
            FatBits::Twelve => bytes.saturating_mul(2).checked_div(3),
            FatBits::Sixteen => Some(bytes >> 1),
            FatBits::ThirtyTwo => Some(bytes >> 2),
        };
        u32::try_from(entries.unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

/// Returns the index of the copy that `BPB_ExtFlags` names, otherwise 0.
fn active(boot: &BootRecord, notices: &mut Notices) -> u32 {
    match boot.active_fat {
        None | Some(0) => 0,
        Some(active) if active < boot.fats => {
            notices.push(format!(
                "FAT {active} is the active one (BPB_ExtFlags) and is used; Linux reads FAT 0"
            ));
            active
        }
        Some(active) => {
            notices.push(format!(
                "FAT {active} is the active one (BPB_ExtFlags), but there is none; FAT 0 is used"
            ));
            0
        }
    }
}

/// Returns the byte offset of a copy.
fn place_of(boot: &BootRecord, copy: u32) -> u64 {
    let before = u64::from(boot.fat_length).saturating_mul(copy.into());
    boot.byte_of(boot.fat_start.plus(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(fat_bits: FatBits, bytes: &[u8], max_cluster: u32) -> Table {
        Table {
            bytes: bytes.to_vec(),
            fat_bits,
            max_cluster: Cluster(max_cluster),
        }
    }

    #[test]
    fn entries_of_every_width() {
        let entries = |table: &Table| table.clusters().map(|n| table.entry(n)).collect::<Vec<_>>();
        use FatEntry::*;
        let next = |n| Next(Cluster(n));
        // 3 bytes hold two entries: 0xff8 0xfff, 0x003 0x004, 0xfff 0x000, 0xff7 0xff6, 0xff8.
        let bytes = [
            0xf8, 0xff, 0xff, 0x03, 0x40, 0x00, 0xff, 0x0f, 0x00, 0xf7, 0x6f, 0xff, 0xf8, 0x0f,
        ];
        assert_eq!(
            entries(&table(FatBits::Twelve, &bytes, 9)),
            [next(3), next(4), End, Free, Bad, next(0xff6), End]
        );
        let words = [0xfff8u16, 0xffff, 3, 0xfff8, 0, 0xfff7, 0xfff6, 1];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(
            entries(&table(FatBits::Sixteen, &bytes, 8)),
            [next(3), End, Free, Bad, next(0xfff6), next(1)]
        );
        // The upper four bits are ignored.
        let words = [0u32, 0, 0xf000_0003, 0xffff_ffff, 0xf000_0000, 0x0fff_fff7];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(
            entries(&table(FatBits::ThirtyTwo, &bytes, 6)),
            [next(3), End, Free, Bad]
        );
    }
}
