// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owners of a filesystem's sectors at one moment.

use std::collections::HashMap;

use crate::class::{Kind, Provenance};
use crate::extent::{Extent, disjoint};
use crate::through::{self, ELSEWHERE, Piece};

/// One directory entry of an inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Inode of the directory. The root is its own parent, with an empty name.
    pub parent: u64,
    /// The name as raw bytes, without `/`.
    pub name: Box<[u8]>,
}

/// Attributes of an inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inode {
    /// `i_generation`, which distinguishes a reused inode number from the file that a probe saw. None if the filesystem
    /// stores none (FAT).
    pub generation: Option<u32>,
    /// Time of the last change (`i_ctime`), ns since 1970; if it is stored in seconds, the end of that second. No block
    /// was allocated for the inode after it. None if it is not read.
    pub changed_ns: Option<u64>,
    /// All of its names: several for hard links, none for an orphan. Names are stored instead of paths, because all
    /// paths of a deep tree would take space quadratic in its depth.
    pub names: Vec<Name>,
    /// True if the file was deleted but its directory entry still exists (FAT); the names are those that it had.
    pub deleted: bool,
}

/// The map. `extents` are sorted by sector, disjoint, and cover the filesystem.
#[derive(Clone, Debug, Default)]
pub struct Map {
    extents: Vec<Extent>,
    /// Those on other disks, from [`ELSEWHERE`] on.
    elsewhere: Vec<Extent>,
    inodes: HashMap<u64, Inode>,
    notices: Vec<String>,
    /// The pieces in which a mapped device, or a filesystem on several devices, lies on the disk; empty if the filesystem is on the
    /// disk itself.
    through: Vec<Piece>,
    /// True if there is a journal, but not on the disk.
    has_journal_elsewhere: bool,
    /// The size of the filesystem's blocks, bytes; 0 if it is not known.
    block_size: u64,
}

impl Map {
    /// Builds a map from extents in any order: sorts them and fills the gaps in `start..start + sectors` with `free`.
    /// If two extents overlap, the one that comes first in `extents` keeps the sectors. Extents that continue each
    /// other on the disk and in the file are merged.
    pub fn new(start: u64, sectors: u64, extents: Vec<Extent>, inodes: HashMap<u64, Inode>) -> Map {
        let extents = disjoint(start, start.saturating_add(sectors), extents);
        Map {
            extents,
            elsewhere: Vec::new(),
            inodes,
            notices: Vec::new(),
            through: Vec::new(),
            has_journal_elsewhere: false,
            block_size: 0,
        }
    }

    /// Sets the size of the filesystem's blocks, bytes; on FAT that is its sector, the unit in which the kernel writes.
    #[must_use]
    pub fn with_block_size(self, block_size: u64) -> Map {
        Map { block_size, ..self }
    }

    /// Returns the size of the filesystem's blocks, bytes (FAT: of its sectors); None if it is not known.
    pub fn block_size(&self) -> Option<u64> {
        (self.block_size > 0).then_some(self.block_size)
    }

    /// Translates the map from a mapped device, or from several devices, to the disk below. `pieces` are the runs; sectors that
    /// are in none of them are no longer covered. Those of other disks count from [`ELSEWHERE`] on.
    pub fn through(self, pieces: &[Piece]) -> Map {
        let mut extents = through::extents(&self.extents, pieces);
        let here = extents.partition_point(|extent| extent.sector < ELSEWHERE);
        let elsewhere = extents.split_off(here);
        Map {
            has_journal_elsewhere: elsewhere
                .iter()
                .any(|extent| extent.kind == Kind::Jbd2Superblock),
            elsewhere,
            extents,
            through: pieces.to_vec(),
            ..self
        }
    }

    /// Returns true if the filesystem has a journal, but not on the disk.
    pub fn has_journal_elsewhere(&self) -> bool {
        self.has_journal_elsewhere
    }

    /// Translates a sector of the filesystem to the disk below. None if its place is not known.
    pub fn down(&self, sector: u64) -> Option<u64> {
        match &self.through[..] {
            [] => Some(sector),
            pieces => through::down(pieces, sector),
        }
    }

    /// Attaches remarks on what could not be resolved while the map was built, one line each.
    pub fn with_notices(mut self, notices: Vec<String>) -> Map {
        self.notices = notices;
        self
    }

    /// Returns the remarks on what could not be resolved; empty for a sound filesystem.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns all extents on the disk, ordered by sector.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Returns an inode by number.
    pub fn inode(&self, number: u64) -> Option<&Inode> {
        self.inodes.get(&number)
    }

    /// Returns the first path of an inode from the filesystem's root, as raw bytes with a leading `/`. None for an
    /// orphan or an unknown inode.
    pub fn path(&self, number: u64) -> Option<Vec<u8>> {
        self.inodes
            .get(&number)?
            .names
            .iter()
            .find_map(|name| self.path_of(number, name))
    }

    /// Returns every path of an inode, in the order in which the directories were read.
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

    /// Returns every name of every inode that is not deleted, with the inode's number.
    pub fn names(&self) -> impl Iterator<Item = (u64, &Name)> {
        let kept = self.inodes.iter().filter(|(_, inode)| !inode.deleted);
        kept.flat_map(|(&number, inode)| inode.names.iter().map(move |name| (number, name)))
    }

    /// Returns the path of inode `number` that ends with this name; its directories have one name each.
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

    /// Returns the pieces of `sector..sector + sectors`, in order and without gaps. Sectors outside the filesystem come
    /// back as `Kind::Unmapped`. Each piece is cut to the range, with its `file_offset` adjusted.
    pub fn pieces(&self, sector: u64, sectors: u64) -> impl Iterator<Item = Extent> + '_ {
        let end = sector.saturating_add(sectors);
        let mut at = sector;
        let extents = match sector < ELSEWHERE {
            true => &self.extents,
            false => &self.elsewhere,
        };
        let mut next = extents.partition_point(|extent| extent.end() <= sector);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let piece = match extents.get(next) {
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

    /// Returns the way in which a lookup that found this extent knows the owner.
    pub fn provenance(extent: &Extent) -> Provenance {
        match extent.kind {
            Kind::Unmapped | Kind::Free => Provenance::Unknown,
            _ if extent.inode != 0 => Provenance::Snapshot,
            _ => Provenance::Layout,
        }
    }
}
