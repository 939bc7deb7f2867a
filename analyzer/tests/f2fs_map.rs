// SPDX-License-Identifier: MIT OR Apache-2.0
//! The f2fs map against dump.f2fs and fsck.f2fs, and against what the blocks themselves say.

#[path = "common/f2fs_edit.rs"]
mod edit;
#[path = "common/f2fs_images.rs"]
mod images;
#[path = "common/f2fs_oracles.rs"]
mod oracles;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex};

use edit::Editor;
use images::*;
use mostrace::class::Kind;
use mostrace::fs::{Image, ReadAt, f2fs};
use mostrace::map::{Extent, Map};

const ALL_FEATURES: &str = "-O extra_attr,inode_checksum,sb_checksum,inode_crtime,compression,\
    quota,project_quota,casefold,flexible_inline_xattr,lost_found,verity,encrypt -C utf8";

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("scratch folder")
}

/// A map without notices that covers the filesystem.
fn sound_map(image: &Path) -> Map {
    let map = map(image);
    assert_eq!(map.notices(), [""; 0]);
    assert!(
        map.extents()
            .windows(2)
            .all(|pair| pair[0].end() == pair[1].sector)
    );
    let end = map.extents().last().expect("extent").end();
    assert_eq!(end * 512, fs::metadata(image).expect("image").len());
    map
}

fn walk(dir: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata)) {
    for entry in fs::read_dir(dir).expect("folder") {
        let path = entry.expect("entry").path();
        let metadata = fs::symlink_metadata(&path).expect("metadata");
        visit(&path, &metadata);
        if metadata.is_dir() {
            walk(&path, visit);
        }
    }
}

/// Every path of the tree is in the map once, and the map has no others.
fn compare_paths(map: &Map, tree: &Path) {
    let mut expected = BTreeMap::new();
    walk(tree, &mut |path, metadata| {
        let inside = path
            .strip_prefix(tree)
            .expect("inside")
            .as_os_str()
            .as_bytes();
        expected.insert([b"/", inside].concat(), metadata.ino());
    });
    let mut found = BTreeMap::new();
    let inodes: BTreeSet<u64> = map.extents().iter().map(|extent| extent.inode).collect();
    for inode in inodes {
        for path in map.paths(inode) {
            assert_eq!(found.insert(path, inode), None);
        }
    }
    found.remove(&b"/lost+found"[..]);
    found.remove(&b"/"[..]);
    assert!(found.keys().eq(expected.keys()));
    // The same file here is the same file there.
    let pairs: HashMap<u64, u64> = expected
        .values()
        .copied()
        .zip(found.values().copied())
        .collect();
    for (path, host) in &expected {
        assert_eq!(
            pairs.get(host),
            found.get(path),
            "{}",
            String::from_utf8_lossy(path)
        );
    }
}

/// Reads every block of a regular file, and compares what it says with what the map says; of each
/// file the first `limit` blocks.
fn compare_contents(image: &Path, map: &Map, tree: &Path, limit: u64) {
    let file = File::open(image).expect("image");
    let mut blocks: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut block = [0; BLOCK];
    for extent in map
        .extents()
        .iter()
        .filter(|extent| extent.kind == Kind::Regular)
    {
        for nth in 0..extent.sectors / 8 {
            let at = (extent.sector + nth * 8) * 512;
            FileExt::read_exact_at(&file, &mut block, at).expect("block");
            let offset = extent.file_offset.expect("offset") / 4096 + nth;
            let paths = map.paths(extent.inode);
            *blocks.entry(paths[0].clone()).or_default() += 1;
            if offset >= limit {
                continue;
            }
            match marked_as(&block) {
                Some((path, number)) => {
                    assert!(paths.contains(&path), "{}", String::from_utf8_lossy(&path));
                    assert_eq!(number, offset, "{}", String::from_utf8_lossy(&path));
                }
                // A hole of the sparse file: sload.f2fs fills it.
                None => assert!(block == [0; BLOCK] && paths == [b"/sparse"], "{extent:?}"),
            }
        }
    }
    let mut inodes = BTreeSet::new();
    let mut compared = 0;
    walk(tree, &mut |path, metadata| {
        let path = path
            .strip_prefix(tree)
            .expect("inside")
            .as_os_str()
            .as_bytes();
        let here = [b"/", path].concat();
        if metadata.is_file() && metadata.len() >= 4096 && inodes.insert(metadata.ino()) {
            let found = blocks.get(&here).copied().or_else(|| {
                blocks
                    .iter()
                    .find(|(name, _)| is_link(map, name, &here))
                    .map(|(_, count)| *count)
            });
            let (path, expected) = (String::from_utf8_lossy(&here), metadata.len() / 4096);
            assert!(
                found == Some(expected) || expected > limit,
                "{path}: {found:?}"
            );
            compared += 1;
        }
    });
    assert_eq!(blocks.len(), compared);
}

/// Whether two paths are one file.
fn is_link(map: &Map, a: &[u8], b: &[u8]) -> bool {
    let inode = |extent: &Extent| extent.inode;
    map.extents().iter().map(inode).any(|inode| {
        let paths = map.paths(inode);
        paths.len() > 1 && paths.iter().any(|p| p == a) && paths.iter().any(|p| p == b)
    })
}

