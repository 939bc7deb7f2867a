// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged and foreign images give one clear error or a map with notices, never a panic or a hang.

use crate::ext4::images;
use crate::ext4::oracles;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mostrace_map::class::Kind;
use mostrace_map::fs::{Error, ext4};
use mostrace_map::{Extent, Map};
use proptest::prelude::*;
use test_support::{Suite, at_once, property, tests};

pub fn suite() -> Suite {
    at_once(tests![
        what_is_no_filesystem_is_told_apart needs images::TOOLS,
        an_impossible_superblock_is_corrupt needs images::TOOLS,
        a_start_beyond_all_sectors_is_an_error needs images::TOOLS,
        an_image_cut_short_gives_what_is_left needs images::TOOLS,
        a_damaged_inode_costs_its_own_blocks_only needs images::TOOLS,
        an_inode_with_a_wrong_checksum_is_not_believed needs images::TOOLS,
        a_tree_node_with_a_wrong_checksum_is_not_believed needs images::TOOLS,
        indirect_blocks_that_refer_to_themselves_come_to_an_end needs images::TOOLS,
        blocks_that_lead_to_each_other_are_no_tree needs images::TOOLS,
        groups_without_descriptors_are_none needs images::TOOLS,
        directories_that_hold_each_other_come_to_an_end needs images::TOOLS,
        flipped_bytes_with_checksums needs images::TOOLS,
        flipped_bytes_without_checksums needs images::TOOLS,
        flipped_bytes_of_indirect_blocks needs images::TOOLS,
    ])
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("scratch folder")
}

fn sound(dir: &Path, options: &str) -> PathBuf {
    let (image, tree) = (dir.join("image"), dir.join("tree"));
    fs::create_dir(&tree).expect("tree");
    images::fill(&tree);
    images::mke2fs(&image, options, 12, Some(&tree));
    image
}

/// Returns the error's line without the file's name, which it must contain.
fn line(image: &Path, error: &Error) -> String {
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    line.strip_prefix(&format!("{}: ", image.display()))
        .expect("the file's name")
        .to_owned()
}

fn what_is_no_filesystem_is_told_apart() {
    let dir = scratch();
    let image = dir.path().join("image");
    let build = || ext4::build(&image, 0).expect_err("an error");

    assert!(matches!(build(), Error::Io { .. }));
    assert!(line(&image, &build()).starts_with("open: No such file"));

    fs::write(&image, b"").expect("empty");
    assert!(matches!(build(), Error::Corrupt { .. }));
    assert_eq!(
        line(&image, &build()),
        "superblock: at byte 1024, but the image ends at byte 0"
    );

    fs::write(&image, [0x5a; 1 << 16]).expect("garbage");
    assert!(matches!(build(), Error::Corrupt { .. }));
    assert!(line(&image, &build()).starts_with("superblock: not an ext2, ext3 or ext4 filesystem"));

    images::mke2fs(&image, "-t ext4 -b 1024", 16, None);
    images::patch(&image, 1024 + 0x60 + 3, &[0x80]);
    assert!(matches!(build(), Error::Unsupported { .. }));
    assert!(line(&image, &build()).contains("incompatible feature bits 0x80000000"));

    let error = ext4::build(dir.path(), 0).expect_err("a folder");
    assert!(line(dir.path(), &error).starts_with("open: neither an image file nor"));
}

fn an_impossible_superblock_is_corrupt() {
    let dir = scratch();
    let image = dir.path().join("image");
    for (offset, bytes, says) in [
        (0x18, &[9u8, 0, 0, 0][..], "size out of range"),
        (0x20, &[0, 0, 0, 0], "out of range"),
        (0x20, &[0xff; 4], "blocks in a group"),
        (0x28, &[0, 0, 0, 0], "0 inodes in a group"),
        (0x58, &[3, 0], "inodes of 3 bytes"),
        (0xfe, &[7, 0], "group descriptors of 7 bytes"),
        (0x00, &[1, 2, 3, 4], "inodes, but its groups have"),
        (0x04, &[0, 0, 0, 0], "size out of range"),
    ] {
        images::mke2fs(&image, "-t ext4 -b 1024", 16, None);
        images::patch(&image, 1024 + offset, bytes);
        let error = ext4::build(&image, 0).expect_err(says);
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        let line = line(&image, &error);
        assert!(
            line.starts_with("superblock: ") && line.contains(says),
            "{line}"
        );
    }
}

