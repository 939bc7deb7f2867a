// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides what a block is. What a probe saw takes precedence over the map, and the map is not believed where it contradicts
//! the probe, because a block may have changed owners before the snapshot.

use std::io::Read;
use std::ops::Range;

use mostrace_bundle::entry::{Contents, Jbd2, Origin};

use super::note::{FileRun, Note};
use super::owners::Moment;
use super::pending::Match;
use super::{Attributor, FileId, JournalBlock, Row};
use mostrace_map::class::{Class, Kind, Provenance};
use mostrace_map::fs::jbd2::Copy;
use mostrace_map::{Extent, Map};

/// The map's answer for a block.
#[derive(Clone, Copy)]
struct Answer {
    kind: Kind,
    file: FileId,
    file_offset: Option<u64>,
    found: Provenance,
}

impl Answer {
    /// Makes an answer without a file.
    fn new(kind: Kind, found: Provenance) -> Answer {
        Answer {
            kind,
            file: FileId::NONE,
            file_offset: None,
            found,
        }
    }

    fn row(self, base: Row) -> Row {
        Row {
            kind: Some(self.kind),
            file: self.file,
            file_offset: self.file_offset,
            found: Some(self.found),
            ..base
        }
    }
}

/// The extent to which the map is believed.
#[derive(Clone, Copy)]
enum Belief {
    /// Nothing else is known, so the map is believed.
    Whole,
    /// The block was in the device's page cache, so it held no contents of a regular file; its own bytes say what it held.
    Metadata(Contents, Moment),
    /// The block belonged to a file.
    AFile,
    /// The block was in the journal.
    Journal,
    /// The block was a node of f2fs.
    Node,
}

