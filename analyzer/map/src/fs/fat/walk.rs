// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory tree: names, and the owners of clusters.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use fixedbitset::FixedBitSet;

use super::boot_record::{BootRecord, FatBits};
use super::chain::{self, Chain, Stop};
use super::claims::Claims;
use super::cluster::{Cluster, FatSector, Run};
use super::dirent::{Dirent, Entries};
use super::layout::MSDOS_ROOT_INO;
use super::lost;
use super::table::{self, Table};
use crate::class::Kind;
use crate::extent::Extent;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::PartProgress;
use crate::map::{Inode, Name};

/// A directory that is yet to be read.
struct Directory {
    inode: u64,
    /// Its sectors, in order.
    sectors: Vec<Range<FatSector>>,
}

/// Reads the tree level by level.
pub struct Walk<'a> {
    image: &'a Image,
    boot: &'a BootRecord,
    table: &'a Table,
    /// The clusters that a file owns.
    taken: FixedBitSet,
    claims: Claims<'a>,
    inodes: HashMap<u64, Inode>,
    /// The inode of every directory, by its first cluster.
    directories: HashMap<Cluster, u64>,
    queue: VecDeque<Directory>,
    /// The inodes of deleted files, by first cluster; None if several name the same one.
    gone: HashMap<Cluster, Option<u64>>,
    /// Notices about single files.
    notices: Notices,
    /// Progress in clusters of files and directories.
    part: PartProgress<'a>,
}

/// The result of a walk.
pub struct Walked {
    /// All claims in order of precedence.
    pub extents: Vec<Extent>,
    pub inodes: HashMap<u64, Inode>,
    /// Notices about single files.
    pub notices: Notices,
}

impl<'a> Walk<'a> {
    /// Starts with nothing read; `claims` holds those of the layout.
    pub fn new(
        image: &'a Image,
        boot: &'a BootRecord,
        table: &'a Table,
        claims: Claims<'a>,
        part: PartProgress<'a>,
    ) -> Walk<'a> {
        Walk {
            image,
            boot,
            table,
            taken: boot.no_clusters(),
            claims,
            inodes: HashMap::new(),
            directories: HashMap::new(),
            queue: VecDeque::new(),
            gone: HashMap::new(),
            notices: Notices::default(),
            part,
        }
    }

    /// Reads the whole tree, then looks for clusters without a file. `notices` receives those about the whole volume.
    pub fn all(mut self, notices: &mut Notices) -> Walked {
        self.root();
        while let Some(directory) = self.queue.pop_front() {
            self.read(&directory);
        }
        self.claim_gone();
        self.claim_nobodys(notices);
        Walked {
            extents: self.claims.into_extents(),
            inodes: self.inodes,
            notices: self.notices,
        }
    }

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
            .flat_map(|run| unlike(image, boot, run))
        {
            if let Err(error) = image.read_into(&mut buf, boot.byte_of(sector), &at) {
                // The rest may be beyond the end of the image too.
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

    fn entry(&mut self, parent: u64, inode: u64, entry: Dirent) {
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
                format!("continues with cluster {cluster}, which is free")
            }
            Stop::Outside(cluster) => {
                format!("continues with cluster {cluster}, which does not exist")
            }
            Stop::Circle(cluster) => format!("goes back to its cluster {cluster}"),
            Stop::Taken(cluster) => {
                format!("continues with cluster {cluster}, which belongs to another file")
            }
        };
        self.notices
            .push(format!("inode {inode}: its chain {what}"));
    }

    /// Claims the first clusters of deleted files for them, if nobody else has these clusters.
    fn claim_gone(&mut self) {
        for (&cluster, &inode) in &self.gone {
            if let Some(inode) = inode
                && self.table.has(cluster)
                && self.table.entry(cluster) == table::FatEntry::Free
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
        names: vec![name],
        ..Inode::default()
    }
}

/// Returns the sectors of a run, but of each hole in the image only the first: the others are equal to it.
fn unlike(
    image: &Image,
    boot: &BootRecord,
    run: &Range<FatSector>,
) -> impl Iterator<Item = FatSector> {
    let run = run.clone();
    let mut at = run.start;
    std::iter::from_fn(move || {
        let sector = at;
        let data = image.next_data(boot.byte_of(sector));
        let data = data.checked_div(boot.sector_size.into()).unwrap_or(0);
        at = FatSector(data).max(sector.plus(1));
        (sector < run.end).then_some(sector)
    })
}
