// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged boot records, images that are cut short, and the parts of an image that are read.

use crate::fat::images;
use crate::fat::volume;

use std::io;
use std::sync::{Arc, Mutex};

use mostrace_map::class::Kind;
use mostrace_map::fs::{self, Error, Image, ReadAt};
use test_support::{Suite, at_once, tests};
use volume::{FAT12, FAT16, FAT32, NAME, Volume};

pub fn suite() -> Suite {
    at_once(tests![
        without_a_backup_a_damaged_boot_record_is_the_end needs images::TOOLS,
        a_damaged_boot_record_is_read_from_its_backup needs images::TOOLS,
        backups_of_large_sectors_are_found needs images::TOOLS,
        a_backup_that_differs_or_is_damaged_is_said needs images::TOOLS,
        an_image_cut_short_gives_what_is_left needs images::TOOLS,
        a_start_beyond_all_sectors_is_an_error needs images::TOOLS,
        a_snapshot_of_what_was_read_gives_the_same_map needs images::TOOLS,
    ])
}

/// Returns the error's line without the file's name.
fn line(volume: &Volume) -> String {
    let error = volume.build().expect_err("an error").to_string();
    assert!(!error.contains('\n'), "{error}");
    let line = error.strip_prefix(&format!("{NAME}: "));
    line.expect("the file's name").to_owned()
}

/// Bytes of the boot record with impossible values, and the messages for them.
const IMPOSSIBLE: [(usize, &[u8], &str); 6] = [
    (11, &[0, 0], "sectors of 0 bytes"),
    (13, &[3], "3 sectors in a cluster"),
    (14, &[0, 0], "0 reserved sectors, 2 FATs"),
    (16, &[0], "reserved sectors, 0 FATs"),
    (17, &[1, 0], "1 entries in the root directory"),
    (21, &[0x12], "medium 0x12"),
];

fn without_a_backup_a_damaged_boot_record_is_the_end() {
    for kind in [FAT12, FAT16] {
        let sound = Volume::new(kind);
        for (at, bytes, what) in IMPOSSIBLE {
            let mut volume = sound.clone();
            volume.patch(at, bytes);
            let line = line(&volume);
            let no_fat = "first blocks: no filesystem recognised";
            let unknown = at == 11 || at == 16;
            assert!(
                line.starts_with("boot record: not a FAT boot record: ") && line.ends_with(what)
                    || unknown && line == no_fat,
                "{line}"
            );
            // This calls the FAT reader directly.
            let image = Image::new(NAME.as_ref(), volume.bytes.len() as u64, volume.bytes);
            let error = fs::fat::build(&image, 0).expect_err(what);
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            assert!(error.to_string().ends_with(what), "{error}");
        }
    }
}

fn a_damaged_boot_record_is_read_from_its_backup() {
    let used =
        |what: &str| format!("the boot record is damaged ({what}), its backup in sector 6 is used");
    let sound = Volume::new(FAT32);
    let map = sound.build().expect("map");
    for (at, bytes, what) in IMPOSSIBLE {
        let mut volume = sound.clone();
        volume.patch(at, bytes);
        let map_by_backup = volume.build().expect(what);
        let what = if at == 16 {
            "32 reserved sectors, 0 FATs"
        } else {
            what
        };
        assert_eq!(map_by_backup.notices(), [used(what)]);
        assert_eq!(map_by_backup.extents(), map.extents());
    }
    // Both are damaged.
    let mut volume = sound.clone();
    volume.patch(0, &[0; 512]);
    volume.patch(6 * 512, &[0; 512]);
    assert_eq!(line(&volume), "first blocks: no filesystem recognised");
    volume.patch(6 * 512, &sound.bytes[..512]);
    assert_eq!(volume.build().expect("map").extents(), map.extents());
    // A backup that names another place for itself is not used.
    volume.patch(6 * 512 + 50, &[7]);
    assert!(line(&volume).starts_with("boot record: not a FAT boot record: sectors of 0 bytes"));
}

fn backups_of_large_sectors_are_found() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = scratch.path().join("image");
    for size in [512, 1024, 2048, 4096] {
        // The volume has so few clusters that only Linux and fsck.vfat accept it as FAT32.
        images::mkfs(&image, &format!("-F 32 -S {size} -s 1"), 2000 * size / 1024);
        let sound = Volume::read(&image);
        let map = sound.build().expect("map");
        assert_eq!(map.notices(), [""; 0]);
        let root = map.extents().iter().find(|extent| extent.inode == 1);
        let root = root.map(|extent| (extent.kind, extent.sectors, extent.file_offset));
        assert_eq!(root, Some((Kind::Directory, size / 512, Some(0))));
        let mut volume = sound.clone();
        volume.patch(0, &vec![0; size as usize]);
        let by_backup = volume.build().expect("map");
        assert_eq!(by_backup.extents(), map.extents());
        let says =
            "the boot record is damaged (sectors of 0 bytes), its backup in sector 6 is used";
        assert_eq!(by_backup.notices(), [says]);
    }
}

fn a_backup_that_differs_or_is_damaged_is_said() {
    let sound = Volume::new(FAT32);
    let map = sound.build().expect("map");
    for (at, bytes, says) in [
        (
            13,
            2,
            "the boot record and its backup in sector 6 differ, the first is used",
        ),
        (
            13,
            0,
            "the backup of the boot record in sector 6 is damaged (0 sectors in a cluster)",
        ),
    ] {
        let mut volume = sound.clone();
        volume.patch(6 * 512 + at, &[bytes]);
        let damaged = volume.build().expect("map");
        assert_eq!(damaged.notices(), [says]);
        assert_eq!(damaged.extents(), map.extents());
    }
    // An FSInfo sector without its signature is an ordinary reserved sector.
    let hints = |map: &mostrace_map::Map| -> Vec<u64> {
        let hints = map.extents().iter().filter(|e| e.kind == Kind::Fsinfo);
        hints.map(|extent| extent.sector).collect()
    };
    assert_eq!(hints(&map), [1, 7]);
    let mut volume = sound.clone();
    volume.patch(512, &[0]);
    assert_eq!(hints(&volume.build().expect("map")), [7]);
}

