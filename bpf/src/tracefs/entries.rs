// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries from plain tracepoints: who queues a bio, and as far as the filesystem's own events tell, of which file.
//!
//! ```text
//! f2fs_write_begin ──→ regular files
//! f2fs_submit_page_write ────┐ inode, page → block
//! ext4_ext_map_blocks_exit ──┼─→ extents ──┐
//! ext4_free_blocks ──────────┘             ├─→ entries of a bio, when it is queued
//! f2fs_datawrite_start ──→ names ──────────┤
//! block_bio_queue ──→ thread ──→ /proc ────┘
//! ```
//! Where the filesystem is on a mapped device (dm), bios are queued twice: there, by whom they are for, and on the disk below, by anyone.
//! A name is told where a filesystem's event has one: on f2fs, of a file that is written; ext4 has no such event.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use foldhash::fast::RandomState;
use mostrace_bundle::Folder;
use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_AHEAD, BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_WRITE,
};
use mostrace_bundle::entry::{
    Contents, Flags, Home, Jbd2, NONE, Origin, RawFile, RawHead, RawProcess, Stage, TYPE_FILE,
    TYPE_PROCESS, What,
};
use zerocopy::IntoBytes;

use super::events::only;
use super::extents::Extents;
use super::format::{Field, Format};
use super::instance::{self, Instance, Record};
use super::owner::{Owner, Thread};
use super::rwbs::categories;
use super::task::Tasks;
use super::volume::{Piece, Volume};
use crate::cut::Ends;
use crate::entries::{Counts, Cut, EntrySource, Tables};
use crate::error::Result;
use crate::machine::device::Device;
use crate::names::NameFilter;

/// What a filesystem's event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tells {
    /// A page that joined a bio: 7.x has folios in its name. It may be a directory's.
    F2fsPage,
    /// A file that is written: a regular one.
    F2fsRegular,
    /// An inode that leaves memory: its number may be another's from then on.
    F2fsGone,
    /// Blocks of a file that are looked up, or allocated.
    ExtMapped,
    /// Blocks that nobody has any more.
    ExtFreed,
    /// The path of a file that is written. No device: only while there is one f2fs.
    Path,
    /// A bio.
    Queue,
}

/// Those that a kernel has not are done without, but for the last.
const EVENTS: [(&str, Tells); 13] = [
    ("f2fs/f2fs_submit_page_write", Tells::F2fsPage),
    ("f2fs/f2fs_submit_page_bio", Tells::F2fsPage),
    ("f2fs/f2fs_submit_folio_write", Tells::F2fsPage),
    ("f2fs/f2fs_submit_folio_bio", Tells::F2fsPage),
    ("f2fs/f2fs_write_begin", Tells::F2fsRegular),
    ("f2fs/f2fs_direct_IO_enter", Tells::F2fsRegular),
    ("f2fs/f2fs_evict_inode", Tells::F2fsGone),
    ("ext4/ext4_ext_map_blocks_exit", Tells::ExtMapped),
    ("ext4/ext4_ind_map_blocks_exit", Tells::ExtMapped),
    ("ext4/ext4_free_blocks", Tells::ExtFreed),
    ("f2fs/f2fs_datawrite_start", Tells::Path),
    ("android_fs/android_fs_datawrite_start", Tells::Path),
    ("block/block_bio_queue", Tells::Queue),
];

/// Of ext4's flags of a lookup, those that only the contents of regular files are looked up with: written back, or written
/// directly.
const OF_REGULAR: [&str; 4] = ["DELALLOC", "PRE_IO", "IO_SUBMIT", "UNWRIT"];

/// One event that is listened to.
#[derive(Debug)]
struct Event {
    tells: Tells,
    format: Format,
}

impl Event {
    fn field(&self, name: &str) -> Option<Field> {
        self.format.find(name)
    }

    fn number(&self, name: &str, record: &[u8]) -> Option<u64> {
        self.field(name)?.number(record)
    }
}

