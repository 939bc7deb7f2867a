// SPDX-License-Identifier: MIT OR Apache-2.0
//! These tests ask what a follower of the kernel's tracepoints says of a queued bio.

use mostrace_bundle::entry::{Origin, RawFile, RawProcess, TYPE_FILE};
use mostrace_bundle::tracepoints::{Bio, Fields, Follower, Moment, Tells, Thread, Volume, placed};
use zerocopy::FromBytes;

const DISK: u32 = 8 << 20;
const THREAD: u32 = 77;

/// An event with these fields.
#[derive(Clone, Copy, Default)]
struct Event<'a> {
    numbers: &'a [(&'a str, i64)],
    text: &'a [(&'a str, &'a str)],
    flags: &'a [&'a str],
}

impl Fields for Event<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        self.signed(field).map(i64::cast_unsigned)
    }

    fn signed(&self, field: &str) -> Option<i64> {
        let found = self.numbers.iter().find(|(name, _)| *name == field);
        found.map(|(_, number)| *number)
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        let found = self.text.iter().find(|(name, _)| *name == field);
        found.map(|(_, text)| text.as_bytes())
    }

    fn has_flag(&self, field: &str, names: &[&str]) -> Option<bool> {
        assert_eq!(field, "flags");
        Some(self.flags.iter().any(|flag| names.contains(flag)))
    }

    fn thread(&self) -> Option<u32> {
        Some(THREAD)
    }
}

