// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds entries like those of the probes from what tracepoints show.

use std::ops::Range;

use crate::entry::{
    Flags, NONE, Origin, RawFile, RawHead, RawProcess, Stage, TYPE_FILE, TYPE_PROCESS, What,
};
use zerocopy::IntoBytes;

use super::bio::{Bio, Moment};
use super::owner::{Owner, Thread};
use super::volume::{Piece, Volume};

/// The longest path that the kernel tells, PATH_MAX of linux/limits.h.
const LONGEST_PATH: usize = 4096;

/// Builds the entries of one disk.
#[derive(Debug)]
pub(super) struct EntryBuilder {
    /// The number of the disk, MAJ << 20 | MIN.
    pub disk_dev: u32,
    /// The size of a page in bytes.
    pub page_size: u64,
}

impl EntryBuilder {
    fn head(&self, at: Moment, kind: u16, size: usize, sector: u64, bytes: u64) -> RawHead {
        RawHead {
            kind: kind.into(),
            size: u16::try_from(size).unwrap_or(u16::MAX).into(),
            dev: self.disk_dev.into(),
            time_ns: at.time_ns.into(),
            sector: sector.into(),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX).into(),
            cpu: u16::try_from(at.cpu).unwrap_or(u16::MAX).into(),
            stage: Stage::QUEUE,
            ..RawHead::default()
        }
    }

    /// Builds the entry of the thread that queued a bio.
    pub fn process(&self, at: Moment, bio: &Bio, thread: &Thread) -> RawProcess {
        let size = size_of::<RawProcess>();
        let mut head = self.head(
            at,
            TYPE_PROCESS,
            size,
            bio.sector,
            bio.sectors.saturating_mul(512),
        );
        if thread.is_kernels {
            head.flags.0 |= Flags::KERNEL_THREAD.0;
        }
        // It queued the bio of the mapped device; any thread may have queued this one.
        if thread.queued_ns != at.time_ns {
            head.flags.0 |= Flags::CHAINED.0;
        }
        RawProcess {
            head,
            submit_ns: thread.queued_ns.into(),
            home_sector: NONE.into(),
            pid: thread.pid.into(),
            tgid: thread.tgid.into(),
            uid: thread.uid.into(),
            opf: bio.opf().into(),
            origin: match bio.is_data() {
                true => Origin::UNKNOWN,
                false => Origin::EMPTY,
            },
            comm: thread.comm,
            ..RawProcess::default()
        }
    }

    /// Builds the entry of the file to which a run of blocks belongs, with its name if `path` is known.
    pub fn file(
        &self,
        at: Moment,
        volume: &Volume,
        piece: &Piece,
        run: &Range<u64>,
        owner: Owner,
        path: Option<&[u8]>,
    ) -> Vec<u8> {
        let name = path.map_or(Vec::new(), from_root);
        let name = if name.len() > LONGEST_PATH {
            &[][..]
        } else {
            &name
        };
        let padded = name.len().next_multiple_of(8);
        let block_bytes = volume.sectors_of_block.saturating_mul(512);
        let (sectors, behind) = volume.part(piece, run);
        let bytes = sectors
            .end
            .saturating_sub(sectors.start)
            .saturating_mul(512);
        let size = size_of::<RawFile>().saturating_add(padded);
        let mut head = self.head(at, TYPE_FILE, size, sectors.start, bytes);
        head.flags = Flags::NO_GENERATION;
        let unit = if owner.is_node {
            self.page_size
        } else {
            block_bytes
        };
        let file = RawFile {
            head,
            ino: owner.ino.into(),
            offset: (owner.index.saturating_mul(unit).saturating_add(behind)).into(),
            s_dev: volume.dev.into(),
            name_len: u16::try_from(name.len()).unwrap_or(u16::MAX).into(),
            origin: match owner.is_node {
                true => Origin::NODE,
                false => Origin::FILE,
            },
            what: match owner.is_node {
                true => What::NODE,
                false => What::UNKNOWN,
            },
            ..RawFile::default()
        };
        let mut entry = file.as_bytes().to_vec();
        entry.extend(name);
        entry.resize(size, 0);
        entry
    }
}

/// Returns a path as tables have it: from the root on, without empty names.
fn from_root(path: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(path.len());
    for name in path.split(|&byte| byte == b'/') {
        if !name.is_empty() {
            stored.push(b'/');
            stored.extend_from_slice(name);
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_size_and_its_submitters_time() {
        let builder = EntryBuilder {
            disk_dev: 7 << 20,
            page_size: 4096,
        };
        let bio = Bio {
            sector: 8,
            sectors: 16,
            dev: 7 << 20,
            pid: 3,
            categories: 0,
            comm: Vec::new(),
        };
        let thread = Thread {
            queued_ns: 5,
            ..Thread::default()
        };
        let process = builder.process(Moment { time_ns: 9, cpu: 1 }, &bio, &thread);
        let head = process.head;
        assert_eq!(usize::from(head.size.get()), size_of::<RawProcess>());
        assert_eq!((head.time_ns.get(), process.submit_ns.get()), (9, 5));
        assert_eq!((head.sector.get(), head.bytes.get()), (8, 8192));
        assert_eq!(head.flags.0, Flags::CHAINED.0);
    }

    #[test]
    fn a_path_begins_at_the_root() {
        for (path, stored) in [
            (&b"/data/app/a.db-wal"[..], &b"/data/app/a.db-wal"[..]),
            (b"a//b/", b"/a/b"),
            (b"/", b""),
        ] {
            assert_eq!(from_root(path), stored);
        }
    }
}
