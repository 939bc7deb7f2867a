// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sector range → owner, of one filesystem at one moment.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::class::{Kind, Provenance};
use crate::through::{self, Piece};

/// Consecutive sectors with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// First sector, 512 bytes, from the start of the whole disk.
    pub sector: u64,
    /// Length in sectors, at least 1.
    pub sectors: u64,
    /// What the blocks hold.
    pub kind: Kind,
    /// Owning inode, 0 where there is none (layout metadata, free space).
    pub inode: u64,
    /// Offset in the owning file of the first byte, for kinds that are a file's contents.
    pub file_offset: Option<u64>,
}

impl Extent {
    /// Sectors with a kind and nothing else known.
    fn ownerless(sector: u64, end: u64, kind: Kind) -> Extent {
        Extent {
            sector,
            sectors: end.saturating_sub(sector),
            kind,
            inode: 0,
            file_offset: None,
        }
    }

    /// One past the last sector.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors)
    }

    /// The part inside `from..to`, its `file_offset` moved along. The two must meet.
    pub(crate) fn cut(&self, from: u64, to: u64) -> Extent {
        let sector = self.sector.max(from);
        let skipped = sector.saturating_sub(self.sector).saturating_mul(512);
        Extent {
            sector,
            sectors: self.end().min(to).saturating_sub(sector),
            file_offset: self
                .file_offset
                .map(|offset| offset.saturating_add(skipped)),
            ..*self
        }
    }

    /// Whether `next` goes on where this one ends, on the disk and in the file.
    fn continues_into(&self, next: &Extent) -> bool {
        let offset = self
            .file_offset
            .map(|o| o.saturating_add(self.sectors.saturating_mul(512)));
        self.end() == next.sector
            && (self.kind, self.inode) == (next.kind, next.inode)
            && offset == next.file_offset
    }
}

/// One directory entry that leads to an inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Inode of the directory. The root is its own parent, under an empty name.
    pub parent: u64,
    /// Raw bytes, without `/`.
    pub name: Box<[u8]>,
}

/// What is known of an inode beside its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inode {
    /// `i_generation`: tells a reused inode number from the file the probe saw. None where the
    /// filesystem keeps none (FAT).
    pub generation: Option<u32>,
    /// When it last changed (`i_ctime`), ns since 1970, or a little later where that is kept in seconds: no block was
    /// asked for since. None where it is not read.
    pub changed_ns: Option<u64>,
    /// Every name it has: several for hard links, none for an orphan. Names and not paths, as
    /// all the paths of a deep tree take the square of its depth.
    pub names: Vec<Name>,
    /// It was deleted, and its directory entry is still there (FAT): its names are of before.
    pub deleted: bool,
}

/// The map. `extents` are sorted by sector, disjoint, and cover the filesystem.
#[derive(Clone, Debug, Default)]
pub struct Map {
    extents: Vec<Extent>,
    inodes: HashMap<u64, Inode>,
    notices: Vec<String>,
    /// Where the filesystem's device lies on the disk, if it is a mapped one.
    through: Vec<Piece>,
}

impl Map {
    /// Takes extents in any order, sorts them, and fills the holes of
    /// `start..start + sectors` with `free`. Where two extents overlap, the
    /// one that comes first in `extents` keeps the sectors. What goes on on the
    /// disk and in the file is joined.
    pub fn new(start: u64, sectors: u64, extents: Vec<Extent>, inodes: HashMap<u64, Inode>) -> Map {
        let extents = disjoint(start, start.saturating_add(sectors), extents);
        Map {
            extents,
            inodes,
            notices: Vec::new(),
            through: Vec::new(),
        }
    }

    /// The same on the disk that a mapped device lies on, by the mapped device's runs. What lies in none of
    /// them is not covered any more.
    pub fn through(self, pieces: &[Piece]) -> Map {
        Map {
            extents: through::extents(&self, pieces),
            through: pieces.to_vec(),
            ..self
        }
    }

    /// Where a sector of the filesystem's own device lies on the disk. None if that is another disk.
    pub fn down(&self, sector: u64) -> Option<u64> {
        match &self.through[..] {
            [] => Some(sector),
            pieces => through::down(pieces, sector),
        }
    }

    /// Adds what could not be resolved while the map was built, one line each.
    pub fn with_notices(mut self, notices: Vec<String>) -> Map {
        self.notices = notices;
        self
    }

    /// What could not be resolved, for people; empty for a sound filesystem.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// All extents in order.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// An inode by number.
    pub fn inode(&self, number: u64) -> Option<&Inode> {
        self.inodes.get(&number)
    }

