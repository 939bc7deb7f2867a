// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries in the compact form in which they wait, with processes and files replaced by their numbers.

use mostrace_bundle::entry::{
    Contents, Flags, Home, Jbd2, NONE, Origin, RawDirtier, RawFile, RawProcess, Stage, What,
};

use super::pending::{Blur, Match};
use super::{FileId, Mounting, Op, ProcessId};
use mostrace_map::class::Kind;

/// The contents of a process entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub process: ProcessId,
    /// The thread that queued the bio, if that is its submitter.
    thread: Option<u32>,
    /// True if the probe ran at Q and saw that the task that queued the bio is not its submitter.
    pub is_anothers: bool,
    pub stage: Stage,
    pub origin: Origin,
    pub jbd2: Jbd2,
    /// The call for mounting that the submitter was in.
    pub mounting: Option<Mounting>,
    /// Number of the jbd2 transaction.
    pub tid: Option<u32>,
    /// Sector of the home of a journalled copy's first sector.
    pub home_sector: Option<u64>,
    /// The length of the bio in sectors; that of a block, if it is a journal's.
    pub sectors: u32,
    /// The origin that `home_sector` counts from.
    pub home: Home,
    /// The kind of the block by its own bytes.
    pub contents: Contents,
    /// Time of the entry, ns.
    pub time_ns: u64,
    /// The same if it was made at Q.
    pub queued_ns: Option<u64>,
    /// The operation by bi_opf where the event cannot express it: blktrace v7 has none for write-zeroes.
    pub op: Option<Op>,
}

impl Note {
    pub fn new(raw: &RawProcess, process: ProcessId) -> Note {
        let unseen = raw.head.flags.has(Flags::NO_SUBMITTER);
        let is_anothers = unseen || raw.head.flags.has(Flags::CHAINED);
        Note {
            process: if unseen { ProcessId::UNKNOWN } else { process },
            thread: Some(raw.pid.get()).filter(|_| !is_anothers),
            is_anothers: is_anothers && raw.head.stage == Stage::QUEUE,
            stage: raw.head.stage,
            origin: raw.origin,
            mounting: Mounting::of(raw.head.flags),
            jbd2: raw.jbd2,
            tid: Some(raw.tid.get()).filter(|&tid| tid != 0 || raw.jbd2 != Jbd2::NONE),
            home_sector: Some(raw.home_sector.get()).filter(|&sector| sector != NONE),
            sectors: raw.head.bytes.get() / 512,
            home: raw.home,
            contents: raw.contents,
            time_ns: raw.head.time_ns.get(),
            queued_ns: (raw.head.stage == Stage::QUEUE).then(|| raw.head.time_ns.get()),
            op: Op::of_opf(raw.opf.get()),
        }
    }

    /// Returns true if the entry's process replaces the thread that the tracer saw at Q.
    pub fn tells_submitter(&self) -> bool {
        self.process != ProcessId::UNKNOWN || self.is_anothers
    }
}

impl Blur for Note {
    fn thread(&self) -> Option<u32> {
        self.thread
    }

    fn blur(&mut self, other: &mut Note, _: i64) {
        agree(&mut self.thread, &mut other.thread, None);
        self.is_anothers |= other.is_anothers;
        other.is_anothers = self.is_anothers;
        agree(&mut self.process, &mut other.process, ProcessId::UNKNOWN);
        agree(&mut self.origin, &mut other.origin, Origin::UNKNOWN);
        agree(&mut self.mounting, &mut other.mounting, None);
        agree(&mut self.op, &mut other.op, None);
        agree(&mut self.queued_ns, &mut other.queued_ns, None);
        agree(&mut self.contents, &mut other.contents, Contents::UNKNOWN);
        let block = |note: &Note| (note.jbd2, note.tid, note.home_sector);
        if block(self) != block(other) {
            for note in [self, other] {
                (note.jbd2, note.tid, note.home_sector) = (Jbd2::NONE, None, None);
            }
        }
    }
}

/// The contents of a file entry, which covers a run of a bio.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRun {
    pub file: FileId,
    /// File offset of the run's first byte.
    pub offset: Option<u64>,
    /// The kind of an f2fs node or of a block of btrfs's trees; None for contents of the file.
    pub node: Option<Kind>,
    pub stage: Stage,
    pub origin: Origin,
}

/// `BTRFS_BTREE_INODE_OBJECTID`: the inode whose pages are the blocks of btrfs's trees.
const BTREE_INODE: u64 = 1;