/// The running tracepoints.
pub(crate) struct TracefsEntries {
    instance: Instance,
    events: BTreeMap<u16, Event>,
    tables: Tables,
    device: Device,
    volume: Option<Volume>,
    extents: Extents<Owner>,
    /// Of a mapped device's sectors, who queued a bio there that has not come down yet.
    submitters: Extents<Thread>,
    /// Of f2fs, inodes that are known to be of regular files.
    regular: HashSet<u64, RandomState>,
    /// By inode, as it was last told.
    paths: HashMap<u64, Vec<u8>, RandomState>,
    tasks: Tasks,
    page_size: u64,
}

/// Files that are remembered at most.
const MANY_FILES: usize = 1 << 14;

impl TracefsEntries {
    /// Starts them, into tables in `folder`. The files are those of `volume`.
    ///
    /// # Errors
    /// The kernel has no plain tracepoint of bios, or refuses an instance.
    pub fn start(
        device: &Device,
        volume: Option<Volume>,
        folder: &Folder,
        names: NameFilter,
        is_cut: bool,
    ) -> Result<TracefsEntries> {
        let root = instance::root()?;
        let found = find(root, volume.is_some())?;
        let listened: Vec<(&str, String)> = found
            .iter()
            .map(|(name, event)| {
                let mut devs = vec![device.dev, device.disk_dev];
                devs.extend(volume.as_ref().map(|volume| volume.dev));
                let has_dev = event.field("dev").is_some();
                (*name, if has_dev { only(&devs) } else { String::new() })
            })
            .collect();
        let tables = Tables::create(folder, names, "tracefs", is_cut)?;
        let instance = Instance::start("entries", &listened)?;
        let by_id = found.into_iter().map(|(_, event)| (event.format.id, event));
        Ok(TracefsEntries {
            instance,
            events: by_id.collect(),
            tables,
            device: device.clone(),
            volume,
            extents: Extents::default(),
            submitters: Extents::default(),
            regular: HashSet::default(),
            paths: HashMap::default(),
            tasks: Tasks::default(),
            page_size: rustix::param::page_size() as u64,
        })
    }

    /// What a reader of the entries should know.
    pub fn told(&self) -> Vec<String> {
        let tells = |tells| self.events.values().any(|event| event.tells == tells);
        let mut notes = Vec::new();
        if !tells(Tells::F2fsPage) && !tells(Tells::ExtMapped) {
            notes.push(
                "entries tracefs: the filesystem has no events: of files nothing is seen live"
                    .into(),
            );
        } else if !tells(Tells::Path) {
            notes.push("entries tracefs: no event tells names: a file that is gone at the snapshot has none".into());
        }
        notes
    }

    fn push(&mut self, records: Vec<Record>) -> Result<()> {
        for record in records {
            self.take(&record)?;
        }
        self.tables.flush()
    }

    fn take(&mut self, record: &Record) -> Result<()> {
        let Some(event) = self.events.get(&record.id()) else {
            return Ok(());
        };
        match event.tells {
            Tells::Queue => {
                let Some(bio) = Bio::of(event, record) else {
                    return Ok(());
                };
                let mut volume = self.volume.iter();
                if volume.any(|volume| volume.is_mapped && volume.dev == bio.dev) {
                    self.remember(record, &bio);
                } else {
                    return self.queue(record, &bio);
                }
            }
            Tells::F2fsPage => {
                let told = f2fs_page(event, &record.bytes);
                let is_known = |owner: Owner| owner.is_node || self.regular.contains(&owner.ino);
                if let Some((block, owner)) = told.filter(|(_, owner)| is_known(*owner)) {
                    self.extents.insert(block..block + 1, owner);
                }
            }
            Tells::F2fsRegular => {
                if self.regular.len() > MANY_FILES {
                    self.regular.clear();
                }
                self.regular.extend(event.number("ino", &record.bytes));
            }
            Tells::F2fsGone => {
                if let Some(ino) = event.number("ino", &record.bytes) {
                    self.regular.remove(&ino);
                    self.paths.remove(&ino);
                }
            }
            Tells::ExtMapped => {
                let told = mapped(event, &record.bytes);
                if let Some((blocks, owner)) = told {
                    self.extents.insert(blocks, owner);
                }
            }
            Tells::ExtFreed => {
                let told = freed(event, &record.bytes);
                if let Some(blocks) = told {
                    self.extents.remove(&blocks);
                }
            }
            Tells::Path => {
                let told = path(event, &record.bytes);
                if let Some((ino, path)) = told {
                    if self.paths.len() > MANY_FILES {
                        self.paths.clear();
                    }
                    self.paths.insert(ino, path);
                }
            }
        }
        Ok(())
    }

