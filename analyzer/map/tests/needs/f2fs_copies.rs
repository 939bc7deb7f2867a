// SPDX-License-Identifier: MIT OR Apache-2.0
//! f2fs keeps most structures twice, and newer entries in journals; these tests show which of them are enough for a
//! map.

use crate::f2fs::edit;
use crate::f2fs::images;
use crate::f2fs::oracles;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use edit::Editor;
use images::*;
use mostrace_map::Extent;
use mostrace_map::class::Kind;
use mostrace_map::fs::{Image, ReadAt, f2fs};
use test_support::{Suite, at_once, tests};

pub fn suite() -> Suite {
    at_once(tests![
        journals_alone_are_enough needs TOOLS,
        one_of_two_copies_is_enough needs TOOLS,
        what_was_read_is_all_that_is_needed needs TOOLS,
        the_map_begins_where_the_partition_does needs TOOLS,
    ])
}

/// mkfs.f2fs puts the first NAT and SIT entries into the journals.
fn journals_alone_are_enough() {
    for options in [
        "",
        "-O quota,extra_attr,lost_found",
        "-i",
        "-O ro",
        ALL_FEATURES,
    ] {
        let dir = scratch();
        let image = dir.path().join("image");
        mkfs(&image, 128, options);
        let before = sound_map(&image);
        oracles::compare(&image, &before);
        let mut sparse = Sparse::load(&image);
        let area = |at: usize| u64::from(edit::get32(&sparse.block(0), 1024 + at));
        let (sit, ssa) = (area(80), area(88));
        let used: Vec<u64> = sparse
            .used()
            .into_iter()
            .filter(|nth| (sit..ssa).contains(nth))
            .collect();
        assert!(!used.is_empty(), "{options}: nothing in SIT and NAT");
        used.iter()
            .for_each(|&nth| sparse.change(nth, |block| block.fill(0)));
        let after = sparse.build().expect("map");
        assert_eq!(after.notices(), [""; 0], "{options}");
        assert_eq!(after.extents(), before.extents(), "{options}");
        // The journals are also needed: without them there is no file.
        let pack = Editor {
            image: sparse.clone(),
            dump: oracles::Dump::of(&image),
        }
        .pack();
        for nth in pack + 1..pack + 8 {
            sparse.change(nth, |block| block[..512].fill(0));
            sparse.change(nth, |block| block[3584..].fill(0));
        }
        let last = pack + u64::from(edit::get32(&sparse.block(pack), 136)) - 1;
        sparse.over.remove(&last);
        let none = sparse.build().expect("map");
        assert!(none.extents().iter().all(|e| e.inode == 0), "{options}");
    }
}