impl FileRun {
    /// Decodes an entry of btrfs: a block of its trees belongs to no file.
    pub fn of_btrfs(raw: &RawFile, file: FileId) -> FileRun {
        let run = FileRun::new(raw, file);
        match raw.origin == Origin::FILE && raw.ino.get() == BTREE_INODE {
            true => FileRun {
                file: FileId::NONE,
                offset: None,
                node: Some(Kind::Btree),
                ..run
            },
            false => run,
        }
    }

    pub fn new(raw: &RawFile, file: FileId) -> FileRun {
        let node = node_kind(raw);
        let offset = Some(raw.offset.get()).filter(|&o| o != NONE && node.is_none());
        FileRun {
            file,
            offset,
            node,
            stage: raw.head.stage,
            origin: raw.origin,
        }
    }
}

impl Blur for FileRun {
    fn blur(&mut self, other: &mut FileRun, ahead: i64) {
        let place = |run: &FileRun| (run.file, run.node);
        if place(self) != place(other) {
            for run in [&mut *self, &mut *other] {
                (run.file, run.node) = (FileId::NONE, None);
            }
        }
        let offsets = self.offset.zip(other.offset);
        if offsets.is_none_or(|(one, two)| one.checked_add_signed(ahead) != Some(two)) {
            (self.offset, other.offset) = (None, None);
        }
        agree(&mut self.origin, &mut other.origin, Origin::UNKNOWN);
    }
}

/// The contents of a dirtier entry, which covers a run of pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirt {
    pub process: ProcessId,
    /// True if it moved the pages to collect garbage.
    pub collects: bool,
    /// True if stores through a mapping may have changed the pages unseen.
    pub is_mapped: bool,
    /// The call for mounting that the dirtier was in.
    pub mounting: Option<Mounting>,
    /// Time when the run's first page became dirty, ns.
    dirty_ns: Option<u64>,
}

impl Blur for Dirt {
    fn blur(&mut self, other: &mut Dirt, _: i64) {
        agree(&mut self.process, &mut other.process, ProcessId::UNKNOWN);
        agree(&mut self.collects, &mut other.collects, false);
        agree(&mut self.is_mapped, &mut other.is_mapped, true);
        agree(&mut self.mounting, &mut other.mounting, None);
        agree(&mut self.dirty_ns, &mut other.dirty_ns, None);
    }
}

/// Makes both unknown unless they are equal.
fn agree<T: PartialEq + Copy>(a: &mut T, b: &mut T, unknown: T) {
    if a != b {
        (*a, *b) = (unknown, unknown);
    }
}

impl Dirt {
    pub fn new(raw: &RawDirtier, process: ProcessId) -> Dirt {
        Dirt {
            process,
            collects: raw.head.flags.has(Flags::COLLECTS),
            is_mapped: raw.head.flags.has(Flags::MAPPED),
            mounting: Mounting::of(raw.head.flags),
            dirty_ns: Some(raw.dirty_ns.get()),
        }
    }
}

impl Match<Dirt> {
    /// Returns when the page at `sector` became dirty, ns, if it is the run's first.
    pub fn dirty_at(&self, sector: u64) -> Option<u64> {
        self.dirty_ns.filter(|_| self.skipped_at(sector) == 0)
    }
}

/// Returns the kind of the f2fs node that an entry is for; None if it is for another block.
fn node_kind(raw: &RawFile) -> Option<Kind> {
    (raw.origin == Origin::NODE).then_some(match raw.what {
        What::HOT_NODE => Kind::HotNode,
        What::WARM_NODE => Kind::WarmNode,
        What::FSYNC_NODE => Kind::FsyncNode,
        What::COLD_NODE => Kind::ColdNode,
        _ => Kind::Node,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_btrfs_s_tree_inode_are_blocks_of_its_trees() {
        let run = |origin, ino: u64| {
            let raw = RawFile {
                ino: ino.into(),
                origin,
                offset: 8192.into(),
                ..RawFile::default()
            };
            let run = FileRun::of_btrfs(&raw, FileId(3));
            (run.file, run.offset, run.node)
        };
        let of_tree = (FileId::NONE, None, Some(Kind::Btree));
        let of_file = (FileId(3), Some(8192), None);
        assert_eq!(run(Origin::FILE, BTREE_INODE), of_tree);
        assert_eq!(run(Origin::FILE, 257), of_file);
        assert_eq!(run(Origin::DIRECT, BTREE_INODE), of_file);
    }
}
