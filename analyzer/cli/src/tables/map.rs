// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace map`: prints class, kind, inode, offset and path of sectors.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use mostrace_bundle::Bundle;
use mostrace_map::Extent;
use mostrace_map::fs::ext4::By;
use mostrace_map::fs::{How, State, Wanted};
use mostrace_tables::facts::Filter;
use mostrace_tables::tables;
use mostrace_trace::reading::{Source, map_of, map_of_snapshot, opened};
use mostrace_trace::recording::Recording;

use super::out::OutArgs;
use super::source::{several, state};
use crate::UsageError;
use crate::bar::Bar;
use crate::names;

/// Show what each sector belongs to: class, kind, inode, offset in the file, path
///
/// Works on an image, a device, or the snapshot in a bundle; ext4, ext3, ext2, f2fs, and FAT12,
/// FAT16 and FAT32. An image may be packed (gzip, Android sparse; with qemu-img also qcow2, VMDK,
/// VHD, VHDX and VDI) or of a whole disk with partitions. Sectors are of 512 bytes and counted from the start of the whole disk. If a
/// file has several names, the first one is given. On FAT the inode is the place of the directory
/// entry, and a free block with a path was the first one of a deleted file. In names, bytes that
/// are not UTF-8 or that could control a terminal are printed as \xNN, and a backslash as \\.
///
/// Examples:
///   mostrace map disk.img
///   mostrace map disk.img --sector 2048 --sector 4096
///   mostrace map /dev/sdb1 --start-sector 2048 --format csv -o sdb1.csv
///   mostrace map run.most --json
///   mostrace map phone.img.gz --partition 2
///   mostrace map disk.img --by debugfs
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Map {
    /// An image file, a block device, or a bundle; a recording in segments has the snapshot in its last one
    image: PathBuf,
    /// Only this sector; may be given several times
    #[arg(long, value_name = "N")]
    sector: Vec<u64>,
    /// First sector of the filesystem on its disk [default: 0, or the bundle's]
    #[arg(long, value_name = "N")]
    start_sector: Option<u64>,
    /// The partition, if the image is of a whole disk
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Show what lies on the disk. Otherwise, of a filesystem that was not unmounted, the journal is replayed (ext4) or what
    /// fsync wrote is found (f2fs), as the next mount will do; nothing is written
    #[arg(long)]
    as_is: bool,
    /// Only extents for which this holds, for example: "kind = 'directory' AND sectors > 8"
    #[arg(long = "where", value_name = "EXPR")]
    condition: Option<String>,
    /// The program that lists the blocks of inodes on ext4, ext3 and ext2: mostrace's own walker, or debugfs of e2fsprogs
    #[arg(long, value_enum, default_value = "walker", value_name = "WHO")]
    by: Lister,
    #[command(flatten)]
    pub(super) out: OutArgs,
}

/// The program that lists the blocks of inodes.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Lister {
    Walker,
    Debugfs,
}

impl From<Lister> for By {
    fn from(lister: Lister) -> By {
        match lister {
            Lister::Walker => By::Walk,
            Lister::Debugfs => By::Debugfs,
        }
    }
}

impl Map {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let mut out = self.out.create()?;
        let bar = Bar::new();
        let mut notices = Vec::new();
        let map = self.build(&self.image, &bar, &mut notices)?;
        drop(bar);
        for notice in notices.iter().chain(map.notices()) {
            log::warn!("{}: {notice}", self.image.display());
        }
        let asked: Vec<Extent> = self.sector.iter().flat_map(|&s| map.pieces(s, 1)).collect();
        let extents = if self.sector.is_empty() {
            map.extents()
        } else {
            &asked
        };
        let mut table = tables::map::table(&map, extents)?;
        if let Some(text) = &self.condition {
            let rows = Filter::rows_of(table.frame, text).map_err(|e| UsageError(e.to_string()))?;
            table = rows.into();
        }
        Ok(self.out.format().write_one(&mut out, table)?)
    }

    fn build(
        &self,
        image: &Path,
        bar: &Bar,
        notices: &mut Vec<String>,
    ) -> anyhow::Result<mostrace_map::Map> {
        let told = |progress| bar.at(progress);
        let is_there = image.exists() || !Recording::has_segments(image);
        if is_there && !Bundle::is_bundle(image) {
            let source = Source {
                image,
                wanted: Wanted {
                    partition: self.partition,
                    start_sector: self.start_sector,
                },
                how: How {
                    by: self.by.into(),
                    state: state(self.as_is),
                },
            };
            let (image, start) = opened(&source, notices)?;
            return Ok(map_of(&image, start, source.how, &told)?);
        }
        let recordings = names::open(&[image.to_owned()], false)?;
        let [recording] = &recordings[..] else {
            return Err(several().into());
        };
        let Some(bundle) = recording.last() else {
            bail!("{}: not a bundle", image.display());
        };
        let how = How {
            by: self.by.into(),
            state: State::Mounted,
        };
        let map = map_of_snapshot(bundle, self.start_sector, how, &told)?;
        map.ok_or_else(|| anyhow!("{}: no snapshot of the filesystem in it", image.display()))
    }
}