fn compare_all(image: &Path, tree: &Path, limit: u64) -> Map {
    let map = sound_map(image);
    compare_paths(&map, tree);
    compare_contents(image, &map, tree, limit);
    let data = oracles::compare(image, &map);
    let is_node = |kind| [Kind::HotNode, Kind::WarmNode, Kind::ColdNode].contains(&kind);
    let blocks = |what: &dyn Fn(Kind) -> bool| -> u64 {
        let extents = map.extents().iter().filter(|extent| what(extent.kind));
        extents.map(|extent| extent.sectors / 8).sum()
    };
    let nodes = blocks(&is_node);
    assert_eq!(
        nodes,
        oracles::fsck_count(image, "valid_node_count matching with CP (nat")
    );
    let in_use = oracles::fsck_count(image, "valid_block_count matching with CP");
    assert_eq!(nodes + data as u64, in_use);
    // Offsets, as dump.f2fs has them: the first and the last block of extents all over the disk.
    let contents = map
        .extents()
        .iter()
        .filter(|extent| extent.file_offset.is_some());
    let contents: Vec<_> = contents.collect();
    let mut offsets = 0;
    for extent in contents.iter().step_by(contents.len() / 12 + 1) {
        for nth in [0, extent.sectors / 8 - 1] {
            let offset = extent.file_offset.expect("offset") / 4096 + nth;
            let (inode, said) = oracles::owner(image, extent.sector / 8 + nth);
            assert_eq!(
                (inode, said.unwrap_or(offset)),
                (extent.inode, offset),
                "{extent:?}"
            );
            offsets += usize::from(said.is_some());
        }
    }
    assert!(offsets > 4, "{offsets}");
    map
}

#[test]
fn block_for_block_as_dump_f2fs_has_it() {
    if !have_tools() {
        return;
    }
    for (megabytes, options) in [
        (150, ""),
        (200, "-O extra_attr,inode_checksum"),
        (150, "-O quota,extra_attr,project_quota"),
        (600, "-s 2 -O lost_found"),
        (512, ALL_FEATURES),
        (
            3 << 10,
            "-i -O extra_attr,flexible_inline_xattr,inode_checksum",
        ),
    ] {
        let dir = scratch();
        let image = filled(dir.path(), megabytes, options, fill);
        // sload.f2fs 1.15 leaves i_inline_xattr_size 0 and goes by it; its own last check then
        // makes it 50, and drops as many addresses of a file that is longer.
        let is_cut = options.contains("flexible_inline_xattr");
        let limit = if is_cut { 923 - 9 - 50 } else { u64::MAX };
        let map = compare_all(&image, &dir.path().join("tree"), limit);
        for kind in [
            Kind::HotNode,
            Kind::WarmNode,
            Kind::ColdNode,
            Kind::Symlink,
            Kind::Directory,
        ] {
            assert!(
                map.extents().iter().any(|e| e.kind == kind),
                "{options}: {kind}"
            );
        }
        let quota = map.extents().iter().filter(|e| e.kind == Kind::Quota);
        let quota: BTreeSet<u64> = quota.map(|e| e.inode).collect();
        let expected = if options.contains("project_quota") {
            3
        } else {
            0
        };
        assert_eq!(quota.len(), expected, "{options}");
        assert!(quota.iter().all(|&inode| map.paths(inode).is_empty()));
    }
}

#[test]
fn ten_thousand_files_in_one_directory_and_a_full_volume() {
    if !have_tools() {
        return;
    }
    let dir = scratch();
    let image = filled(dir.path(), 200, "-O extra_attr,inode_checksum", |tree| {
        for n in 0..10_000 {
            marked(tree, format!("big/{n:05} of ten thousand"), n % 2);
        }
    });
    let map = compare_all(&image, &dir.path().join("tree"), u64::MAX);
    let root = map.extents().iter().filter(|e| e.kind == Kind::Directory);
    let blocks: u64 = root.map(|e| e.sectors / 8).sum();
    // 10,000 names of three slots, 214 slots in a block: hashed over many levels.
    assert!(blocks > 10_000 * 3 / 214, "{blocks}");

    // As full as sload.f2fs can make it.
    let dir = scratch();
    let image = filled(dir.path(), 200, "", |tree| {
        (0..60).for_each(|n| marked(tree, format!("full_{n}"), 512));
    });
    let map = compare_all(&image, &dir.path().join("tree"), u64::MAX);
    let blocks = |kind| -> u64 {
        let extents = map.extents().iter().filter(|e| e.kind == kind);
        extents.map(|e| e.sectors / 8).sum()
    };
    assert!(2 * blocks(Kind::Regular) > 3 * blocks(Kind::Free));
}

/// What mkfs.f2fs makes has its first NAT and SIT entries in the journals.
#[test]
fn journals_alone_are_enough() {
    if !have_tools() {
        return;
    }
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
        // And they are needed: without them, there is no file.
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

/// With one of two copies damaged, the map is the same, and says so.
#[test]
fn one_of_two_copies_is_enough() {
    if !have_tools() {
        return;
    }
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
    // The end of another pack.
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
    // Both.
    let mut none = editor.image.clone();
    none.change(pack, |block| block[9] ^= 1);
    none.change(other, |block| block[9] ^= 1);
    let error = none.build().expect_err("no checkpoint").to_string();
    assert!(
        error.contains("checkpoint: neither pack is whole: block"),
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

/// What is left out of an image without harm: everything that was not read.
#[test]
fn what_was_read_is_all_that_is_needed() {
    if !have_tools() {
        return;
    }
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
    eprintln!(
        "{} blocks of {} are needed",
        reads[0].len(),
        sparse.used().len()
    );
}

/// A file that notes where it is read.
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

#[test]
fn the_map_begins_where_the_partition_does() {
    if !have_tools() {
        return;
    }
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