fn plain<'a>(numbers: &'a [(&'a str, i64)]) -> Event<'a> {
    Event {
        numbers,
        ..Event::default()
    }
}

/// Blocks of ext4 that are looked up when they are written back.
fn mapped<'a>(numbers: &'a [(&'a str, i64)]) -> Event<'a> {
    Event {
        flags: &["DELALLOC"],
        ..plain(numbers)
    }
}

fn at(time_ns: u64) -> Moment {
    Moment { time_ns, cpu: 0 }
}

fn thread(bio: &Bio) -> Thread {
    Thread {
        pid: bio.pid,
        queued_ns: 5,
        ..Thread::default()
    }
}

/// A bio of 4 KiB blocks on the disk.
fn bio(letters: &str, block: i64, blocks: i64) -> Bio {
    bio_on(DISK, letters, block, blocks)
}

fn bio_on(dev: u32, letters: &str, block: i64, blocks: i64) -> Bio {
    let numbers = [
        ("dev", dev.into()),
        ("sector", block * 8),
        ("nr_sector", blocks * 8),
    ];
    let fields = Event {
        numbers: &numbers,
        text: &[("rwbs", letters), ("comm", "app")],
        flags: &[],
    };
    Bio::of(&fields).unwrap()
}

/// A run of blocks of a file: the inode, the offset, the length, and the name.
type Run = (u64, u64, u32, String);

/// Queues a bio. Returns the REQ_OP and the thread of its process's entry, and the files' entries; None if it is no bio of the disk.
fn queued(follower: &mut Follower, bio: &Bio) -> Option<(u32, u32, Vec<Run>)> {
    let mut entries: Vec<Vec<u8>> = Vec::new();
    let push = |entry: &[u8]| -> Result<(), ()> {
        entries.push(entry.to_vec());
        Ok(())
    };
    follower.queue(at(9), bio, thread, push).unwrap();
    let (process, files) = entries.split_first()?;
    let process = RawProcess::ref_from_bytes(process).unwrap();
    let files = files.iter().map(|entry| {
        let (file, name) = RawFile::ref_from_prefix(entry).unwrap();
        assert_eq!(file.head.kind.get(), TYPE_FILE);
        let name = &name[..usize::from(file.name_len.get())];
        assert_eq!(file.origin == Origin::NODE, file.ino.get() == 0);
        (
            file.ino.get(),
            file.offset.get(),
            file.head.bytes.get(),
            String::from_utf8(name.to_vec()).unwrap(),
        )
    });
    Some((process.opf.get(), process.pid.get(), files.collect()))
}

fn on_disk() -> Follower {
    let volume = Volume::on(DISK, 0..80_000, 4096);
    assert_eq!(volume.block_size(), 4096);
    Follower::new(DISK, 0..80_000, Some(volume), 4096)
}

fn run(ino: u64, offset: u64, bytes: u32, name: &str) -> Run {
    (ino, offset, bytes, name.to_owned())
}

#[test]
fn blocks_that_ext4_looked_up_are_the_files() {
    let mut follower = on_disk();
    let found = [("ino", 12), ("lblk", 3), ("pblk", 100), ("ret", 4)];
    assert_eq!(placed(Tells::ExtMapped, &mapped(&found)), Some(100));
    follower.take(Tells::ExtMapped, &mapped(&found));
    // Not the contents of a file; a failed lookup; a hole; nothing.
    let others = [
        plain(&[("ino", 13), ("lblk", 0), ("pblk", 200), ("ret", 4)]),
        mapped(&[("ino", 13), ("lblk", 0), ("pblk", 210), ("ret", -5)]),
        mapped(&[("ino", 13), ("lblk", 0), ("pblk", 0), ("ret", 4)]),
        mapped(&[("ino", 13), ("lblk", 0), ("pblk", 220), ("ret", 0)]),
    ];
    for other in &others {
        assert_eq!(placed(Tells::ExtMapped, other), None);
        follower.take(Tells::ExtMapped, other);
    }
    // One block ahead of the file's four, and one of them is written.
    let written = queued(&mut follower, &bio("WS", 99, 2));
    assert_eq!(
        written,
        Some((1, THREAD, vec![run(12, 3 * 4096, 4096, "")]))
    );
    for block in [104, 200, 210, 220] {
        let written = queued(&mut follower, &bio("W", block, 1));
        assert_eq!(written, Some((1, THREAD, vec![])), "{block}");
    }
    let freed = plain(&[("block", 101), ("count", 3)]);
    follower.take(Tells::ExtFreed, &freed);
    let (.., left) = queued(&mut follower, &bio("W", 100, 4)).unwrap();
    assert_eq!(left, [run(12, 3 * 4096, 4096, "")]);
}

#[test]
fn pages_of_f2fs_are_those_of_regular_files_and_of_nodes() {
    let mut follower = on_disk();
    let page = |ino, kind, block| {
        [
            ("op", 1),
            ("type", kind),
            ("ino", ino),
            ("index", 2),
            ("new_blkaddr", block),
        ]
    };
    follower.take(Tells::Regular, &plain(&[("ino", 5)]));
    // A regular file's; a folder's, of which nothing is known; a node's; one of a summary.
    for (ino, kind, block) in [(5, 0, 10), (6, 0, 11), (5, 1, 12), (5, 2, 13)] {
        follower.take(Tells::F2fsPage, &plain(&page(ino, kind, block)));
    }
    let read = [
        ("op", 0),
        ("type", 0),
        ("ino", 5),
        ("index", 0),
        ("new_blkaddr", 14),
    ];
    follower.take(Tells::F2fsPage, &plain(&read));
    let (.., files) = queued(&mut follower, &bio("W", 10, 5)).unwrap();
    let node = run(0, 2 * 4096, 4096, "");
    assert_eq!(files, [run(5, 2 * 4096, 4096, ""), node]);
    // A node's page has its own event for each write.
    let (.., files) = queued(&mut follower, &bio("W", 10, 5)).unwrap();
    assert_eq!(files, [run(5, 2 * 4096, 4096, "")]);
    follower.take(Tells::Gone, &plain(&[("ino", 5)]));
    follower.take(Tells::F2fsPage, &plain(&page(5, 0, 20)));
    let (.., files) = queued(&mut follower, &bio("W", 20, 1)).unwrap();
    assert_eq!(files, [], "the number may be a folder's by now");
}

#[test]
fn paths_are_those_of_inodes_of_this_filesystem() {
    let told = |ino, path| (("ino", ino), ("pathbuf", path));
    let mut follower = on_disk();
    for (ino, block) in [(12, 100), (13, 101), (14, 102), (15, 103)] {
        let found = [("ino", ino), ("lblk", 0), ("pblk", block), ("ret", 1)];
        follower.take(Tells::ExtMapped, &mapped(&found));
    }
    for (tells, (ino, text)) in [
        (Tells::Path, told(12, "//a/b.db")),
        (Tells::Path, told(13, "no path")),
        (Tells::PathOfSome, told(14, "/ours")),
        (Tells::PathOfSome, told(15, "/theirs")),
    ] {
        let event = Event {
            numbers: &[ino, ("offset", 0), ("bytes", 10)],
            text: &[text],
            flags: &[],
        };
        follower.take(tells, &event);
        if ino.1 == 14 {
            follower.take(Tells::Regular, &plain(&[ino, ("pos", 0)]));
        }
    }
    let (.., files) = queued(&mut follower, &bio("W", 100, 4)).unwrap();
    let names: Vec<&str> = files.iter().map(|(.., name)| name.as_str()).collect();
    assert_eq!(names, ["/a/b.db", "", "/ours", ""]);
}

#[test]
fn what_reads_or_writes_no_blocks_has_no_file() {
    let mut follower = on_disk();
    let found = [("ino", 12), ("lblk", 0), ("pblk", 100), ("ret", 1)];
    follower.take(Tells::ExtMapped, &mapped(&found));
    for (letters, blocks, op, files) in [
        ("R", 1, 0, 1),
        ("RA", 1, 0, 1),
        ("W", 1, 1, 1),
        ("FWFS", 1, 1, 1),
        ("D", 1, 3, 0),
        ("FF", 0, 2, 0),
    ] {
        let (opf, _, of) = queued(&mut follower, &bio(letters, 100, blocks)).unwrap();
        assert_eq!((opf, of.len()), (op, files), "{letters}");
    }
}

#[test]
fn only_the_traced_sectors_count() {
    let mut follower = Follower::new(DISK, 800..1600, None, 4096);
    for (block, is_there) in [(99, false), (100, true), (199, true), (200, false)] {
        let found = queued(&mut follower, &bio("W", block, 1));
        assert_eq!(found.is_some(), is_there, "{block}");
    }
    // A flush has no place.
    assert!(queued(&mut follower, &bio("FF", 0, 0)).is_some());
}

#[test]
fn below_a_mapped_device_the_thread_above_is_named() {
    use mostrace_bundle::manifest::Mapping;
    const MAPPED: u32 = 253 << 20;
    let mapping = [Mapping {
        start_sector: 0,
        sectors: 8000,
        lower_disk_dev: "8:0".into(),
        lower_start_sector: 1600,
        ..Mapping::default()
    }];
    let volume = Volume::above("8:0", MAPPED, &mapping, 4096);
    let mut follower = Follower::new(DISK, 0..80_000, Some(volume), 4096);
    let above = Bio {
        pid: 9,
        ..bio_on(MAPPED, "W", 10, 2)
    };
    assert_eq!(queued(&mut follower, &above), None);
    // It is queued once below, by a thread of dm's; what comes then is another bio.
    for (block, pid) in [(210, 9), (210, THREAD)] {
        let below = queued(&mut follower, &bio("W", block, 2));
        assert_eq!(below, Some((1, pid, vec![])));
    }
}
