// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged and foreign f2fs images: one clear error or a map with notices, never a panic or a hang.

#[path = "common/f2fs_edit.rs"]
mod edit;
#[path = "common/f2fs_images.rs"]
mod images;
#[path = "common/f2fs_oracles.rs"]
mod oracles;

use std::time::{Duration, Instant};

use edit::*;
use images::*;
use mostrace::class::Kind;
use mostrace::fs::Error;
use mostrace::map::{Extent, Map};
use proptest::prelude::*;

const ALL_FEATURES: &str = "-O extra_attr,inode_checksum,sb_checksum,inode_crtime,compression,\
    quota,project_quota,casefold,flexible_inline_xattr,lost_found,verity,encrypt -C utf8";

fn editor(options: &str) -> Option<(Editor, Map)> {
    let dir = tempfile::tempdir().expect("scratch folder");
    let editor =
        have_tools().then(|| Editor::of(&filled(dir.path(), 100, options, fill_little)))?;
    let before = editor.image.build().expect("map");
    assert_eq!(before.notices(), [""; 0]);
    Some((editor, before))
}

/// The map covers the filesystem, block by block.
fn conserves(map: &Map, bytes: u64) -> bool {
    let extents = map.extents();
    extents.first().is_some_and(|first| first.sector == 0)
        && extents
            .windows(2)
            .all(|pair| pair[0].end() == pair[1].sector)
        && extents.last().is_some_and(|last| last.end() * 512 <= bytes)
        && extents
            .iter()
            .all(|e| e.sectors > 0 && e.sector % 8 == 0 && e.sectors % 8 == 0)
}

fn line(image: &Sparse, error: &Error) -> String {
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    line.strip_prefix(&format!("{}: ", image.path.display()))
        .expect("the file's name")
        .to_owned()
}

#[test]
fn what_cannot_be_read_is_named() {
    let Some((editor, _)) = editor("") else {
        return;
    };
    let corrupt = [
        (16, 0x0b, "block, segment or sector size out of range"),
        (20, 0x0a, "block, segment or sector size out of range"),
        (8, 0x0c, "block, segment or sector size out of range"),
        (37, 1, "the main area ends at block"),
        (38, 1, "blocks, but the image ends at byte"),
        (52, 1, "checkpoint: 1 segments at block 512"),
        (56, 3, "SIT: 3 segments at block 1536"),
        (68, 0, "no main area"),
        (92, 1, "SSA: "),
        (72, 1, "segment 0 is not the checkpoint's"),
        (96, 4, "reserved inodes with unknown numbers"),
        (1665, 2, "blocks of bitmaps in a checkpoint"),
    ];
    let unsupported = [
        (16, 0x0e, "not supported: blocks of 16384 bytes"),
        (2201, b'/', "not supported: several devices"),
        (2181, 0x80, "not supported: device aliasing"),
    ];
    for (set, is_corrupt) in [(&corrupt[..], true), (&unsupported[..], false)] {
        for &(offset, byte, says) in set {
            let mut image = editor.image.clone();
            for copy in [0, 1] {
                image.change(copy, |block| block[1024 + offset] = byte);
            }
            let error = image.build().expect_err(says);
            assert_eq!(
                matches!(error, Error::Corrupt { .. }),
                is_corrupt,
                "{error}"
            );
            assert_eq!(
                matches!(error, Error::Unsupported { .. }),
                !is_corrupt,
                "{error}"
            );
            let line = line(&image, &error);
            assert!(
                line.starts_with("superblock at byte 1024: ") && line.contains(says),
                "{line}"
            );
        }
    }
    // What is not known, but changes nothing here, is said.
    let mut image = editor.image.clone();
    [0, 1]
        .into_iter()
        .for_each(|copy| image.change(copy, |block| block[1024 + 2183] = 0x40));
    let map = image.build().expect("map");
    assert_eq!(map.notices(), ["unknown feature bits 0x40000000"]);
    // 16 KB blocks have their second superblock elsewhere: the first one tells.
    let mut image = editor.image.clone();
    image.change(0, |block| block[1024 + 16] = 0x0e);
    image.change(1, |block| block.fill(0));
    assert!(matches!(image.build(), Err(Error::Unsupported { .. })));
    // Cut short.
    let mut image = editor.image.clone();
    image.bytes -= 4096;
    assert!(line(&image, &image.build().expect_err("cut")).contains("but the image ends at byte"));
    image.bytes = 5000;
    assert!(line(&image, &image.build().expect_err("cut")).starts_with("superblock"));
}

