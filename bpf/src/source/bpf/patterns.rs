// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios that are like an earlier one (`like.bpf.h`): the probes report only what differs, and this completes it to the event and
//! entries that the probes would have made.

use mostrace_bundle::entry::{RawFile, RawProcess, TYPE_FILE, TYPE_PROCESS};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::block_records::{BlockRecord, Records, TYPE_BLOCK};
use crate::error::{Error, Result};
use crate::sink::{Sample, Sink};

const FILE_LEN: usize = size_of::<RawFile>();

/// `struct like_record` of like.bpf.h.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct LikeRecord {
    pub kind: u16,
    pub size: u16,
    pub pattern: u16,
    pub cpu: u16,
    pub time: u64,
    pub sector: u64,
    pub bytes: u64,
    pub offset: u64,
    pub bio: u64,
}

const _: () = assert!(size_of::<LikeRecord>() == 48);

/// A record that becomes a pattern begins so. The file's entry follows.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Begin {
    queued: Queued,
    process: RawProcess,
}

/// `struct queued_record` of blockevents.bpf.h.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Queued {
    event: BlockRecord,
    bio: u64,
}

/// The event of a queued bio and its entries in the table's form.
struct Pattern {
    queued: Queued,
    process: Sample,
    file: Sample,
}

/// The most numbers that are taken of one CPU; the probes have fewer.
const MOST: usize = 1 << 10;

/// The patterns of each CPU, by their numbers.
#[derive(Default)]
pub(super) struct Patterns(Vec<Vec<Option<Pattern>>>);

impl Patterns {
    /// Keeps a record's contents if the probes use it as a pattern from now on.
    #[inline]
    pub fn see(&mut self, record: &[u8], sink: &mut Sink) {
        if let Ok((begin, file)) = Begin::ref_from_prefix(record)
            && begin.queued.event.kind == TYPE_BLOCK
            && begin.queued.event.pattern != 0
        {
            self.keep(begin, file, sink);
        }
    }

    fn keep(&mut self, begin: &Begin, file: &[u8], sink: &mut Sink) {
        let Some(file) = sink.made_of(file).filter(|file| file.len() >= FILE_LEN) else {
            return;
        };
        let event = &begin.queued.event;
        let number = usize::try_from(event.pattern).unwrap_or(MOST);
        if number >= MOST {
            return;
        }
        let cpu = usize::from(event.cpu);
        if self.0.len() <= cpu {
            self.0.resize_with(cpu + 1, Vec::new);
        }
        if let Some(of_cpu) = self.0.get_mut(cpu) {
            if of_cpu.len() <= number {
                of_cpu.resize_with(number + 1, || None);
            }
            if let Some(place) = of_cpu.get_mut(number) {
                *place = Some(Pattern {
                    queued: begin.queued.clone(),
                    process: Sample::new(TYPE_PROCESS, begin.process.as_bytes()),
                    file: Sample::new(TYPE_FILE, file),
                });
            }
        }
    }

    /// Passes the event and the entries for which a short record stands to the sink.
    ///
    /// # Errors
    /// Returns an error if the record is malformed, if there was no such pattern, or if the bundle cannot be written.
    #[inline]
    pub fn put(&mut self, record: &[u8], events: &mut Records, sink: &mut Sink) -> Result<()> {
        let pattern = self.completed(record);
        let pattern = pattern.ok_or_else(|| Error::bpf("a bio is like none"))?;
        events.put(pattern.queued.as_bytes(), &mut sink.events)?;
        sink.push_like(&mut pattern.process)?;
        sink.push_like(&mut pattern.file)
    }

    /// Returns the pattern with the fields of a short record.
    #[inline]
    fn completed(&mut self, record: &[u8]) -> Option<&mut Pattern> {
        let like = LikeRecord::ref_from_bytes(record).ok()?;
        let of_cpu = self.0.get_mut(usize::from(like.cpu))?;
        let pattern = of_cpu.get_mut(usize::from(like.pattern))?.as_mut()?;
        let bytes = u32::try_from(like.bytes).ok()?;
        let Queued { event, bio } = &mut pattern.queued;
        let (process, _) = RawProcess::mut_from_prefix(&mut pattern.process.record).ok()?;
        let (file, _) = RawFile::mut_from_prefix(&mut pattern.file.record).ok()?;
        event.time = like.time;
        event.sector = like.sector;
        event.bytes = bytes;
        *bio = like.bio;
        for head in [&mut process.head, &mut file.head] {
            head.time_ns = like.time.into();
            head.sector = like.sector.into();
            head.bytes = bytes.into();
        }
        process.submit_ns = like.time.into();
        file.offset = like.offset.into();
        Some(pattern)
    }
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::Folder;
    use mostrace_bundle::entry::TYPE_LIKE;