impl<R: Read> Attributor<'_, R> {
    /// Makes rows of `range`, over which the note and the run stay the same. `base` has the fields that do not depend on the
    /// block; `left` counts the bytes still to be accounted for.
    pub(super) fn classify(
        &mut self,
        range: Range<u64>,
        note: Option<&Match<Note>>,
        run: Option<&Match<FileRun>>,
        base: Row,
        left: &mut u32,
    ) {
        if !base.op.carries_data() {
            return self.emit(range, base, left);
        }
        match (note, run) {
            (Some(note), _) if self.is_journal_block(range.start, note.jbd2) => {
                let row = self.journal_block(&range, note, run, base);
                self.emit(range, row, left);
            }
            (_, Some(run)) if run.node == Some(Kind::Node) => {
                self.by_map(range, Belief::Node, base, left);
            }
            (_, Some(run)) if run.node.is_some() => {
                let row = Row {
                    kind: run.node,
                    file: run.file,
                    found: Some(Provenance::Live),
                    ..base
                };
                self.emit(range, row, left);
            }
            (_, Some(run)) => {
                let ahead = run.skipped_at(range.start).saturating_mul(512);
                let row = Row {
                    kind: Some(self.registry.files.kind(run.file)),
                    file: run.file,
                    file_offset: run.offset.map(|offset| offset.saturating_add(ahead)),
                    found: Some(Provenance::Unknown),
                    ..base
                };
                self.emit(range, row, left);
            }
            (Some(note), None) if note.jbd2 != Jbd2::NONE => {
                self.by_map(range, metadata(note), base, left);
            }
            (Some(note), None) => self.by_map(range, belief(note), base, left),
            (None, None) => self.by_map(range, Belief::Whole, base, left),
        }
    }

    /// Returns true if the probe saw a jbd2 block. The probe recognises superblocks and revoke blocks only by their first
    /// bytes, which another block may share: those count only if the map does not place them outside the journal.
    fn is_journal_block(&self, sector: u64, jbd2: Jbd2) -> bool {
        let by_header = [Jbd2::SUPERBLOCK, Jbd2::SUPERBLOCK_V1, Jbd2::REVOKE].contains(&jbd2);
        let elsewhere =
            |piece: Extent| piece.kind.class() != Class::Journal && piece.kind != Kind::Unmapped;
        let piece = || {
            self.registry
                .map
                .and_then(|map| map.pieces(sector, 1).next())
        };
        jbd2 != Jbd2::NONE && !(by_header && piece().is_some_and(elsewhere))
    }

    /// Makes the row of a block that the probe recognised as jbd2's, or of a part of it.
    fn journal_block(
        &mut self,
        range: &Range<u64>,
        note: &Match<Note>,
        run: Option<&Match<FileRun>>,
        base: Row,
    ) -> Row {
        let sector = range.start;
        let (ahead, until) = (note.skipped_at(sector), note.skipped_at(range.end));
        let home_sector = note
            .home_sector
            .map(|home| home.saturating_add(ahead))
            .and_then(|home| self.registry.home_on_disk(note.home, home));
        let saved = self.saved(sector, note);
        let home_sector = home_sector.or(saved.map(|copy| copy.home_sector));
        let (home_kind, home_file) = match (run, home_sector) {
            (Some(run), _) => (Some(self.registry.files.kind(run.file)), run.file),
            // The file's block was freed since, or its entry was lost: the owner at the end need not be the owner at the
            // write.
            (None, _) if note.jbd2 == Jbd2::DATA_COPY => (Some(Kind::Regular), FileId::NONE),
            (None, Some(home)) => self.home(home, note),
            (None, None) => (None, FileId::NONE),
        };
        let home_kind = match home_kind {
            Some(Kind::Free) => saved.and_then(|copy| copy.kind).or(home_kind),
            known => known,
        };
        let block = JournalBlock {
            jbd2: note.jbd2,
            tid: note.tid,
            ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
            behind: u32::try_from(until).map_or(0, |until| note.sectors.saturating_sub(until)),
            home_sector,
            home_kind,
            home_file,
        };
        Row {
            kind: Some(kind_of(note.jbd2)),
            journal: Some(block),
            found: Some(Provenance::Live),
            ..base
        }
    }

    /// Returns the copy as it lay in the journal when the map was made, unless a later transaction had overwritten it.
    fn saved(&self, sector: u64, note: &Note) -> Option<Copy> {
        let copy = self.journal?.copy(sector)?;
        let is_copy = [Jbd2::METADATA_COPY, Jbd2::DATA_COPY].contains(&note.jbd2);
        (is_copy && note.tid == Some(copy.tid)).then_some(*copy)
    }

    /// Returns the kind and the file that the map has at the home of a copy.
    fn home(&mut self, sector: u64, note: &Note) -> (Option<Kind>, FileId) {
        let Some(piece) = self
            .registry
            .map
            .and_then(|map| map.pieces(sector, 1).next())
        else {
            return (None, FileId::NONE);
        };
        let told = self.believe(&piece, metadata(note), Some(note.time_ns));
        (Some(told.kind), told.file)
    }

    /// Makes rows by the map's answers for `range`.
    fn by_map(&mut self, range: Range<u64>, belief: Belief, base: Row, left: &mut u32) {
        let sectors = range.end.saturating_sub(range.start);
        let Some(map) = self.registry.map else {
            let (kind, inode) = (Kind::Unmapped, 0);
            let nowhere = Extent {
                sector: range.start,
                sectors,
                kind,
                inode,
                file_offset: None,
            };
            let told = self.believe(&nowhere, belief, base.q_ns);
            return self.emit(range, told.row(base), left);
        };
        for piece in map.pieces(range.start, sectors) {
            let told = self.believe(&piece, belief, base.q_ns);
            self.emit(piece.sector..piece.end(), told.row(base), left);
        }
    }

    /// Returns what a piece of the map says of a block that was queued at `q_ns`.
    fn believe(&mut self, piece: &Extent, belief: Belief, q_ns: Option<u64>) -> Answer {
        let unknown = |kind| Answer::new(kind, Provenance::Unknown);
        match (belief, piece.kind) {
            (Belief::Metadata(contents, moment), kind) if changes_hands(kind) => {
                self.metadata(piece, contents, moment, q_ns)
            }
            // The file's entry was lost: the owner at the end need not be the owner at the write.
            (Belief::AFile, _) => unknown(Kind::Regular),
            (Belief::Whole, kind) if changes_hands(kind) && self.has_changed(piece, q_ns) => {
                unknown(Kind::Free)
            }
            (_, kind) if kind.class() == Class::Journal => Answer::new(kind, Provenance::Layout),
            (Belief::Journal, _) => unknown(Kind::JournalBlock),
            (Belief::Node, kind) if !kind.is_node() => Answer::new(Kind::Node, Provenance::Live),
            (_, kind) => self.owned(piece, Answer::new(kind, Map::provenance(piece))),
        }
    }

    /// Answers for a block that held metadata but may change owners. It belonged to the snapshot's owner if nobody freed it
    /// since and its kind is still the same; else to whoever freed it.
    fn metadata(
        &mut self,
        piece: &Extent,
        contents: Contents,
        moment: Moment,
        q_ns: Option<u64>,
    ) -> Answer {
        let before = self.registry.owners.at(piece.sector, moment);
        let kind = match contents {
            Contents::EXTENTS => Kind::ExtentTree,
            Contents::XATTR => Kind::Xattr,
            Contents::DIRECTORY => Kind::Directory,
            _ if before.is_some() => Kind::Free,
            // Its bytes had the mark of no kind.
            Contents::OTHER if piece.kind == Kind::Xattr => Kind::Free,
            _ if piece.kind == Kind::Regular => Kind::Free,
            _ => piece.kind,
        };
        let told = Answer::new(kind, Provenance::Unknown);
        match before {
            Some(file) => Answer { file, ..told },
            // If the recorder does not report freed blocks, the owner may have got the block after its last change.
            None if !self.registry.owners.is_told() && self.has_changed(piece, q_ns) => told,
            None if kind == piece.kind => self.owned(piece, told),
            None => told,
        }
    }

    /// Returns true if the snapshot's owner was changed after the block was written: it may have got the block then.
    fn has_changed(&self, piece: &Extent, q_ns: Option<u64>) -> bool {
        let inode = self.registry.map.and_then(|map| map.inode(piece.inode));
        let changed_ns = inode.and_then(|inode| inode.changed_ns);
        let (Some(changed_ns), Some((mono_ns, unix_ns))) = (changed_ns, self.clock) else {
            return false;
        };
        let queued_ns = q_ns.map_or(0, |q_ns| {
            unix_ns.saturating_add(q_ns).saturating_sub(mono_ns)
        });
        changed_ns > queued_ns
    }

    /// Adds the file that owns the piece.
    fn owned(&mut self, piece: &Extent, told: Answer) -> Answer {
        match (piece.kind, piece.inode) {
            // A free piece's inode is a deleted file's, which no longer owns it.
            (Kind::Free, _) | (_, 0) => told,
            (_, inode) => Answer {
                file: self.registry.files.snapshot(inode),
                file_offset: piece.file_offset,
                ..told
            },
        }
    }

    /// Adds a row over `range` with at most `left` bytes.
    fn emit(&mut self, range: Range<u64>, row: Row, left: &mut u32) {
        let sectors = range.end.saturating_sub(range.start);
        let bytes = u32::try_from(sectors.saturating_mul(512))
            .unwrap_or(u32::MAX)
            .min(*left);
        *left = left.saturating_sub(bytes);
        self.rows.push(Row {
            sector: range.start,
            bytes,
            ..row
        });
    }
}

