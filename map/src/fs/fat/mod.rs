// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of a FAT12, FAT16 or FAT32 filesystem, with the long names of vfat.
//!
//! ```text
//! boot record ──→ reserved sectors, FATs, root of FAT12 and FAT16 ─┐
//!     └─→ FAT, compared to its copies                             ├─→ claims ─→ Map
//! root directory ─→ entries ──→ names, and chains of clusters ─────┤
//!       ↑______________│                                           │
//! FAT ──→ bad clusters, clusters in use, ownerless─────────────────┘
//! ```
//! FAT has no inodes. The number that a file goes by is the kernel's `i_pos`, the place of its
//! directory entry: the sector of the filesystem, times the entries in a sector, plus which one
//! it is (`fat_make_i_pos` of fs/fat/dir.c). The root directory is 1. There are no generations.
//!
//! Names are UTF-8: long ones converted from UTF-16, short ones from code page 437, as Linux does
//! by default; which page it is, the volume does not say. A half surrogate comes as `:` and four
//! hexadecimal figures.
//!
//! Only the reserved sectors, the FATs and the directories are read, always in the same order.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::class::Kind;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::{Part, Watcher};
use crate::fs::volume::Volume;
use crate::map::{Inode, Map, Name};

mod boot_record;
mod chain;
mod claims;
mod cluster;
mod dirent;
mod geometry;
mod layout;
mod long_name;
mod lost;
mod short_name;
mod table;

use boot_record::{BootRecord, FatBits};
use chain::{Chain, Stop};
use claims::Claims;
use cluster::{Cluster, FatSector, Run};
use dirent::{Entries, Entry};
use fixedbitset::FixedBitSet;
use layout::MSDOS_ROOT_INO;
use table::Table;

/// Builds the map of a filesystem that begins at `start_sector` (512 bytes) of its disk; all
/// sectors of the map count from there. What could not be resolved stands in [`Map::notices`],
/// and its clusters are `unmapped` as far as the FAT says that they are in use. A deleted file
/// whose entry is still there is an inode too, and owns, as `free`, its first cluster, unless
/// that has been given away.
///
/// # Errors
/// Neither the boot record nor its backup can be of a FAT, or the FAT cannot be read.
pub fn build(image: &Image, start_sector: u64) -> Result<Map> {
    build_with(image, start_sector, &|_| {})
}

/// [`build`], which tells `watcher` how far it is.
pub(super) fn build_with(image: &Image, start_sector: u64, watcher: &Watcher) -> Result<Map> {
    let mut notices = Notices::default();
    let boot = &BootRecord::read(image, &mut notices)?;
    let units = boot.total_sectors.into();
    let volume = Volume::new(image, start_sector, units, boot.sector_size)?;
    if image.bytes() < boot.byte_of(boot.end()) {
        let (bytes, sectors) = (image.bytes(), volume.sectors());
        notices.push(format!(
            "the image ends at byte {bytes}, before its {sectors} sectors"
        ));
    }
    let table = &Table::read(image, boot, &mut notices)?;
    let mut walk = Walk {
        image,
        boot,
        table,
        taken: boot.no_clusters(),
        claims: Claims::new(boot, volume),
        inodes: HashMap::new(),
        directories: HashMap::new(),
        queue: VecDeque::new(),
        gone: HashMap::new(),
        notices: Notices::default(),
        part: Part::new(watcher, "clusters in use", table.in_use()),
    };
    layout::claim(image, boot, &mut walk.claims);
    walk.root();
    while let Some(directory) = walk.queue.pop_front() {
        walk.read(&directory);
    }
    walk.claim_gone();
    walk.claim_nobodys(&mut notices);
    let mut lines = notices.into_lines();
    lines.extend(walk.notices.into_lines());
    let map = volume.map(walk.claims.into_extents(), walk.inodes);
    Ok(map.with_notices(lines))
}

/// A directory that is still to be read.
struct Directory {
    inode: u64,
    /// Its sectors, in their order.
    sectors: Vec<Range<FatSector>>,
}

/// Reads the tree, level by level.
struct Walk<'a> {
    image: &'a Image,
    boot: &'a BootRecord,
    table: &'a Table,
    /// Clusters that some file has.
    taken: FixedBitSet,
    claims: Claims<'a>,
    inodes: HashMap<u64, Inode>,
    /// First cluster → inode, of every directory.
    directories: HashMap<Cluster, u64>,
    queue: VecDeque<Directory>,
    /// First cluster → inode, of deleted files; None where others name it as well.
    gone: HashMap<Cluster, Option<u64>>,
    /// Of single files.
    notices: Notices,
    /// The clusters of files and directories.
    part: Part<'a>,
}

