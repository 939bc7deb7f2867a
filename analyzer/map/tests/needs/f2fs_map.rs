// SPDX-License-Identifier: MIT OR Apache-2.0
//! The f2fs map compared with dump.f2fs and fsck.f2fs, and with the marks in the blocks themselves.

use crate::f2fs::images;
use crate::f2fs::oracles;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use images::*;
use mostrace_map::class::Kind;
use mostrace_map::{Extent, Map};
use test_support::{Suite, at_once, tests};

pub fn suite() -> Suite {
    at_once(tests![
        block_for_block_as_dump_f2fs_has_it needs TOOLS,
        ten_thousand_files_in_one_directory_and_a_full_volume needs TOOLS,
    ])
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

/// Checks that every path of the tree is in the map once, and that the map has no others.
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
    // Hard links to one file in the tree must be hard links in the map.
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

/// Reads every block of regular files and compares its mark with the map; of each file only the first `limit` blocks.
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
                // sload.f2fs fills the holes of the sparse file.
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

/// Returns true if two paths belong to one inode.
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
    // Compares offsets with dump.f2fs: those of the first and last block of extents all over the disk.
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

fn block_for_block_as_dump_f2fs_has_it() {
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
        // sload.f2fs 1.15 leaves i_inline_xattr_size at 0 and uses that; its own last check then sets it to 50, and
        // drops as many addresses of a longer file.
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

fn ten_thousand_files_in_one_directory_and_a_full_volume() {
    let dir = scratch();
    let image = filled(dir.path(), 200, "-O extra_attr,inode_checksum", |tree| {
        for n in 0..10_000 {
            marked(tree, format!("big/{n:05} of ten thousand"), n % 2);
        }
    });
    let map = compare_all(&image, &dir.path().join("tree"), u64::MAX);
    let root = map.extents().iter().filter(|e| e.kind == Kind::Directory);
    let blocks: u64 = root.map(|e| e.sectors / 8).sum();
    // There are 10,000 names of three slots, with 214 slots in a block, hashed over many levels.
    assert!(blocks > 10_000 * 3 / 214, "{blocks}");

    // The volume is as full as sload.f2fs can make it.
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