    /// The first path of an inode from the filesystem's root, raw bytes, starting with `/`.
    /// None for an orphan or an unknown inode.
    pub fn path(&self, number: u64) -> Option<Vec<u8>> {
        self.inodes
            .get(&number)?
            .names
            .iter()
            .find_map(|name| self.path_of(number, name))
    }

    /// Every path of an inode, in the order in which the directories were read.
    pub fn paths(&self, number: u64) -> Vec<Vec<u8>> {
        let names = self
            .inodes
            .get(&number)
            .map_or(&[][..], |inode| &inode.names);
        names
            .iter()
            .filter_map(|name| self.path_of(number, name))
            .collect()
    }

    /// Every name of every inode that has not been deleted, with the inode's number.
    pub fn names(&self) -> impl Iterator<Item = (u64, &Name)> {
        let kept = self.inodes.iter().filter(|(_, inode)| !inode.deleted);
        kept.flat_map(|(&number, inode)| inode.names.iter().map(move |name| (number, name)))
    }

    /// The path that ends with this name; a directory has one name only.
    pub fn path_of(&self, number: u64, name: &Name) -> Option<Vec<u8>> {
        let mut parts = Vec::new();
        let (mut at, mut name) = (number, name);
        while name.parent != at {
            parts.push(&*name.name);
            // In a damaged tree two directories may be each other's parents.
            if parts.len() > self.inodes.len() {
                return None;
            }
            at = name.parent;
            name = self.inodes.get(&at)?.names.first()?;
        }
        let mut path = vec![b'/'];
        for (n, part) in parts.iter().rev().enumerate() {
            if n > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(part);
        }
        Some(path)
    }

    /// The pieces of `sector..sector + sectors`, in order, without holes: what
    /// lies outside the filesystem comes back as `Kind::Unmapped`. Each piece is
    /// cut to the range asked for, its `file_offset` moved along.
    pub fn pieces(&self, sector: u64, sectors: u64) -> impl Iterator<Item = Extent> + '_ {
        let end = sector.saturating_add(sectors);
        let mut at = sector;
        let mut next = self
            .extents
            .partition_point(|extent| extent.end() <= sector);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let piece = match self.extents.get(next) {
                Some(extent) if extent.sector <= at => {
                    next = next.saturating_add(1);
                    extent.cut(at, end)
                }
                Some(extent) => Extent::ownerless(at, extent.sector.min(end), Kind::Unmapped),
                None => Extent::ownerless(at, end, Kind::Unmapped),
            };
            at = piece.end();
            Some(piece)
        })
    }

    /// How a lookup that ended at this extent knows its owner.
    pub fn provenance(extent: &Extent) -> Provenance {
        match extent.kind {
            Kind::Unmapped | Kind::Free => Provenance::Unknown,
            _ if extent.inode != 0 => Provenance::Snapshot,
            _ => Provenance::Layout,
        }
    }
}

/// Cuts the extents so that none overlap within `start..end`: of those that hold a sector, the first
/// listed keeps it. What none holds is `free`.
fn disjoint(start: u64, end: u64, extents: Vec<Extent>) -> Vec<Extent> {
    let inside = |(_, e): &(usize, Extent)| e.sector.max(start) < e.end().min(end);
    let mut listed: Vec<(usize, Extent)> = extents.into_iter().enumerate().collect();
    listed.retain(inside);
    listed.sort_by_key(|(_, extent)| extent.sector);

    let mut coming = listed.into_iter().peekable();
    // Those that begin at or before `at`, the first listed on top.
    let mut begun: BinaryHeap<Reverse<(usize, Extent)>> = BinaryHeap::new();
    let mut cut = Vec::new();
    let mut at = start;
    while at < end {
        while let Some(extent) = coming.next_if(|(_, extent)| extent.sector <= at) {
            begun.push(Reverse(extent));
        }
        while begun.peek().is_some_and(|Reverse((_, e))| e.end() <= at) {
            begun.pop();
        }
        let next = coming.peek().map_or(end, |(_, e)| e.sector.min(end));
        let piece = match begun.peek() {
            Some(Reverse((_, extent))) => extent.cut(at, next),
            None => Extent::ownerless(at, next, Kind::Free),
        };
        at = piece.end();
        append(&mut cut, piece);
    }
    cut.shrink_to_fit();
    cut
}

/// Joins what continues, so that the map is as small as it can be.
pub(crate) fn append(extents: &mut Vec<Extent>, piece: Extent) {
    match extents.last_mut() {
        Some(last) if last.continues_into(&piece) => {
            last.sectors = last.sectors.saturating_add(piece.sectors);
        }
        _ => extents.push(piece),
    }
}