fn an_image_cut_short_gives_what_is_left() {
    for kind in [FAT12, FAT16, FAT32] {
        let sound = Volume::new(kind);
        let map = sound.build().expect("map");
        let end = map.extents().last().expect("extents").end();
        // The cut is behind the first cluster of `/dir`, which holds the entry of `/dir/sub`.
        let inode = |path: &[u8]| {
            let owners = map.extents().iter().map(|extent| extent.inode);
            owners
                .into_iter()
                .find(|&inode| map.path(inode).as_deref() == Some(path))
        };
        let sub = inode(b"/dir/sub").expect("inode");
        let cut = sound.entry(sub) / 512 * 512 + 512;
        let mut volume = sound.clone();
        volume.bytes.truncate(cut);
        let short = volume.build().expect("map");
        let at = sound.byte_of(sound.cluster_at(short_sector(&map, sub)));
        let says = [
            format!("the image ends at byte {cut}, before its {end} sectors"),
            "clusters in use, but by no file: 1, chains of them: 1".into(),
            format!("directory of inode {sub}: at byte {at}, but the image ends at byte {cut}"),
        ];
        let says: Vec<String> = says.into_iter().collect();
        let notices: Vec<String> = short
            .notices()
            .iter()
            .map(|line| line.trim_start_matches("volume: ").to_owned())
            .collect();
        assert_eq!(notices, says);
        assert_eq!(volume::conserves(&short), Ok(()));
        assert_eq!(short.extents().last().expect("extents").end(), end);
        // The cut is in the FAT, then in the boot record.
        volume
            .bytes
            .truncate(if sound.bits == 32 { 33 * 512 } else { 600 });
        assert!(
            line(&volume).starts_with("FAT 0: at byte "),
            "{}",
            line(&volume)
        );
        volume.bytes.truncate(300);
        assert_eq!(line(&volume), "first blocks: no filesystem recognised");
        volume.bytes.truncate(0);
        assert_eq!(
            line(&volume),
            "first blocks: no filesystem recognised: this is an empty file"
        );
    }
}

/// Returns the first sector of an inode.
fn short_sector(map: &mostrace_map::Map, inode: u64) -> u64 {
    let mut mine = map.extents().iter().filter(|extent| extent.inode == inode);
    mine.next().expect("extent").sector
}

fn a_start_beyond_all_sectors_is_an_error() {
    let volume = Volume::new(FAT12);
    let bytes = volume.bytes.len() as u64;
    let image = Image::new(NAME.as_ref(), bytes, volume.bytes);
    let error = fs::build(&image, u64::MAX - 5)
        .expect_err("too far")
        .to_string();
    assert!(
        error.starts_with("volume: start sector: not supported: "),
        "{error}"
    );
    assert!(fs::build(&image, u64::MAX - bytes / 512).is_ok());
}

/// Logs the ranges that are read.
struct Watched {
    bytes: Arc<Vec<u8>>,
    read: Arc<Mutex<Vec<(u64, usize)>>>,
}

impl ReadAt for Watched {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read.lock().expect("lock").push((offset, buf.len()));
        self.bytes.read_exact_at(buf, offset)
    }
}

/// A bundle keeps only the blocks that were read; all others are zeros.
fn a_snapshot_of_what_was_read_gives_the_same_map() {
    for kind in [FAT12, FAT16, FAT32] {
        let mut volume = Volume::new(kind);
        for broken in [false, true] {
            if broken {
                volume.patch(0, &[0; 512]);
            }
            let bytes = Arc::new(volume.bytes.clone());
            let build = |bytes: &Arc<Vec<u8>>| {
                let read = Arc::new(Mutex::new(Vec::new()));
                let watched = Watched {
                    bytes: bytes.clone(),
                    read: read.clone(),
                };
                let image = Image::new(NAME.as_ref(), bytes.len() as u64, watched);
                let map = fs::build(&image, 0).ok();
                let read = std::mem::take(&mut *read.lock().expect("lock"));
                (map, read)
            };
            let (map, read) = build(&bytes);
            let mut copy = vec![0; bytes.len()];
            for &(offset, len) in &read {
                let range = offset as usize..offset as usize + len;
                copy[range.clone()].copy_from_slice(&bytes[range]);
            }
            let (again, read_again) = build(&Arc::new(copy));
            assert_eq!(read, read_again);
            let Some(map) = map else {
                assert!(broken && again.is_none());
                continue;
            };
            let again = again.expect("map");
            assert_eq!(map.extents(), again.extents());
            assert_eq!(map.notices(), again.notices());
            for inode in map.extents().iter().map(|extent| extent.inode) {
                assert_eq!(map.inode(inode), again.inode(inode));
            }
            // No file's contents are read, except in the first blocks, by which filesystems are recognised.
            let past = |&&(offset, _): &&(u64, usize)| offset > 24_576;
            for (offset, len) in read.iter().filter(past) {
                let pieces = map.pieces(offset / 512, (*len as u64).div_ceil(512));
                let kinds: Vec<Kind> = pieces.map(|piece| piece.kind).collect();
                assert!(!kinds.contains(&Kind::Regular), "byte {offset}: {kinds:?}");
            }
        }
    }
}