fn blocks(map: &Map, what: impl Fn(&Extent) -> bool) -> u64 {
    let extents = map.extents().iter().filter(|extent| what(extent));
    extents.map(|extent| extent.sectors / 8).sum()
}

fn inode_at(map: &Map, path: &[u8]) -> u64 {
    let mut inodes = map.extents().iter().map(|extent| extent.inode);
    inodes
        .find(|&inode| map.paths(inode).iter().any(|p| p == path))
        .expect("inode")
}

/// Each damage costs the file that it hit, and no other.
#[test]
fn damage_costs_its_own_file_only() {
    for options in ["", "-O extra_attr,inode_checksum"] {
        let Some((editor, before)) = editor(options) else {
            return;
        };
        let ino = inode_at(&before, b"/dir/direct");
        let inode = editor.dump.nat[&ino].blkaddr;
        let (_, node) = editor
            .dump
            .nat
            .iter()
            .find(|(_, n)| n.ino == ino && n.ofs == 1)
            .expect("node");
        let (node, main) = (node.blkaddr, editor.dump.main_blkaddr);
        let many = inode_at(&before, b"/many");
        let others = editor.node(many);
        let uuid = editor.image.block(0)[1024 + 108..1024 + 124].to_vec();
        let sums = options.contains("checksum");
        let extra = if sums { 3 } else { 0 };
        let addr = 360 + extra * 4;
        let mend = |block: &mut [u8]| {
            if sums {
                mend_inode(block, &uuid);
            }
        };
        let of = |e: &Extent| e.inode == ino;
        let all = blocks(&before, of);
        let below = 2 + 930 - (923 - 50 - extra as u64);
        type Change<'a> = &'a dyn Fn(&mut [u8]);
        let cases: [(u64, Change, u64, &str); 8] = [
            (
                inode,
                &|b| put32(b, 4072, 77),
                all,
                "holds node 77 of inode",
            ),
            (inode, &|b| put32(b, 4076, 77), all, "holds node"),
            (
                node,
                &|b| put32(b, 4072, 77),
                below - 1,
                "holds node 77 of inode",
            ),
            (
                node,
                &|b| put32(b, 4080, 2 << 3),
                below - 1,
                "nothing leads to its node",
            ),
            (
                node,
                &|b| put32(b, 0, main as u32 - 1),
                1,
                "1 addresses outside the main area",
            ),
            (
                node,
                &|b| put32(b, 0, u32::MAX - 7),
                1,
                "1 addresses outside the main area",
            ),
            (
                inode,
                &|b| (put32(b, addr, 9), mend(b)).1,
                1,
                "1 addresses outside the main area",
            ),
            (
                inode,
                &|b| (put32(b, 4052, 999_999), mend(b)).1,
                below - 1,
                "nothing leads to its node",
            ),
        ];
        for (block, change, lost, says) in cases {
            let mut image = editor.image.clone();
            image.change(block, change);
            let after = image.build().expect("map");
            assert!(conserves(&after, image.bytes));
            assert!(
                after.notices().iter().any(|n| n.contains(says)),
                "{says}: {:?}",
                after.notices()
            );
            assert_eq!(blocks(&after, of), all - lost, "{says}");
            assert_eq!(blocks(&after, |e| e.kind == Kind::Unmapped), lost, "{says}");
            let rest = |e: &Extent| ![0, ino].contains(&e.inode);
            assert_eq!(blocks(&after, rest), blocks(&before, rest), "{says}");
        }
        // A block of another file: it is nobody's then.
        let mut image = editor.image.clone();
        let stolen = get32(&others, addr + 4);
        image.change(node, |block| put32(block, 0, stolen));
        let after = image.build().expect("map");
        let notice = format!("block {stolen}: has two owners, one is inode {ino}");
        assert!(after.notices().contains(&notice), "{:?}", after.notices());
        assert_eq!(blocks(&after, of), all - 1);
        assert_eq!(
            blocks(&after, |e| e.inode == many),
            blocks(&before, |e| e.inode == many) - 1
        );
        assert_eq!(blocks(&after, |e| e.kind == Kind::Unmapped), 2);
        // A wrong checksum.
        if sums {
            let mut image = editor.image.clone();
            image.change(inode, |block| block[50] ^= 1);
            let after = image.build().expect("map");
            assert!(
                after
                    .notices()
                    .contains(&format!("inode {ino}: wrong checksum"))
            );
            assert_eq!(
                (
                    blocks(&after, of),
                    blocks(&after, |e| e.kind == Kind::Unmapped)
                ),
                (0, all)
            );
        }
    }
}