    fn queue(&mut self, record: &Record, bio: &Bio) -> Result<()> {
        let end = bio.sector.saturating_add(bio.sectors);
        let is_target = bio.sectors == 0
            || bio.sector < self.device.end_sector() && end > self.device.info.start_sector;
        if !is_target {
            return Ok(());
        }
        let volume = self.volume.clone();
        let pieces = volume.as_ref().map(|v| v.pieces(&(bio.sector..end)));
        let pieces = pieces.unwrap_or_default();
        let thread = match self.submitter(&pieces) {
            Some(above) => above,
            None => self.thread(record, bio),
        };
        let entry = self.process(record, bio, &thread);
        self.tables.take(entry.as_bytes())?;
        let Some(volume) = volume.filter(|_| bio.is_data()) else {
            return Ok(());
        };
        for piece in pieces {
            for (run, owner) in self.extents.of(&volume.blocks(&piece)) {
                let entry = self.file(record, &volume, &piece, &run, owner);
                self.tables.take(&entry)?;
                // Each write of such a page is told anew.
                if owner.is_node {
                    self.extents.remove(&run);
                }
            }
        }
        Ok(())
    }

    /// A bio of the mapped device, which comes down as one or several.
    fn remember(&mut self, record: &Record, bio: &Bio) {
        let thread = self.thread(record, bio);
        let sectors = bio.sector..bio.sector.saturating_add(bio.sectors);
        self.submitters.insert(sectors, thread);
    }

    /// Who queued above what comes down here.
    fn submitter(&mut self, pieces: &[Piece]) -> Option<Thread> {
        let mut first = None;
        for piece in pieces {
            let sectors = piece.sectors();
            let known = self.submitters.of(&sectors).into_iter().next();
            first = first.or(known.map(|(_, thread)| thread));
            self.submitters.remove(&sectors);
        }
        first
    }

    fn thread(&mut self, record: &Record, bio: &Bio) -> Thread {
        let task = self.tasks.get(bio.pid, &bio.comm);
        let mut comm = [0; 16];
        let named = bio.comm.len().min(comm.len() - 1);
        comm[..named].copy_from_slice(&bio.comm[..named]);
        Thread {
            pid: bio.pid,
            tgid: task.tgid,
            uid: task.uid,
            comm,
            is_kernels: task.is_kernels,
            queued_ns: record.time_ns,
        }
    }

    fn head(&self, record: &Record, kind: u16, size: usize, sector: u64, bytes: u64) -> RawHead {
        RawHead {
            kind: kind.into(),
            size: (size as u16).into(),
            dev: self.device.disk_dev.into(),
            time_ns: record.time_ns.into(),
            sector: sector.into(),
            bytes: (bytes as u32).into(),
            cpu: (record.cpu as u16).into(),
            stage: Stage::QUEUE,
            flags: Flags::default(),
        }
    }