fn a_start_beyond_all_sectors_is_an_error() {
    let dir = scratch();
    let image = dir.path().join("image");
    images::mke2fs(&image, "-t ext4", 8, None);
    let error = ext4::build(&image, u64::MAX - 5).expect_err("too far");
    assert!(line(&image, &error).starts_with("start sector: "));
    assert!(ext4::build(&image, u64::MAX - (8 << 11)).is_ok());
}

fn an_image_cut_short_gives_what_is_left() {
    let dir = scratch();
    let image = sound(dir.path(), "-t ext4 -b 1024");
    let file = File::options().write(true).open(&image).expect("image");
    file.set_len(10 << 20).expect("cut");
    let map = ext4::build(&image, 0).expect("map");
    assert!(
        map.notices()
            .iter()
            .any(|line| line.starts_with("the image ends at byte 10485760"))
    );
    assert!(
        map.extents()
            .iter()
            .any(|extent| extent.kind == Kind::Regular)
    );
    file.set_len(2000).expect("cut");
    let error = ext4::build(&image, 0).expect_err("no descriptors");
    assert!(line(&image, &error).starts_with("superblock: at byte 1024, but the image ends"));
}

/// Returns the byte offset of an inode in the image.
fn byte_of_inode(image: &Path, inode: u64) -> u64 {
    let said = oracles::ask(image, &format!("imap <{inode}>"));
    let (_, place) = said.split_once("located at block ").expect("imap");
    let (block, offset) = place.trim().split_once(", offset 0x").expect("imap");
    block.parse::<u64>().expect("block") * 1024 + u64::from_str_radix(offset, 16).expect("offset")
}

fn sectors(map: &Map, what: impl Fn(&Extent) -> bool) -> u64 {
    map.extents()
        .iter()
        .filter(|extent| what(extent))
        .map(|extent| extent.sectors)
        .sum()
}

fn a_damaged_inode_costs_its_own_blocks_only() {
    for options in ["-t ext4 -b 1024", "-t ext4 -b 1024 -O ^metadata_csum"] {
        let dir = scratch();
        let image = sound(dir.path(), options);
        let before = ext4::build(&image, 0).expect("map");
        let inode = oracles::inode_of(&image, "/fragmented");
        let lost = sectors(&before, |extent| extent.inode == inode);
        // eh_depth is set to a depth far beyond what the blocks below have.
        images::patch(&image, byte_of_inode(&image, inode) + 0x28 + 6, &[4]);
        let after = ext4::build(&image, 0).expect("map");
        let notice = format!("inode {inode}: ");
        assert!(
            after.notices().iter().all(|line| line.starts_with(&notice)),
            "{:?}",
            after.notices()
        );
        assert_ne!(after.notices().len(), 0);
        let others = |extent: &Extent| ![0, inode].contains(&extent.inode);
        assert_eq!(sectors(&after, others), sectors(&before, others));
        // Blocks that lost their owner are still allocated; the boot block is always unmapped.
        let unmapped = sectors(&after, |extent| extent.kind == Kind::Unmapped) - 2;
        assert!(unmapped > 0 && unmapped <= lost, "{unmapped} of {lost}");
    }
}

fn an_inode_with_a_wrong_checksum_is_not_believed() {
    let dir = scratch();
    let image = sound(dir.path(), "-t ext4 -b 1024");
    let inode = oracles::inode_of(&image, "/plain/file_5");
    let before = ext4::build(&image, 0).expect("map");
    let owned = |extent: &Extent| extent.inode == inode && extent.kind == Kind::Regular;
    assert_ne!(sectors(&before, owned), 0);
    // The first extent, which lies in the inode itself, is moved.
    let at = byte_of_inode(&image, inode) + 0x28 + 12 + 8;
    images::patch(&image, at, &[0x77, 0x07]);
    let after = ext4::build(&image, 0).expect("map");
    assert_eq!(sectors(&after, owned), 0);
    assert_eq!(
        after.notices(),
        [format!("inode {inode}: its checksum is wrong")]
    );
}