#[test]
fn directories_that_hold_each_other_come_to_an_end() {
    let Some((editor, before)) = editor("") else {
        return;
    };
    let dir = inode_at(&before, b"/dir");
    let block = before
        .extents()
        .iter()
        .find(|e| e.inode == dir && e.kind == Kind::Directory);
    let block = block.expect("directory").sector / 8;
    // Every entry leads to the directory itself, or to the root.
    for ino in [dir as u32, 3] {
        let mut image = editor.image.clone();
        image.change(block, |block| {
            (0..214).for_each(|slot| put32(block, 30 + slot * 11 + 4, ino))
        });
        let after = image.build().expect("map");
        assert!(
            after
                .notices()
                .contains(&format!("inode {ino}: a directory with two names"))
        );
        assert_eq!(after.paths(dir), [b"/dir"]);
    }
}

/// An image, and its blocks that the walker reads, but for the zeros.
struct Target {
    image: Sparse,
    metadata: Vec<u64>,
    uuid: Vec<u8>,
}

fn targets() -> Vec<Target> {
    let chain = |editor: &mut Editor, before: &Map| {
        let ino = inode_at(before, b"/many") as u32;
        let block = editor.node(ino.into());
        let data = editor.free_blocks(2);
        let new = |nid, ino, ofs, marks, block| New {
            nid,
            ino,
            ofs,
            marks,
            block,
        };
        editor.write_chain(&[
            new(900, 900, 0, FSYNC | DENT, regular_inode(3, b"fresh", &data)),
            new(901, 900, 1, FSYNC, node_of(&[(0, data[1])])),
            new(ino, ino, 0, FSYNC, block),
        ]);
    };
    let mut targets = Vec::new();
    for options in ["", "-O extra_attr,inode_checksum", ALL_FEATURES, "-i -s 2"] {
        let Some((mut editor, before)) = editor(options) else {
            continue;
        };
        if !options.contains("extra_attr") {
            chain(&mut editor, &before);
        }
        let image = editor.image;
        let of_file = [Kind::Regular, Kind::Symlink, Kind::Quota, Kind::Ssa];
        let is_metadata = |nth: &u64| {
            let piece = before.pieces(nth * 8, 1).next().expect("piece");
            !of_file.contains(&piece.kind)
        };
        let mut metadata: Vec<u64> = image.used().into_iter().filter(is_metadata).collect();
        metadata.extend(image.over.keys());
        let uuid = image.block(0)[1024 + 108..1024 + 124].to_vec();
        targets.push(Target {
            image,
            metadata,
            uuid,
        });
    }
    targets
}

/// Where a byte is flipped: which of the metadata blocks, and where in it. The areas before the
/// main area are few blocks, and get as many flips as the nodes.
fn flip() -> impl Strategy<Value = (prop::sample::Index, usize, u8)> {
    let offset = prop_oneof![0..4096usize, 0..512usize, 4072..4096usize, 1024..1200usize];
    (any::<prop::sample::Index>(), offset, 1u8..)
}

fn damaged(target: &Target, flips: &[(prop::sample::Index, usize, u8)], mend: bool) -> Sparse {
    let mut image = target.image.clone();
    for (block, offset, mask) in flips {
        let block = *block.get(&target.metadata);
        image.change(block, |block| block[*offset] ^= mask);
    }
    if mend {
        let changed: Vec<u64> = image.over.keys().copied().collect();
        for nth in changed {
            let checkpoint = (512..1536).contains(&nth);
            image.change(nth, |block| {
                let is_inode = block[4072..4076] == block[4076..4080] && get32(block, 4072) != 0;
                if checkpoint {
                    mend_checkpoint(block);
                } else if is_inode {
                    let extra = block[3] & 0x20 != 0;
                    extra.then(|| mend_inode(block, &target.uuid));
                }
            });
        }
    }
    image
}