/// Returns true if blocks of this kind can be freed and get another owner; blocks of other kinds stay in place for good.
fn changes_hands(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        Regular | Directory | Symlink | ExtentTree | Xattr | Free
    )
}

/// Returns how far the map is believed for a bio of metadata or a journalled copy of it.
fn metadata(note: &Note) -> Belief {
    let moment = match (note.jbd2, note.tid) {
        (Jbd2::METADATA_COPY, Some(tid)) => Moment::Copied(tid),
        _ => Moment::Queued(note.time_ns),
    };
    Belief::Metadata(note.contents, moment)
}

/// Returns how far the map is believed, given the origin of a bio.
fn belief(note: &Note) -> Belief {
    match note.origin {
        Origin::BDEV => metadata(note),
        Origin::FILE | Origin::DIRECT => Belief::AFile,
        Origin::JOURNAL => Belief::Journal,
        Origin::NODE => Belief::Node,
        _ => Belief::Whole,
    }
}

/// Returns the kind of a jbd2 block.
fn kind_of(jbd2: Jbd2) -> Kind {
    match jbd2 {
        Jbd2::DESCRIPTOR => Kind::Descriptor,
        Jbd2::COMMIT => Kind::Commit,
        Jbd2::SUPERBLOCK | Jbd2::SUPERBLOCK_V1 => Kind::Jbd2Superblock,
        Jbd2::REVOKE => Kind::Revoke,
        Jbd2::METADATA_COPY => Kind::MetadataCopy,
        Jbd2::DATA_COPY => Kind::DataCopy,
        _ => Kind::JournalBlock,
    }
}
