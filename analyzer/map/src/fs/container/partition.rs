// SPDX-License-Identifier: MIT OR Apache-2.0
//! The partitions of a disk.

use crate::fs::image::Image;
use crate::fs::magic;
use crate::fs::recognise::{Filesystem, recognise};

pub const SECTOR: u64 = 512;

/// A partition, in sectors of 512 bytes from the start of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The number that the kernel gives it.
    pub number: u32,
    pub start_sector: u64,
    pub sectors: u64,
    /// Its name in a GPT; empty in an MBR.
    pub name: String,
}

impl Partition {
    /// Returns the part of the disk's image that it is.
    pub fn of(&self, disk: &Image) -> Image {
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
        disk.part(bytes(self.start_sector), bytes(self.sectors))
    }

    /// Returns what it has, as far as its first blocks tell.
    fn contents(&self, disk: &Image) -> &'static str {
        let image = self.of(disk);
        match recognise(&image).unwrap_or(None) {
            Some(Filesystem::Ext) => "ext4",
            Some(Filesystem::F2fs) => "f2fs",
            Some(Filesystem::Fat) => "FAT",
            Some(Filesystem::ExFat) => "exFAT",
            None => magic::what(&image).unwrap_or("unknown"),
        }
    }
}

/// Lists partitions in one line.
pub fn list(disk: &Image, partitions: &[Partition]) -> String {
    let one = |one: &Partition| {
        let Partition {
            number,
            start_sector,
            sectors,
            name,
        } = one;
        let name = match &name[..] {
            "" => String::new(),
            name => format!(" \"{}\"", name.escape_default()),
        };
        let what = one.contents(disk);
        let what = what.split_once(':').map_or(what, |(what, _)| what);
        format!("{number}{name} ({what}, {sectors} sectors from {start_sector} on)")
    };
    let all: Vec<String> = partitions.iter().map(one).collect();
    all.join(", ")
}
