// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of one thread: making, reading and writing it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memmap2::MmapMut;
use rustix::fs::OFlags;

use super::{FileSettings, Mode, Pattern, mapped, order};
use crate::measure::Stopwatch;
use crate::{Error, Result};

/// The alignment of memory that O_DIRECT needs on any current disk, bytes.
const ALIGNMENT: usize = 4096;
/// The number of bytes written at once when the file is made.
const PIECE: usize = 512 << 10;

/// The open file of one thread.
pub(super) struct TargetFile {
    path: PathBuf,
    file: File,
    memory: Option<MmapMut>,
    record: Record,
    order: Vec<u64>,
}

impl TargetFile {
    /// Opens the file. For all patterns but Append, the whole file is first made and synced to the disk.
    pub(super) fn open(settings: &FileSettings, thread: u32) -> Result<Self> {
        let path = settings.path.join(format!("test.dat{thread}"));
        let mut chance = fastrand::Rng::with_seed(settings.seed.wrapping_add(thread.into()));
        let record = Record::new(settings.record_size, &mut chance);
        let records = settings.records();
        let order = match settings.pattern.is_random() {
            true => order::by_chance(records, settings.overlap, &mut chance),
            false => order::in_sequence(records),
        };
        Self::open_io(&path, settings, record, order).map_err(Error::io(&path))
    }

    fn open_io(
        path: &Path,
        settings: &FileSettings,
        record: Record,
        order: Vec<u64>,
    ) -> io::Result<Self> {
        match settings.pattern {
            Pattern::Append => match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            },
            _ => fill_up(path, settings.bytes())?,
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags(settings.mode))
            .open(path)?;
        let memory = match settings.mode.is_mapped() {
            true => Some(memory(&file, settings.bytes())?),
            false => None,
        };
        Ok(Self {
            path: path.to_owned(),
            file,
            memory,
            record,
            order,
        })
    }

    /// Reads or writes every record, in the chosen order.
    pub(super) fn work(
        &mut self,
        settings: &FileSettings,
        stopwatch: &mut Stopwatch<'_>,
    ) -> Result<()> {
        for (at, number) in std::mem::take(&mut self.order).into_iter().enumerate() {
            if at > 0 && settings.interval_ms > 0 {
                std::thread::sleep(Duration::from_millis(settings.interval_ms));
            }
            let offset = number.saturating_mul(settings.record_size.into());
            stopwatch.time(|| {
                let done = match (settings.pattern.reads(), &self.memory) {
                    (false, None) => self.write(offset, settings.mode),
                    (false, Some(_)) => self.store(offset, settings.mode),
                    (true, None) => self.file.read_exact_at(self.record.bytes_mut(), offset),
                    (true, Some(_)) => self.load(offset),
                };
                done.map_err(Error::io(&self.path))
            })?;
        }
        match settings.pattern.reads() {
            true => Ok(()),
            false => self.end().map_err(Error::io(&self.path)),
        }
    }

    fn write(&mut self, offset: u64, mode: Mode) -> io::Result<()> {
        self.file.write_all_at(self.record.bytes(), offset)?;
        match mode {
            Mode::Fsync => self.file.sync_all(),
            Mode::Fdatasync => self.file.sync_data(),
            _ => Ok(()),
        }
    }

    fn store(&mut self, offset: u64, mode: Mode) -> io::Result<()> {
        let (start, record) = (place(offset), self.record.bytes());
        let Some(memory) = &mut self.memory else {
            return Ok(());
        };
        let end = start.saturating_add(record.len());
        let there = memory.get_mut(start..end).ok_or(ErrorKind::UnexpectedEof)?;
        there.copy_from_slice(record);
        match mode {
            Mode::MmapAsync => memory.flush_async_range(start, record.len()),
            Mode::MmapSync => memory.flush_range(start, record.len()),
            _ => Ok(()),
        }
    }

    fn load(&mut self, offset: u64) -> io::Result<()> {
        let start = place(offset);
        let record = self.record.bytes_mut();
        let end = start.saturating_add(record.len());
        let there = self
            .memory
            .as_ref()
            .and_then(|memory| memory.get(start..end));
        record.copy_from_slice(there.ok_or(ErrorKind::UnexpectedEof)?);
        std::hint::black_box(record);
        Ok(())
    }

    /// Syncs the whole file.
    fn end(&mut self) -> io::Result<()> {
        match &self.memory {
            Some(memory) => memory.flush(),
            None => self.file.sync_all(),
        }
    }
}

fn flags(mode: Mode) -> i32 {
    let flags = match mode {
        Mode::Osync => OFlags::SYNC,
        Mode::Direct => OFlags::DIRECT,
        Mode::SyncDirect => OFlags::SYNC | OFlags::DIRECT,
        _ => OFlags::empty(),
    };
    i32::try_from(flags.bits()).unwrap_or(0)
}

/// Maps the file. If it is too short for its records, only its last byte is written first, which leaves a hole.
fn memory(file: &File, bytes: u64) -> io::Result<MmapMut> {
    if file.metadata()?.len() < bytes {
        file.write_all_at(&[0], bytes.saturating_sub(1))?;
    }
    mapped::map(file, place(bytes))
}

/// Extends a file to `bytes` bytes with data, and syncs it.
fn fill_up(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let mut missing = bytes.saturating_sub(file.metadata()?.len());
    if missing == 0 {
        return Ok(());
    }
    let piece = vec![0xa5; PIECE];
    while missing > 0 {
        let now = place(missing).min(PIECE);
        file.write_all(piece.get(..now).unwrap_or_default())?;
        missing = missing.saturating_sub(u64::try_from(now).unwrap_or(missing));
    }
    file.sync_all()
}

/// Converts an offset to an index into memory; larger ones were refused before.
fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// The contents of a record, aligned for O_DIRECT.
struct Record {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Record {
    fn new(size: u32, chance: &mut fastrand::Rng) -> Self {
        let len = place(size.into());
        let mut memory = vec![0; len.saturating_add(ALIGNMENT)];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        let mut record = Self {
            start,
            len,
            memory: std::mem::take(&mut memory),
        };
        chance.fill(record.bytes_mut());
        record
    }

    fn bytes(&self) -> &[u8] {
        let end = self.start.saturating_add(self.len);
        self.memory.get(self.start..end).unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.start.saturating_add(self.len);
        self.memory.get_mut(self.start..end).unwrap_or_default()
    }
}