impl Walk<'_> {
    fn root(&mut self) {
        let inode = MSDOS_ROOT_INO;
        let name = Name {
            parent: inode,
            name: [].into(),
        };
        self.inodes.insert(inode, live(name));
        if self.boot.fat_bits == FatBits::ThirtyTwo {
            self.directory(inode, self.boot.root_cluster);
        } else {
            let sectors = self.boot.dir_start..self.boot.data_start;
            let sectors = std::iter::once(sectors).collect();
            self.queue.push_back(Directory { inode, sectors });
        }
    }

    /// Reads the entries of a directory.
    fn read(&mut self, directory: &Directory) {
        let (image, boot) = (self.image, self.boot);
        let parent = directory.inode;
        let at = format!("directory of inode {parent}");
        let mut entries = Entries::new(boot.fat_bits);
        let mut buf = vec![0; usize::try_from(boot.sector_size).unwrap_or(0)];
        for sector in directory
            .sectors
            .iter()
            .flat_map(|run| run.start.until(run.end))
        {
            if let Err(error) = image.read_into(&mut buf, boot.byte_of(sector), &at) {
                // What follows may be past the end of the image too.
                return self.notices.push(error.to_string());
            }
            let first = sector.0.checked_shl(boot.dir_per_block_bits()).unwrap_or(0);
            for (nth, raw) in (0u64..).zip(buf.as_chunks().0) {
                if let Some(entry) = entries.next(raw) {
                    self.entry(parent, first | nth, entry);
                }
            }
        }
        if entries.after_end {
            self.notices.push(format!(
                "inode {parent}: a directory with entries after its end, which Linux alone shows"
            ));
        }
    }

    fn entry(&mut self, parent: u64, inode: u64, entry: Entry) {
        if entry.name.is_empty() {
            let line = format!("inode {inode}: an entry of inode {parent} without a name");
            return self.notices.push(line);
        }
        let name = Name {
            parent,
            name: entry.name.into_bytes().into(),
        };
        let Slot::Vacant(slot) = self.inodes.entry(inode) else {
            return;
        };
        slot.insert(Inode {
            deleted: entry.deleted,
            ..live(name)
        });
        if entry.deleted {
            let owner = self.gone.entry(entry.start).or_insert(Some(inode));
            *owner = owner.filter(|&owner| owner == inode);
        } else if entry.is_directory {
            self.directory(inode, entry.start);
        } else {
            self.file(inode, entry.start, entry.size);
        }
    }

    fn directory(&mut self, inode: u64, start: Cluster) {
        if start == Cluster(0) {
            let line = format!("inode {inode}: a directory without a cluster");
            return self.notices.push(line);
        }
        if let Some(first) = self.directories.get(&start) {
            let line = format!("inode {inode}: the directory that inode {first} is already");
            return self.notices.push(line);
        }
        let chain = self.follow(start);
        self.note_stop(inode, &chain);
        self.claims.contents(&chain.runs, Kind::Directory, inode);
        if chain.clusters > 0 {
            self.directories.insert(start, inode);
            let sectors = chain.runs.iter().map(|&run| self.boot.sectors_of(run));
            let sectors = sectors.collect();
            self.queue.push_back(Directory { inode, sectors });
        }
    }

    fn file(&mut self, inode: u64, start: Cluster, size: u32) {
        let needed = size.div_ceil(self.boot.cluster_size());
        let chain = match start {
            Cluster(0) => Chain {
                runs: Vec::new(),
                clusters: 0,
                stop: Stop::End,
            },
            _ => self.follow(start),
        };
        self.claims.contents(&chain.runs, Kind::Regular, inode);
        if chain.stop != Stop::End {
            self.note_stop(inode, &chain);
        } else if chain.clusters != needed {
            let clusters = chain.clusters;
            self.notices.push(format!(
                "inode {inode}: its size and its chain differ: {needed} and {clusters} clusters"
            ));
        }
    }

    fn follow(&mut self, start: Cluster) -> Chain {
        let chain = chain::follow(self.table, &mut self.taken, start);
        self.part.add(usize::try_from(chain.clusters).unwrap_or(0));
        chain
    }

    fn note_stop(&mut self, inode: u64, chain: &Chain) {
        let what = match chain.stop {
            Stop::End => return,
            Stop::Bad(cluster) => format!("ends with cluster {cluster}, which is bad"),
            Stop::Free(cluster) => {
                self.gone.insert(cluster, None);
                format!("goes on with cluster {cluster}, which is free")
            }
            Stop::Outside(cluster) => format!("goes on with cluster {cluster}, which is not there"),
            Stop::Circle(cluster) => format!("goes back to its cluster {cluster}"),
            Stop::Taken(cluster) => format!("goes on with cluster {cluster}, which is another's"),
        };
        self.notices
            .push(format!("inode {inode}: its chain {what}"));
    }

    /// Gives the first clusters of deleted files that nobody else has.
    fn claim_gone(&mut self) {
        for (&cluster, &inode) in &self.gone {
            if let Some(inode) = inode
                && self.table.has(cluster)
                && self.table.entry(cluster) == table::Entry::Free
            {
                let run = Run {
                    cluster,
                    clusters: 1,
                };
                self.claims.clusters(run, Kind::Free, inode);
            }
        }
    }

    fn claim_nobodys(&mut self, notices: &mut Notices) {
        let nobodys = lost::find(self.table, &mut self.taken);
        let count = |runs: &[Run]| runs.iter().map(|run| u64::from(run.clusters)).sum::<u64>();
        let (bad, lost) = (count(&nobodys.bad), count(&nobodys.lost));
        if bad > 0 {
            notices.push(format!("bad clusters: {bad}"));
        }
        if lost > 0 {
            let chains = nobodys.lost_chains;
            notices.push(format!(
                "clusters in use, but by no file: {lost}, chains of them: {chains}"
            ));
        }
        for &run in nobodys.bad.iter().chain(&nobodys.lost) {
            self.claims.clusters(run, Kind::Unmapped, 0);
        }
    }
}

fn live(name: Name) -> Inode {
    Inode {
        generation: None,
        names: vec![name],
        deleted: false,
    }
}