fn check(image: &Sparse) -> Result<(), TestCaseError> {
    let begun = Instant::now();
    let built = image.build();
    match &built {
        Ok(map) => {
            prop_assert!(conserves(map, image.bytes));
            prop_assert!(map.notices().len() <= 101);
            for extent in map.extents() {
                let paths = map.paths(extent.inode);
                prop_assert!(paths.iter().all(|path| path.starts_with(b"/")));
            }
        }
        Err(error) => prop_assert!(!line(image, error).is_empty()),
    }
    prop_assert!(begun.elapsed() < Duration::from_secs(5), "too slow");
    Ok(())
}

fn flips(cases: u32) {
    let targets = targets();
    if targets.is_empty() {
        return;
    }
    let case = (
        0..targets.len(),
        prop::collection::vec(flip(), 1..12),
        any::<bool>(),
    );
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    };
    let mut counts = [0u32; 3];
    let seen = std::cell::RefCell::new(&mut counts);
    let begun = Instant::now();
    proptest::test_runner::TestRunner::new(config)
        .run(&case, |(target, flips, mend)| {
            let image = damaged(&targets[target], &flips, mend);
            let kind = match image.build() {
                Ok(map) if map.notices().is_empty() => 0,
                Ok(_) => 1,
                Err(_) => 2,
            };
            seen.borrow_mut()[kind] += 1;
            check(&image)
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let [silent, noticed, refused] = counts;
    let seconds = begun.elapsed().as_secs();
    eprintln!(
        "{cases} damaged images in {seconds} s: {silent} maps, {noticed} with notices, {refused} errors"
    );
    assert!(noticed > cases / 20 && silent > 0 && refused < cases / 2);
}

#[test]
fn flipped_bytes() {
    flips(1000);
}

/// `cargo test --release --test f2fs_damage -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn flipped_bytes_ten_thousand_times() {
    flips(10_000);
}

/// Nodes that lead to each other, and to all of the disk: the work is bounded all the same.
#[test]
fn nodes_that_lead_everywhere() {
    let Some((mut editor, before)) = editor("") else {
        return;
    };
    let ino = inode_at(&before, b"/many") as u32;
    let main = editor.dump.main_blkaddr as u32;
    let free = editor.free_blocks(1500);
    // A double indirect node over indirect nodes, all with the same children, and direct nodes
    // that all hold the same 1,018 blocks.
    let nodes = &free[..400];
    for (nth, &blkaddr) in (0u32..).zip(nodes) {
        let (nid, same) = (1000 + nth, (0..1018).map(|n| (n, 1000 + n as u32 % 400)));
        let (ofs, block) = match nth {
            0 => (5 + 2 * 1018, node_of(&same.collect::<Vec<_>>())),
            1..200 => (
                6 + 2 * 1018 + (nth - 1) * 1019,
                node_of(&same.collect::<Vec<_>>()),
            ),
            _ => {
                let data = (0..1018).map(|n| (n, main + 2000 + n as u32 * 2));
                (
                    7 + 2 * 1018 + (nth - 200),
                    node_of(&data.collect::<Vec<_>>()),
                )
            }
        };
        editor.set_nat(nid, ino, blkaddr);
        editor.image.change(blkaddr.into(), |to| {
            to.copy_from_slice(&block);
            put32(to, 4072, nid);
            put32(to, 4076, ino);
            put32(to, 4080, ofs << 3);
        });
    }
    let inode = editor.dump.nat[&u64::from(ino)].blkaddr;
    editor
        .image
        .change(inode, |block| put32(block, 4052 + 16, 1000));
    // Two nids with one block.
    editor.set_nat(1450, ino, nodes[0]);
    let begun = Instant::now();
    let after = editor.image.build().expect("map");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(conserves(&after, editor.image.bytes));
    assert_eq!(after.notices().len(), 101);
    assert!(after.notices()[100].starts_with("and "));
}
