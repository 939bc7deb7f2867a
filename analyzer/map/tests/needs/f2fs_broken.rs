// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged and foreign f2fs images: each gives its notice and costs no more than the damaged part.

use crate::f2fs::edit;
use crate::f2fs::images;

use edit::*;
use images::*;
use mostrace_map::class::Kind;
use mostrace_map::fs::Error;
use mostrace_map::{Extent, Map};
use test_support::{Suite, at_once, tests};

pub fn suite() -> Suite {
    at_once(tests![
        what_cannot_be_read_is_named needs TOOLS,
        damage_costs_its_own_file_only needs TOOLS,
        directories_that_hold_each_other_come_to_an_end needs TOOLS,
        nodes_that_lead_everywhere needs TOOLS,
    ])
}

fn what_cannot_be_read_is_named() {
    let (editor, _) = editor("");
    let corrupt = [
        (16, 0x0b, "block, segment or sector size out of range"),
        (16, 0x0e, "block, segment or sector size out of range"),
        (16, 0x11, "block, segment or sector size out of range"),
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
    let unsupported = [(2181, 0x80, "not supported: device aliasing")];
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
    // An unknown feature that does not affect the map is noted.
    let mut image = editor.image.clone();
    [0, 1]
        .into_iter()
        .for_each(|copy| image.change(copy, |block| block[1024 + 2183] = 0x40));
    let map = image.build().expect("map");
    assert_eq!(map.notices(), ["unknown feature bits 0x40000000"]);
    // The image is cut short.
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

/// Each kind of damage costs the file that it hits, and no other.
fn damage_costs_its_own_file_only() {
    for options in ["", "-O extra_attr,inode_checksum"] {
        let (editor, before) = editor(options);
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
        // The node holds a block of another file: then that block has no owner.
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
        // A checksum is wrong.
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

fn directories_that_hold_each_other_come_to_an_end() {
    let (editor, before) = editor("");
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

/// Nodes point to each other and to the whole disk; the work is still bounded.
fn nodes_that_lead_everywhere() {
    let (mut editor, before) = editor("");
    let ino = inode_at(&before, b"/many") as u32;
    let main = editor.dump.main_blkaddr as u32;
    let free = editor.free_blocks(1500);
    // A double indirect node above indirect nodes that all have the same children; and direct nodes that all hold the
    // same 1,018 blocks.
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
    // Two nids have the same block.
    editor.set_nat(1450, ino, nodes[0]);
    let after = editor.image.build().expect("map");
    assert!(conserves(&after, editor.image.bytes));
    assert_eq!(after.notices().len(), 101);
    assert!(after.notices()[100].starts_with("and "));
}