    fn process(&self, record: &Record, bio: &Bio, thread: &Thread) -> RawProcess {
        let size = size_of::<RawProcess>();
        let mut head = self.head(record, TYPE_PROCESS, size, bio.sector, bio.sectors << 9);
        if thread.is_kernels {
            head.flags = Flags::KERNEL_THREAD;
        }
        RawProcess {
            head,
            submit_ns: thread.queued_ns.into(),
            home_sector: NONE.into(),
            pid: thread.pid.into(),
            tgid: thread.tgid.into(),
            uid: thread.uid.into(),
            opf: bio.opf().into(),
            tid: 0.into(),
            origin: if bio.is_data() {
                Origin::UNKNOWN
            } else {
                Origin::EMPTY
            },
            jbd2: Jbd2::NONE,
            home: Home::DISK,
            contents: Contents::UNKNOWN,
            comm: thread.comm,
        }
    }

    fn file(
        &self,
        record: &Record,
        volume: &Volume,
        piece: &Piece,
        run: &Range<u64>,
        owner: Owner,
    ) -> Vec<u8> {
        let path = self.paths.get(&owner.ino).filter(|_| owner.ino != 0);
        let name = path.map_or(Vec::new(), |path| upwards(path));
        let name = &name[..name.len().min(usize::from(u16::MAX) / 2)];
        let padded = name.len().next_multiple_of(8);
        let block_bytes = volume.sectors_of_block * 512;
        let (sectors, behind) = volume.part(piece, run);
        let bytes = (sectors.end - sectors.start) * 512;
        let size = size_of::<RawFile>() + padded;
        let mut head = self.head(record, TYPE_FILE, size, sectors.start, bytes);
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
            parent: 0.into(),
            generation: 0.into(),
            s_dev: volume.dev.into(),
            nlink: 0.into(),
            name_len: (name.len() as u16).into(),
            origin: if owner.is_node {
                Origin::NODE
            } else {
                Origin::FILE
            },
            what: if owner.is_node {
                What::NODE
            } else {
                What::UNKNOWN
            },
        };
        let mut entry = file.as_bytes().to_vec();
        entry.extend(name);
        entry.resize(size, 0);
        entry
    }
}