    use super::*;
    use crate::sink::{NameFilter, Retention};

    /// A sink with tables.
    fn sink(dir: &tempfile::TempDir) -> Sink {
        let folder = Folder::open(dir.path()).unwrap();
        let mut sink = Sink::new(&folder, NameFilter::default(), Retention::of(false));
        sink.open_entries("here").unwrap();
        sink
    }

    /// A record that is a pattern, of bytes 2 but for what it must have.
    fn whole(number: u32, cpu: u16) -> Vec<u8> {
        let mut record = vec![2; size_of::<Begin>() + FILE_LEN + 8];
        let (begin, file) = Begin::mut_from_prefix(&mut record).unwrap();
        begin.queued.event.kind = TYPE_BLOCK;
        begin.queued.event.cpu = cpu;
        begin.queued.event.pattern = number;
        let (file, _) = RawFile::mut_from_prefix(file).unwrap();
        file.name_len = 3.into();
        record
    }

    fn like(number: u16, cpu: u16, bytes: u64) -> Vec<u8> {
        let fields = [
            u64::from(number) << 32 | u64::from(cpu) << 48 | 48 << 16 | u64::from(TYPE_LIKE),
            1001,
            1002,
            bytes,
            1004,
            1005,
        ];
        fields
            .iter()
            .flat_map(|field| field.to_ne_bytes())
            .collect()
    }

    #[test]
    fn a_short_record_is_the_pattern_with_what_differs() {
        let dir = tempfile::tempdir().unwrap();
        let (mut patterns, mut sink) = (Patterns::default(), sink(&dir));
        patterns.see(&whole(3, 1), &mut sink);
        patterns.see(&whole(0, 1), &mut sink);
        let pattern = patterns.completed(&like(3, 1, 4096)).unwrap();
        let Queued { event, bio } = &pattern.queued;
        assert_eq!((event.time, event.sector, event.bytes), (1001, 1002, 4096));
        let process = RawProcess::ref_from_bytes(&pattern.process.record).unwrap();
        let (raw, name) = RawFile::ref_from_prefix(&pattern.file.record).unwrap();
        assert_eq!((*bio, raw.offset.get()), (1005, 1004));
        assert_eq!(process.submit_ns.get(), 1001);
        assert_eq!(name, [2, 2, 2, 0, 0, 0, 0, 0]);
        for head in [&process.head, &raw.head] {
            let of_bio = (head.time_ns.get(), head.sector.get(), head.bytes.get());
            assert_eq!(of_bio, (1001, 1002, 4096));
        }
        // All else is the pattern's.
        let of_pattern = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 2).count();
        let all = size_of::<Queued>() + size_of::<RawProcess>();
        let kept = of_pattern(pattern.queued.as_bytes()) + of_pattern(process.as_bytes());
        assert_eq!(kept, all - 2 - 2 - 4 - 20 - 8 - 20 - 8);
    }

    #[test]
    fn a_record_like_none_is_malformed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut patterns, mut sink) = (Patterns::default(), sink(&dir));
        let mut events = Records::of(8 << 20);
        patterns.see(&whole(3, 1), &mut sink);
        patterns.see(&whole(u32::MAX, 1), &mut sink);
        for wrong in [
            like(3, 0, 0),
            like(2, 1, 0),
            like(u16::MAX, 1, 0),
            like(3, 1, 1 << 32),
        ] {
            let put = patterns.put(&wrong, &mut events, &mut sink);
            assert!(put.is_err(), "{wrong:?}");
        }
        let short = &like(3, 1, 0)[..40];
        assert!(patterns.put(short, &mut events, &mut sink).is_err());
        patterns
            .put(&like(3, 1, 4096), &mut events, &mut sink)
            .unwrap();
        assert_eq!(sink.event_count(), 1);
        let kept: Vec<u64> = sink.entry_counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [1, 1, 0, 0, 0, 0]);
    }
}