/// If one of two copies is damaged, the map is the same, and a notice says so.
fn one_of_two_copies_is_enough() {
    let dir = scratch();
    let image = filled(dir.path(), 128, ALL_FEATURES, fill_little);
    let before = sound_map(&image);
    let editor = Editor::of(&image);
    let pack = editor.pack();
    let first = u64::from(edit::get32(&editor.image.block(0), 1024 + 76));
    let last = |pack: u64| pack + u64::from(edit::get32(&editor.image.block(pack), 136)) - 1;
    let other = if pack == first { first + 512 } else { first };
    let half = |which: u64| {
        if which == first {
            "checkpoint pack 1"
        } else {
            "checkpoint pack 2"
        }
    };
    let cases = [
        (0, 1024, "the first superblock is bad", "no magic number"),
        (
            0,
            1024 + 200,
            "the first superblock is bad",
            "wrong checksum",
        ),
        (1, 1024, "the second superblock is bad", "no magic number"),
        (
            1,
            1024 + 92,
            "the second superblock is bad",
            "wrong checksum",
        ),
        (pack, 9, half(pack), "wrong checksum"),
        (last(pack), 4092, half(pack), "wrong checksum"),
        (other, 4, half(other), "wrong checksum"),
        (last(other), 0, half(other), "wrong checksum"),
    ];
    for (block, offset, notice, why) in cases {
        let mut image = editor.image.clone();
        image.change(block, |block| block[offset] ^= 1);
        let after = image.build().expect("map");
        let said = after.notices().first().expect("notice");
        assert!(said.starts_with(notice) && said.contains(why), "{said}");
        assert_eq!(
            (after.notices().len(), after.extents()),
            (1, before.extents()),
            "{said}"
        );
        assert!(
            after
                .extents()
                .iter()
                .all(|e| after.paths(e.inode) == before.paths(e.inode))
        );
    }
    // The pack's last block belongs to another version.
    let mut torn = editor.image.clone();
    torn.change(last(pack), |block| {
        block[0] ^= 1;
        edit::mend_checkpoint(block);
    });
    let after = torn.build().expect("map");
    assert!(
        after.notices()[0].contains("it begins with version"),
        "{:?}",
        after.notices()
    );
    // Both packs are damaged.
    let mut none = editor.image.clone();
    none.change(pack, |block| block[9] ^= 1);
    none.change(other, |block| block[9] ^= 1);
    let error = none.build().expect_err("no checkpoint").to_string();
    assert!(
        error.contains("checkpoint: neither pack is valid: block"),
        "{error}"
    );
    let mut none = editor.image.clone();
    [0, 1]
        .into_iter()
        .for_each(|copy| none.change(copy, |block| block[1024] ^= 1));
    let error = none.build().expect_err("no superblock").to_string();
    assert!(
        error.ends_with("image: superblock at byte 1024: no magic number"),
        "{error}"
    );
}

/// Everything that was not read can be left out of an image without changing the map.
fn what_was_read_is_all_that_is_needed() {
    let dir = scratch();
    let image = filled(dir.path(), 200, "-O extra_attr,inode_checksum", fill);
    let before = sound_map(&image);
    let reads: Vec<BTreeSet<u64>> = (0..2)
        .map(|_| {
            let log = Arc::new(Mutex::new(Vec::new()));
            let len = fs::metadata(&image).expect("image").len();
            let file = File::open(&image).expect("image");
            let logged = Logged {
                file,
                log: log.clone(),
            };
            f2fs::build(&Image::new(&image, len, logged), 0).expect("map");
            let log = log.lock().expect("log");
            let blocks = log
                .iter()
                .flat_map(|&(at, len)| at / 4096..(at + len).div_ceil(4096));
            blocks.collect()
        })
        .collect();
    assert_eq!(reads[0], reads[1]);
    for &block in &reads[0] {
        let piece = before.pieces(block * 8, 8).next().expect("piece");
        assert!(
            ![Kind::Regular, Kind::Symlink].contains(&piece.kind),
            "{piece:?}"
        );
    }
    let mut sparse = Sparse::load(&image);
    for nth in sparse.used() {
        if !reads[0].contains(&nth) {
            sparse.change(nth, |block| block.fill(0));
        }
    }
    let after = sparse.build().expect("map");
    assert_eq!(after.notices(), [""; 0]);
    assert_eq!(after.extents(), before.extents());
    assert!(
        after
            .extents()
            .iter()
            .all(|e| after.paths(e.inode) == before.paths(e.inode))
    );
}

/// A file that logs the ranges that are read.
struct Logged {
    file: File,
    log: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl ReadAt for Logged {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<()> {
        let read = (offset, buf.len() as u64);
        self.log.lock().expect("log").push(read);
        FileExt::read_exact_at(&self.file, buf, offset)
    }
}

fn the_map_begins_where_the_partition_does() {
    let dir = scratch();
    let image = dir.path().join("image");
    mkfs(&image, 64, "");
    let opened = Image::open(&image).expect("open");
    let here = f2fs::build(&opened, 0).expect("map");
    let there = f2fs::build(&opened, 2048).expect("map");
    let moved = here.extents().iter().map(|e| Extent {
        sector: e.sector + 2048,
        ..*e
    });
    assert!(there.extents().iter().copied().eq(moved));
    let error = f2fs::build(&opened, u64::MAX - 5)
        .expect_err("too far")
        .to_string();
    assert!(error.contains("start sector: not supported: "), "{error}");
}