/// Those of the events that the kernel has and that have a use.
fn find(root: &Path, has_volume: bool) -> Result<Vec<(&'static str, Event)>> {
    let one_f2fs = crate::machine::mountinfo::all()
        .iter()
        .filter(|m| m.kind == "f2fs")
        .count()
        == 1;
    let mut found = Vec::new();
    for (name, tells) in EVENTS {
        let wanted = match tells {
            Tells::Queue => true,
            Tells::Path => has_volume && one_f2fs,
            _ => has_volume,
        };
        if !wanted {
            continue;
        }
        match Format::read(root, name) {
            Ok(format) => found.push((name, Event { tells, format })),
            Err(e) if tells == Tells::Queue => return Err(e),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// A bio as it is queued.
#[derive(Debug)]
struct Bio {
    dev: u32,
    pid: u32,
    sector: u64,
    sectors: u64,
    categories: u64,
    comm: Vec<u8>,
}

impl Bio {
    fn of(event: &Event, record: &Record) -> Option<Bio> {
        let bytes = &record.bytes;
        let sectors = event.number("nr_sector", bytes)?;
        let sector = event.number("sector", bytes)?;
        Some(Bio {
            dev: event.number("dev", bytes)? as u32,
            pid: event.number("common_pid", bytes)? as u32,
            sector: if sector == u64::MAX { 0 } else { sector },
            sectors,
            categories: categories(event.field("rwbs")?.text(bytes)?, sectors),
            comm: event.field("comm")?.text(bytes)?.to_vec(),
        })
    }

    fn is_data(&self) -> bool {
        self.sectors > 0 && self.categories & BLK_TC_DISCARD == 0
    }

    /// REQ_OP of <linux/blk_types.h>, as far as the letters tell.
    fn opf(&self) -> u32 {
        let has = |category| self.categories & category != 0;
        match (has(BLK_TC_DISCARD), has(BLK_TC_WRITE), has(BLK_TC_FLUSH)) {
            (true, ..) => 3,
            (false, true, _) => 1,
            (false, false, true) if !has(BLK_TC_AHEAD) => 2,
            _ => 0,
        }
    }
}

/// `enum page_type` of f2fs: what a page is of, where it is contents or a node.
const F2FS_DATA: u64 = 0;
const F2FS_NODE: u64 = 1;
const REQ_OP_WRITE: u64 = 1;

/// The block that a page goes to, and whose it is.
fn f2fs_page(event: &Event, record: &[u8]) -> Option<(u64, Owner)> {
    if event.number("op", record)? != REQ_OP_WRITE {
        return None;
    }
    let is_node = match event.number("type", record)? {
        F2FS_DATA => false,
        F2FS_NODE => true,
        _ => return None,
    };
    let ino = event.number("ino", record)?;
    let owner = Owner {
        ino: if is_node { 0 } else { ino },
        index: event.number("index", record)?,
        is_node,
    };
    Some((event.number("new_blkaddr", record)?, owner))
}

/// Blocks of a regular file, and which.
fn mapped(event: &Event, record: &[u8]) -> Option<(Range<u64>, Owner)> {
    let of_regular = event.format.flags(&OF_REGULAR);
    if event.number("flags", record)? & of_regular == 0 {
        return None;
    }
    let blocks = u64::try_from(event.field("ret")?.signed(record)?).ok()?;
    let start = event.number("pblk", record)?;
    let owner = Owner {
        ino: event.number("ino", record)?,
        index: event.number("lblk", record)?,
        is_node: false,
    };
    (start > 0 && blocks > 0).then(|| (start..start + blocks, owner))
}

fn freed(event: &Event, record: &[u8]) -> Option<Range<u64>> {
    let start = event.number("block", record)?;
    let count = event.number("count", record)?;
    Some(start..start.checked_add(count)?)
}

fn path(event: &Event, record: &[u8]) -> Option<(u64, Vec<u8>)> {
    let path = event.field("pathbuf")?.text(record)?;
    let ino = event.number("ino", record)?;
    path.starts_with(b"/").then(|| (ino, path.to_vec()))
}

/// A path as the probes tell it: the name, and the folders above it, a slash behind each.
fn upwards(path: &[u8]) -> Vec<u8> {
    let mut told = Vec::with_capacity(path.len());
    for name in path.rsplit(|&byte| byte == b'/') {
        if !name.is_empty() {
            told.extend_from_slice(name);
            told.push(b'/');
        }
    }
    told
}

impl EntrySource for TracefsEntries {
    fn name(&self) -> &'static str {
        "tracefs"
    }

    fn poll(&mut self) -> Result<()> {
        let records = self.instance.take()?;
        self.push(records)
    }

    fn counts(&self) -> Counts {
        self.tables.counts()
    }

    fn cut(&mut self, at_ns: u64, folder: &Folder, ends: Ends) -> Result<Cut> {
        self.tables.keep_from(at_ns);
        let records = self.instance.take()?;
        self.push(records)?;
        self.tables.cut(folder, ends)
    }

    fn stop(&mut self) -> Result<()> {
        let records = self.instance.stop()?;
        self.push(records)
    }

    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        let losses = [
            ("entries_tracefs", self.instance.lost()),
            ("extents_forgotten", self.extents.forgotten),
        ];
        Ok(losses.map(|(name, n)| (name.to_owned(), n)).into())
    }

    fn notes(&self) -> Vec<String> {
        self.instance.notes().to_vec()
    }

    fn interference(&self) -> Vec<String> {
        self.instance.interference().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_from_its_end() {
        for (path, told) in [
            (&b"/data/app/a.db-wal"[..], &b"a.db-wal/app/data/"[..]),
            (b"/a", b"a/"),
            (b"/", b""),
        ] {
            assert_eq!(upwards(path), told);
        }
    }
}