fn a_tree_node_with_a_wrong_checksum_is_not_believed() {
    let dir = scratch();
    let image = sound(dir.path(), "-t ext4 -b 1024");
    let inode = oracles::inode_of(&image, "/fragmented");
    let before = ext4::build(&image, 0).expect("map");
    let owned = |kind| move |extent: &Extent| extent.inode == inode && extent.kind == kind;
    let nodes: Vec<u64> = before
        .extents()
        .iter()
        .filter(|extent| owned(Kind::ExtentTree)(extent))
        .map(|extent| extent.sector / 2)
        .collect();
    assert!(nodes.len() > 1, "{nodes:?}");
    // The last extent of the first leaf is a block longer.
    let leaf = nodes[0];
    let mut block = [0; 1024];
    File::open(&image)
        .expect("image")
        .read_exact_at(&mut block, leaf * 1024)
        .expect("leaf");
    let last = 12 * usize::from(block[2]);
    images::patch(
        &image,
        leaf * 1024 + last as u64 + 4,
        &[block[last + 4] + 1],
    );
    let after = ext4::build(&image, 0).expect("map");
    let notice = format!("inode {inode}: its tree block {leaf} has a wrong checksum");
    assert_eq!(after.notices(), [notice]);
    // What the other nodes lead to is still the file's.
    let left = sectors(&after, owned(Kind::Regular));
    let all = sectors(&before, owned(Kind::Regular));
    assert!(0 < left && left < all, "{left} of {all}");
    // debugfs does not believe it either.
    let said = oracles::ask(&image, "ex /fragmented");
    assert!(said.lines().count() < nodes.len() + 40, "{said}");
}

fn indirect_blocks_that_refer_to_themselves_come_to_an_end() {
    let dir = scratch();
    let image = sound(dir.path(), "-t ext2 -b 1024");
    let map = ext4::build(&image, 0).expect("map");
    let inode = oracles::inode_of(&image, "/big");
    let is_tree = |extent: &&Extent| extent.inode == inode && extent.kind == Kind::ExtentTree;
    let tree = map.extents().iter().find(is_tree).expect("tree").sector / 2;
    let itself: Vec<u8> = std::iter::repeat_n((tree as u32).to_le_bytes(), 256)
        .flatten()
        .collect();
    images::patch(&image, tree * 1024, &itself);
    // The triple indirect pointer leads to that block too: 16 million references.
    images::patch(
        &image,
        byte_of_inode(&image, inode) + 0x28 + 14 * 4,
        &itself[..4],
    );
    let map = ext4::build(&image, 0).expect("map");
    let notice = format!(
        "inode {inode}: block {tree} has a place in a tree already, its blocks are unmapped"
    );
    assert_eq!(map.notices(), [notice]);
    assert!(map.path(inode).is_some());
}

fn directories_that_hold_each_other_come_to_an_end() {
    let dir = scratch();
    let image = sound(dir.path(), "-t ext4 -b 1024 -O ^metadata_csum");
    for request in [
        "link /deep /deep/level_0/up",
        "link /deep/level_0 /names/again",
    ] {
        images::run(
            images::tool("debugfs")
                .args(["-w", "-R", request])
                .arg(&image),
        );
    }
    let map = ext4::build(&image, 0).expect("map");
    let inode = oracles::inode_of(&image, "/deep");
    assert_eq!(map.paths(inode), [b"/deep"]);
    assert!(
        map.notices()
            .iter()
            .any(|line| line.contains("a directory with two names"))
    );
}

/// Flips bytes, builds the map, and restores the bytes. If there is a map, it must cover the filesystem.
fn flip(image: &Path, flips: &[(u32, u8)]) -> Result<(), TestCaseError> {
    let file = File::options()
        .read(true)
        .write(true)
        .open(image)
        .expect("image");
    let mut undo = Vec::new();
    for &(offset, mask) in flips {
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset.into()).expect("read");
        undo.push((offset, byte));
        file.write_all_at(&[byte[0] ^ mask], offset.into())
            .expect("write");
    }
    let built = ext4::build(image, 0);
    for &(offset, byte) in undo.iter().rev() {
        file.write_all_at(&byte, offset.into()).expect("undo");
    }
    match built {
        Ok(map) => {
            prop_assert!(
                map.extents()
                    .windows(2)
                    .all(|pair| pair[0].end() == pair[1].sector)
            );
            for inode in 1..3000 {
                prop_assert!(map.paths(inode).iter().all(|path| path.starts_with(b"/")));
            }
        }
        Err(error) => prop_assert!(!line(image, &error).is_empty()),
    }
    Ok(())
}

