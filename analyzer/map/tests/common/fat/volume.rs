// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small FAT image in memory that tests damage entry by entry.

use std::fs;
use std::path::Path;

use mostrace_map::Map;
use mostrace_map::fs::{Image, Result};

use super::images;

/// The name of the image in errors.
pub const NAME: &str = "volume";

/// The volumes of the tests: mkfs.vfat's options, and the size in KiB. mtools supports no smaller FAT32.
pub const FAT12: (&str, u64) = ("-F 12 -S 512 -s 1", 300);
pub const FAT16: (&str, u64) = ("-F 16 -S 512 -s 1", 4096);
pub const FAT32: (&str, u64) = ("-F 32 -S 512 -s 1", 34_000);

/// An image's bytes, and the place of its FATs.
#[derive(Clone)]
pub struct Volume {
    pub bytes: Vec<u8>,
    sector: usize,
    fat_start: usize,
    fat_length: usize,
    fats: usize,
    pub bits: usize,
}

impl Volume {
    /// Makes a volume with `/a` of 5 clusters, `/b` of 3, `/dir/c` of 2, `/dir/sub/d` of 1, and the deleted `/gone`.
    /// All clusters have 512 bytes and follow one another, except the last cluster of `/dir`.
    pub fn new((options, kib): (&str, u64)) -> Volume {
        let scratch = tempfile::tempdir().expect("scratch folder");
        let image = scratch.path().join("image");
        images::mkfs(&image, options, kib);
        let tree = scratch.path().join("tree");
        fs::create_dir_all(tree.join("dir/sub")).expect("tree");
        for (name, clusters) in [
            ("a", 5),
            ("b", 3),
            ("dir/c", 2),
            ("dir/sub/d", 1),
            ("gone", 1),
        ] {
            fs::write(tree.join(name), vec![b'x'; clusters * 512]).expect("file");
        }
        for name in ["a", "b", "dir", "gone"] {
            images::copy(&image, &[&tree.join(name)], "/");
        }
        images::mtool("mdel", &image, &["::/gone".into()]);
        Volume::read(&image)
    }

    pub fn read(image: &Path) -> Volume {
        let bytes = fs::read(image).expect("image");
        let word = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let (sector, fat_start, fats) = (word(11), word(14), usize::from(bytes[16]));
        let (fat_length, bits) = match word(22) {
            0 => (word(36), 32),
            length if bytes[54..].starts_with(b"FAT12") => (length, 12),
            length => (length, 16),
        };
        Volume {
            bytes,
            sector,
            fat_start,
            fat_length,
            fats,
            bits,
        }
    }

    /// Writes the image to a file for another tool.
    pub fn write(&self, image: &Path) {
        fs::write(image, &self.bytes).expect("image");
    }

    pub fn build(&self) -> Result<Map> {
        let bytes = self.bytes.clone();
        mostrace_map::fs::build(&Image::new(NAME.as_ref(), bytes.len() as u64, bytes), 0)
    }

    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Sets the entry of a cluster in one copy of the FAT. Marks for the end and for bad clusters are given in 32 bits.
    pub fn set_in(&mut self, copy: usize, cluster: u32, value: u32) {
        let begin = (self.fat_start + copy * self.fat_length) * self.sector;
        let cluster = cluster as usize;
        match self.bits {
            12 => {
                let at = begin + cluster + cluster / 2;
                let both = u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]);
                let value = value as u16 & 0xfff;
                let new = match cluster % 2 {
                    0 => both & 0xf000 | value,
                    _ => both & 0x000f | value << 4,
                };
                self.patch(at, &new.to_le_bytes());
            }
            16 => self.patch(begin + cluster * 2, &(value as u16).to_le_bytes()),
            _ => self.patch(begin + cluster * 4, &(value & 0x0fff_ffff).to_le_bytes()),
        }
    }

    /// Sets the entry of a cluster in all copies of the FAT.
    pub fn set(&mut self, cluster: u32, value: u32) {
        (0..self.fats).for_each(|copy| self.set_in(copy, cluster, value));
    }

    /// Returns the byte offset of a directory entry.
    pub fn entry(&self, i_pos: u64) -> usize {
        i_pos as usize * 32
    }

    /// Returns the byte offset of the boot record's state flags.
    pub fn state(&self) -> usize {
        if self.bits == 32 { 65 } else { 37 }
    }

    /// Returns the byte offset of a cluster, which has the size of a sector.
    pub fn byte_of(&self, cluster: u32) -> usize {
        let entries = usize::from(u16::from_le_bytes([self.bytes[17], self.bytes[18]]));
        let fats = self.fat_start + self.fats * self.fat_length;
        (fats + cluster as usize - 2) * self.sector + entries * 32
    }

    /// Returns the cluster that begins at a 512-byte sector.
    pub fn cluster_at(&self, sector: u64) -> u32 {
        ((sector as usize * 512 - self.byte_of(2)) / self.sector) as u32 + 2
    }
}

/// Checks that the extents cover the whole volume without gaps or overlaps, and that every inode that they name is
/// known and has a path from the root.
pub fn conserves(map: &Map) -> std::result::Result<(), String> {
    let extents = map.extents();
    let joined = extents
        .windows(2)
        .all(|pair| pair[0].end() == pair[1].sector);
    if !joined || extents.iter().any(|extent| extent.sectors == 0) {
        return Err("holes or overlaps".into());
    }
    for extent in extents.iter().filter(|extent| extent.inode != 0) {
        let path = map.path(extent.inode);
        if !path.is_some_and(|path| path.starts_with(b"/")) {
            return Err(format!("no path: {extent:?}"));
        }
    }
    Ok(())
}
