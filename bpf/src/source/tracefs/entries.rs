// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries from plain tracepoints: who queues a bio, and to which file it belongs, as far as the filesystem's own events show it.
//!
//! ```text
//! f2fs_write_begin ──→ regular files
//! f2fs_submit_page_write ────┐ inode, page → block
//! ext4_ext_map_blocks_exit ──┼─→ extents ──┐
//! ext4_free_blocks ──────────┘             ├─→ entries of a bio, when it is queued
//! f2fs_datawrite_start ──→ names ──────────┤
//! block_bio_queue ──→ thread ──→ /proc ────┘
//! ```
//! If the filesystem is on a mapped device (dm), bios are queued twice: on that device by the thread that wants them, and on the
//! disk below by any thread. The name of a file is known only if one of the filesystem's events has it: f2fs has one for files that
//! are written, ext4 has one in Android's kernels up to 5.10 alone.

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::RandomState;
use zerocopy::IntoBytes;

use super::bio::Bio;
use super::builder::EntryBuilder;
use super::events::only;
use super::extents::Extents;
use super::instance::{self, Instance, Record};
use super::owner::{Owner, Thread};
use super::paths::Paths;
use super::task::Tasks;
use super::tracepoints::{Event, Tells, f2fs_page, find, freed, mapped, path, thread, written};
use super::volume::{Piece, Volume};
use crate::error::Result;
use crate::machine::device::Device;
use crate::sink::Sink;
use crate::source::process_names::open_entries;
use crate::source::{Losses, Provides, Remark, Source, remarks};

/// The running tracepoints.
pub(crate) struct TracefsEntries {
    instance: Instance,
    /// What the entries lack on this kernel.
    limits: Vec<String>,
    /// The tracepoints, by number.
    events: BTreeMap<u16, Event>,
    device: Device,
    volume: Option<Volume>,
    extents: Extents<Owner>,
    /// The threads that queued bios on a mapped device, by its sectors, until the bios arrive on the disk below.
    submitters: Extents<Thread>,
    /// The inodes that are known to be of regular files.
    regular: HashSet<u64, RandomState>,
    paths: Paths,
    tasks: Tasks,
    builder: EntryBuilder,
}

/// The most files that are remembered.
const MANY_FILES: usize = 1 << 14;

impl TracefsEntries {
    /// Starts the tracepoints, and makes the tables. The files are those of `volume`.
    ///
    /// # Errors
    /// Returns an error if the kernel has no plain tracepoint of bios or refuses an instance, or if the bundle cannot be written.
    pub fn start(
        device: &Device,
        volume: Option<Volume>,
        sink: &mut Sink,
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
        let instance = Instance::start("entries", &listened)?;
        open_entries(sink, "tracefs")?;
        let by_id = found.into_iter().map(|(_, event)| (event.format.id, event));
        let events: BTreeMap<_, _> = by_id.collect();
        let limits = limits(&events);
        Ok(TracefsEntries {
            instance,
            limits,
            events,
            device: device.clone(),
            volume,
            extents: Extents::default(),
            submitters: Extents::default(),
            regular: HashSet::default(),
            paths: Paths::default(),
            tasks: Tasks::default(),
            builder: EntryBuilder {
                disk_dev: device.disk_dev,
                page_size: rustix::param::page_size() as u64,
            },
        })
    }

    fn push(&mut self, records: &[Record], sink: &mut Sink) -> Result<()> {
        records
            .iter()
            .try_for_each(|record| self.take(record, sink))
    }

    fn take(&mut self, record: &Record, sink: &mut Sink) -> Result<()> {
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
                    return self.queue(record, &bio, sink);
                }
            }
            Tells::F2fsPage => {
                let told = f2fs_page(event, &record.bytes);
                let is_known = |owner: Owner| owner.is_node || self.regular.contains(&owner.ino);
                if let Some((block, owner)) = told.filter(|(_, owner)| is_known(*owner)) {
                    self.extents.insert(block..block + 1, owner);
                }
            }
            Tells::Regular => {
                if self.regular.len() > MANY_FILES {
                    self.regular.clear();
                }
                self.regular.extend(event.number("ino", &record.bytes));
                if let Some((thread, ino, pos)) = written(event, &record.bytes) {
                    self.paths.settle(thread, ino, pos);
                }
            }
            Tells::Gone => {
                if let Some(ino) = event.number("ino", &record.bytes) {
                    self.regular.remove(&ino);
                    self.paths.remove(ino);
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
                if let Some(told) = path(event, &record.bytes) {
                    self.paths.insert(told);
                }
            }
            Tells::PathOfSome => {
                let told = path(event, &record.bytes);
                if let Some((thread, told)) = thread(event, &record.bytes).zip(told) {
                    self.paths.hear(thread, told);
                }
            }
        }
        Ok(())
    }

    fn queue(&mut self, record: &Record, bio: &Bio, sink: &mut Sink) -> Result<()> {
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
        let entry = self.builder.process(record, bio, &thread);
        sink.push_entry(entry.as_bytes())?;
        let Some(volume) = volume.filter(|_| bio.is_data()) else {
            return Ok(());
        };
        for piece in pieces {
            for (run, owner) in self.extents.of(&volume.blocks(&piece)) {
                let path = self.paths.get(owner.ino).filter(|_| owner.ino != 0);
                let entry = self
                    .builder
                    .file(record, &volume, &piece, &run, owner, path);
                sink.push_entry(&entry)?;
                // Each write of such a page has its own event.
                if owner.is_node {
                    self.extents.remove(&run);
                }
            }
        }
        Ok(())
    }

    /// Stores who queued a bio of the mapped device. It arrives below as one bio or as several.
    fn remember(&mut self, record: &Record, bio: &Bio) {
        let thread = self.thread(record, bio);
        let sectors = bio.sector..bio.sector.saturating_add(bio.sectors);
        self.submitters.insert(sectors, thread);
    }

    /// Returns the thread that queued, on the mapped device, what arrives here.
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
}

/// Returns what entries from these tracepoints lack.
fn limits(events: &BTreeMap<u16, Event>) -> Vec<String> {
    let tells = |tells| events.values().any(|event| event.tells == tells);
    let mut notes = Vec::new();
    if !tells(Tells::F2fsPage) && !tells(Tells::ExtMapped) {
        notes.push(
            "entries tracefs: the filesystem has no events: of files nothing is seen live".into(),
        );
    } else if !tells(Tells::Path) && !tells(Tells::PathOfSome) {
        notes.push(
            "entries tracefs: no event tells names: a file that is gone at the snapshot has none"
                .into(),
        );
    }
    notes
}

impl Source for TracefsEntries {
    fn name(&self) -> &'static str {
        "tracefs"
    }

    fn provides(&self) -> Provides {
        Provides::ENTRIES | Provides::SEGMENTS
    }

    fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        let records = self.instance.take()?;
        self.push(&records, sink)
    }

    fn stop(&mut self, _what: Provides, sink: &mut Sink) -> Result<()> {
        let records = self.instance.stop()?;
        self.push(&records, sink)
    }

    fn losses(&self) -> Result<Losses> {
        let losses = self.instance.lost().map(|lost| {
            let losses = [
                ("entries_tracefs", lost),
                ("extents_forgotten", self.extents.forgotten),
            ];
            losses.map(|(name, n)| (name.to_owned(), n))
        });
        Ok(losses.into_iter().flatten().collect())
    }

    fn remarks(&self) -> Vec<Remark> {
        let limits = remarks(&self.limits, Remark::Limit);
        limits.chain(self.instance.remarks()).collect()
    }
}