/// Damages one image at random again and again, mostly in its metadata.
fn flips(options: &str) {
    let dir = scratch();
    let image = sound(dir.path(), options);
    let near = prop_oneof![
        1024u32..2048,
        2048u32..6 << 10,
        0u32..1 << 20,
        0u32..12 << 20
    ];
    let flips = prop::collection::vec((near, 1u8..), 1..300);
    let config = ProptestConfig {
        max_shrink_iters: 50,
        ..property::config(file!(), 40)
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&flips, |flips| flip(&image, &flips))
        .unwrap_or_else(|error| panic!("{error}"));
}

fn flipped_bytes_with_checksums() {
    flips("-t ext4 -b 1024");
}

fn flipped_bytes_without_checksums() {
    flips("-t ext4 -b 1024 -O ^metadata_csum,^uninit_bg,inline_data");
}

fn flipped_bytes_of_indirect_blocks() {
    flips("-t ext3 -b 1024");
}

/// The file's extent tree has four blocks, and each is full of entries that point to the next one: 340⁴ nodes in 16
/// KiB.
fn blocks_that_lead_to_each_other_are_no_tree() {
    const NODES: [u32; 4] = [9000, 9001, 9002, 9003];
    let dir = scratch();
    let image = sound(dir.path(), "-t ext4 -b 4096 -O ^metadata_csum");
    let file = File::options().write(true).open(&image).expect("image");
    file.set_len(64 << 20).expect("room");
    images::patch(&image, 1024 + 4, &(16u32 << 10).to_le_bytes());
    let header = |entries: u16, depth: u16| {
        let fields = [0xf30a, entries, entries, depth, 0, 0];
        fields.map(u16::to_le_bytes).concat()
    };
    let indices = |to: u32, count: u32| -> Vec<u8> {
        let index = |nth: u32| [nth.to_le_bytes(), to.to_le_bytes(), [0; 4]].concat();
        (0..count).flat_map(index).collect()
    };
    for (nth, node) in NODES.iter().enumerate() {
        let depth = 3 - nth as u16;
        let next = NODES.get(nth + 1).copied().unwrap_or(1);
        let bytes = [header(340, depth), indices(next, 340)].concat();
        images::patch(&image, u64::from(*node) * 4096, &bytes);
    }
    let inode = oracles::inode_of(&image, "/big");
    let said = oracles::ask(&image, &format!("imap <{inode}>"));
    let (_, place) = said.split_once("located at block ").expect("imap");
    let (block, offset) = place.trim().split_once(", offset 0x").expect("imap");
    let at = block.parse::<u64>().expect("block") * 4096
        + u64::from_str_radix(offset, 16).expect("offset");
    let root = [header(4, 4), indices(NODES[0], 4)].concat();
    images::patch(&image, at + 0x28, &root);
    let map = ext4::build(&image, 0).expect("map");
    let twice = format!("inode {inode}: block ");
    let notices = map.notices();
    assert!(
        notices.iter().any(|line| line.starts_with(&twice)
            && line.ends_with("has a place in a tree already, its blocks are unmapped")),
        "{notices:?}"
    );
    assert_eq!(sectors(&map, |extent| extent.inode == inode), 0);
}

/// A terabyte of zeros: 4 million groups, of which only one has a descriptor.
fn groups_without_descriptors_are_none() {
    const GROUPS: u32 = 1 << 22;
    const OF_A_GROUP: u32 = 256;
    let dir = scratch();
    let image = dir.path().join("image");
    let options = "-t ext4 -b 1024 -O ^metadata_csum,^has_journal,^resize_inode,^64bit";
    images::mke2fs(&image, options, 8, None);
    let file = File::options().write(true).open(&image).expect("image");
    file.set_len((u64::from(GROUPS * OF_A_GROUP) + 1) << 10)
        .expect("room");
    for (offset, number) in [
        (0x0, GROUPS * 8),
        (0x4, GROUPS * OF_A_GROUP + 1),
        (0x20, OF_A_GROUP),
        (0x24, OF_A_GROUP),
        (0x28, 8),
    ] {
        images::patch(&image, 1024 + offset, &number.to_le_bytes());
    }
    let map = ext4::build(&image, 0).expect("a map");
    let told = map.notices().join("\n");
    assert!(
        told.contains(&format!(
            "of {GROUPS} block groups have no descriptor of their own"
        )),
        "{told}"
    );
    // Groups without a descriptor are not listed one by one.
    assert!(map.extents().len() < 1000, "{}", map.extents().len());
}
