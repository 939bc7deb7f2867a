// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filesystems on several devices: f2fs made with `-c`, and ext4 with an external journal.

use crate::ext4::images as ext4_images;
use crate::f2fs::images as f2fs_images;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mostrace_map::class::{Class, Kind};
use mostrace_map::fs::{
    DevicePart, ExternalJournal, Image, Joined, PartDevice, build, ext4, parts,
};
use mostrace_map::{ELSEWHERE, Extent, Map, Piece};
use test_support::{Suite, at_once, tests};

const SECTORS_OF_MIB: u64 = 2048;
/// The blocks of each file.
const BLOCKS: usize = 2500;

pub fn suite() -> Suite {
    at_once(tests![
        blocks_of_f2fs_are_found_on_the_device_that_has_them needs f2fs_images::TOOLS,
        a_journal_lies_behind_its_ext4 needs ext4_images::TOOLS,
        a_journal_of_another_filesystem_is_none_of_it needs ext4_images::TOOLS,
        sectors_on_other_disks_count_elsewhere needs ext4_images::TOOLS,
    ])
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("folder")
}

/// The images as one, each to its end or to the end of its part.
fn joined(images: &[(&Path, u64)]) -> Image {
    let mut joined = Joined::default();
    for &(path, bytes) in images {
        joined = joined.with(bytes, File::open(path).expect("image"));
    }
    Image::new(Path::new("joined"), joined.bytes(), joined)
}

fn length(path: &Path) -> u64 {
    path.metadata().expect("image").len()
}

fn blocks_of_f2fs_are_found_on_the_device_that_has_them() {
    let dir = scratch();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).expect("tree");
    // There is more than the first device has room for.
    for name in ["hot.db", "dir/other.db", "warm", "dir/cold.jpg"] {
        f2fs_images::marked(&tree, name, BLOCKS);
    }
    let file = File::create(&second).expect("second");
    file.set_len(90 << 20).expect("size");
    f2fs_images::mkfs(&first, 40, &format!("-c {}", second.display()));
    f2fs_images::sload(&first, &tree, "");

    let alone = build(&Image::open(&first).expect("first"), 0).expect_err("refused");
    let says = format!(
        "one of several devices; the others are {}",
        second.display()
    );
    assert!(alone.to_string().contains(&says), "{alone}");

    let parts = parts(&Image::open(&first).expect("first")).expect("parts");
    let [one, two] = &parts[..] else {
        panic!("{parts:?}")
    };
    assert_eq!(one.device, PartDevice::First);
    assert_eq!(two.device, PartDevice::Path(second.clone()));
    let (in_first, in_second) = (one.bytes.expect("bytes"), two.bytes.expect("bytes"));
    assert!(in_first <= length(&first) && in_second <= length(&second));

    let image = joined(&[(&first, in_first), (&second, in_second)]);
    let map = build(&image, 0).expect("map");
    assert_eq!(map.notices(), [""; 0]);
    // What lies at each block says whose it is.
    let mut found = [0, 0];
    for extent in map.extents().iter().filter(|e| e.kind == Kind::Regular) {
        let path = map.path(extent.inode).expect("path");
        for nth in 0..extent.sectors / 8 {
            let sector = extent.sector + nth * 8;
            let block = extent.file_offset.expect("offset") / 4096 + nth;
            let mark = f2fs_images::mark(&path[1..], usize::try_from(block).expect("block"));
            let there = image.read(sector * 512, mark.len(), "block").expect("read");
            assert!(there == mark, "sector {sector}, {}", path.escape_ascii());
            found[usize::from(sector * 512 >= in_first)] += 1;
        }
    }
    assert_eq!(found[0] + found[1], 4 * BLOCKS);
    assert!(found[0] > 0 && found[1] > 0, "{found:?}");
}

/// Makes an ext4 that says that its journal is on the device with this number, and the journal's device.
fn with_journal(dir: &Path, block: u32) -> (PathBuf, PathBuf) {
    let (disk, journal) = (dir.join("disk"), dir.join("journal"));
    ext4_images::mke2fs(&journal, &format!("-O journal_dev -b {block}"), 8, None);
    let options = format!("-t ext4 -O ^has_journal,^metadata_csum -b {block}");
    ext4_images::mke2fs(&disk, &options, 16, Some(Path::new("/usr/include/linux")));
    let uuid = uuid_of(&journal);
    let file = File::options().read(true).write(true).open(&disk);
    let file = file.expect("disk");
    let put = |at: u64, bytes: &[u8]| file.write_all_at(bytes, 1024 + at).expect("superblock");
    let mut compat = [0];
    file.read_exact_at(&mut compat, 1024 + 0x5c).expect("read");
    put(0x5c, &[compat[0] | 4]);
    put(0xd0, &uuid);
    // new_encode_dev(259, 3).
    put(0xe4, &[3, 3, 1, 0]);
    (disk, journal)
}

fn uuid_of(image: &Path) -> [u8; 16] {
    let mut uuid = [0; 16];
    let file = File::open(image).expect("image");
    file.read_exact_at(&mut uuid, 1024 + 0x68).expect("uuid");
    uuid
}

/// The journal's extents, from the first of its device on.
fn on_journal(map: &Map, start: u64) -> Vec<(u64, u64, Kind)> {
    let behind = map.extents().iter().filter(|e| e.sector >= start);
    behind
        .map(|e| (e.sector - start, e.sectors, e.kind))
        .collect()
}

fn a_journal_lies_behind_its_ext4() {
    for block in [1024, 4096] {
        let dir = scratch();
        let (disk, journal) = with_journal(dir.path(), block);
        let uuid = uuid_of(&journal);
        let named = ExternalJournal {
            dev: (259, 3),
            uuid,
        };
        let image = Image::open(&disk).expect("disk");
        let own = DevicePart {
            device: PartDevice::First,
            bytes: Some(16 << 20),
        };
        let other = DevicePart {
            device: PartDevice::Journal(named),
            bytes: None,
        };
        assert_eq!(parts(&image).expect("parts"), [own, other]);
        let alone = Image::open(&journal).expect("journal");
        assert_eq!(ext4::journal_uuid(&alone), Some(uuid));
        assert_eq!(ext4::journal_uuid(&image), None);
        assert_eq!(parts(&alone).expect("parts"), []);

        let image = joined(&[(&disk, 16 << 20), (&journal, 8 << 20)]);
        let map = build(&image, 0).expect("map");
        assert_eq!(map.notices(), [""; 0]);
        let start = 16 * SECTORS_OF_MIB;
        let extents = on_journal(&map, start);
        let sectors = u64::from(block / 512);
        // Of the four parts that there may be, in their order; where the superblock of jbd2 lies, its own first bytes say.
        let has_boot = block == 1024;
        let superblock = if has_boot { sectors } else { 0 };
        let log = superblock + 2 * sectors;
        let mut expected = vec![
            (superblock, sectors, Kind::Superblock),
            (superblock + sectors, sectors, Kind::Jbd2Superblock),
            (log, 8 * SECTORS_OF_MIB - log, Kind::JournalBlock),
        ];
        if has_boot {
            expected.insert(0, (0, sectors, Kind::Unmapped));
        }
        assert_eq!(extents, expected, "blocks of {block}");
        let at = (superblock + sectors) * 512;
        let head = alone.read(at, 8, "journal").expect("head");
        assert_eq!(head, [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 4]);
        // The device by itself, which begins somewhere on its disk.
        let map = build(&alone, 100).expect("map");
        assert_eq!(map.notices(), [""; 0]);
        assert_eq!(on_journal(&map, 100), expected);
    }
}

fn a_journal_of_another_filesystem_is_none_of_it() {
    let dir = scratch();
    let (disk, journal) = with_journal(dir.path(), 4096);
    let map = build(&Image::open(&disk).expect("disk"), 0).expect("map");
    let notice = "the journal is on another device (259:3)";
    assert_eq!(map.notices(), [notice]);
    ext4_images::patch(&journal, 1024 + 0x68, b"another");
    let image = joined(&[(&disk, 16 << 20), (&journal, 8 << 20)]);
    let map = build(&image, 0).expect("map");
    assert_eq!(map.notices(), [notice]);
    assert_eq!(on_journal(&map, 16 * SECTORS_OF_MIB), []);
}

fn sectors_on_other_disks_count_elsewhere() {
    let dir = scratch();
    let (disk, journal) = with_journal(dir.path(), 4096);
    let image = joined(&[(&disk, 16 << 20), (&journal, 8 << 20)]);
    let whole = build(&image, 0).expect("map");
    let end = 16 * SECTORS_OF_MIB;
    let piece = |upper, sectors, lower| Piece {
        upper,
        sectors,
        lower,
    };
    let own = |lower| piece(0, end, lower);
    let behind = |lower| piece(end, 8 * SECTORS_OF_MIB, lower);
    let sum = |map: &Map, of: &dyn Fn(&Extent) -> bool| -> u64 {
        let extents = map.extents().iter().filter(|extent| of(extent));
        extents.map(|extent| extent.sectors).sum()
    };
    let is_journal = |extent: &Extent| extent.kind.class() == Class::Journal;

    // The journal's disk.
    let map = whole.clone().through(&[own(ELSEWHERE), behind(64)]);
    assert!(!map.has_journal_elsewhere());
    assert_eq!(sum(&map, &|_| true), 8 * SECTORS_OF_MIB);
    let home = whole.extents().iter().find(|e| e.kind == Kind::InodeTable);
    let home = home.expect("an inode table").sector;
    let at = map.down(home).expect("a place");
    assert_eq!(at, ELSEWHERE + home);
    let pieces: Vec<Extent> = map.pieces(at, 8).collect();
    assert_eq!(pieces[0].kind, Kind::InodeTable);
    assert_eq!(
        map.pieces(64 + 8, 8).next().map(|e| e.kind),
        Some(Kind::Jbd2Superblock)
    );

    // The filesystem's.
    let map = whole.clone().through(&[own(2048), behind(ELSEWHERE + end)]);
    assert!(map.has_journal_elsewhere());
    assert_eq!(sum(&map, &is_journal), 0);
    assert_eq!(sum(&map, &|_| true), end);
    assert_eq!(map.down(home), Some(2048 + home));
    assert!(!whole.has_journal_elsewhere());
}
