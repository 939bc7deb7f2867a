// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structures that the kernel writes and f2fs-tools 1.15 cannot make; the tests put them into an image by hand.

use crate::f2fs::edit;
use crate::f2fs::images;

use edit::*;
use images::*;
use mostrace_map::Map;
use mostrace_map::class::Kind;
use test_support::{Suite, at_once, tests};

pub fn suite() -> Suite {
    at_once(tests![
        blocks_of_a_compressed_cluster_are_where_the_cluster_begins needs TOOLS,
        entries_in_the_inode_and_names_in_ciphertext needs TOOLS,
        the_node_of_extended_attributes_is_the_files needs TOOLS,
        an_orphan_has_blocks_and_no_name needs TOOLS,
    ])
}

/// Returns the blocks of an inode's contents in disk order: block address, and number in the file.
fn contents(map: &Map, ino: u64) -> Vec<(u32, u64)> {
    let mut blocks = vec![];
    for extent in map.extents().iter().filter(|e| e.inode == ino) {
        for nth in 0..extent.sectors / 8 {
            let offset = extent.file_offset.map(|offset| offset / 4096 + nth);
            blocks.extend(offset.map(|offset| ((extent.sector / 8 + nth) as u32, offset)));
        }
    }
    blocks
}

fn kind_at(map: &Map, blkaddr: u64) -> (Kind, u64) {
    let piece = map.pieces(blkaddr * 8, 8).next().expect("piece");
    (piece.kind, piece.inode)
}

const EXTRA: usize = 36;
/// Number of addresses in an inode with all extra attributes and inline xattr.
const IN_INODE: u64 = 923 - 9 - 50;

fn blocks_of_a_compressed_cluster_are_where_the_cluster_begins() {
    let (mut editor, before) = editor("-O extra_attr,compression");
    let ino = inode_at(&before, b"/many");
    let addrs: Vec<u32> = contents(&before, ino)
        .iter()
        .map(|&(block, _)| block)
        .collect();
    assert!(
        addrs.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{addrs:?}"
    );
    let blkaddr = editor.dump.nat[&ino].blkaddr;
    editor.image.change(blkaddr, |block| {
        assert_eq!(u16::from_le_bytes([block[360], block[361]]), EXTRA as u16);
        put32(block, 80, 4);
        block[393] = 2;
        let mut put = |nth: usize, addr| put32(block, 360 + EXTRA + nth * 4, addr);
        // Three blocks hold a compressed cluster of four; four are uncompressed, directly behind them; one holds four.
        (0..40).for_each(|nth| put(nth, 0));
        put(0, u32::MAX - 1);
        (1..4).for_each(|nth| put(nth, addrs[nth - 1]));
        (4..8).for_each(|nth| put(nth, addrs[nth - 1]));
        put(8, u32::MAX - 1);
        put(9, addrs[20]);
        // A reserved block, as the kernel's compress_mode=fs leaves it.
        put(10, u32::MAX);
    });
    let after = editor.image.build().expect("map");
    let starts = [0, 0, 0, 4, 5, 6, 7];
    let mut expected: Vec<_> = addrs.iter().copied().zip(starts).collect();
    expected.push((addrs[20], 8));
    assert_eq!(contents(&after, ino), expected);
    let [notice] = after.notices() else {
        panic!("{:?}", after.notices())
    };
    assert!(
        notice.starts_with("32 blocks, ") && notice.ends_with("in use, but nobody's"),
        "{notice}"
    );

    // Only whole clusters count, in the inode and in direct nodes.
    let ino = inode_at(&before, b"/dir/direct");
    let was = contents(&before, ino);
    editor.image.over.clear();
    editor.image.change(editor.dump.nat[&ino].blkaddr, |block| {
        put32(block, 80, 4);
        block[393] = 8;
    });
    let after = editor.image.build().expect("map");
    let behind = |&(block, nth): &(u32, u64)| match nth {
        0..768 => Some((block, nth)),
        768..IN_INODE => None,
        _ => Some((block, nth - IN_INODE + 768)),
    };
    let expected: Vec<_> = was.iter().filter_map(behind).collect();
    assert_eq!(contents(&after, ino), expected);

    // The same holds for the nodes ahead of this one.
    let free = editor.free_blocks(3);
    editor.set_nat(950, ino as u32, free[0]);
    editor.image.change(free[0].into(), |block| {
        block.copy_from_slice(&node_of(&[(5, free[1]), (768, free[2])]));
        put32(block, 4072, 950);
        put32(block, 4076, ino as u32);
        put32(block, 4080, 2 << 3);
    });
    editor.image.change(editor.dump.nat[&ino].blkaddr, |block| {
        put32(block, 4056, 950)
    });
    let after = editor.image.build().expect("map");
    let added = [(free[1], 768 + 768 + 5)];
    assert_eq!(contents(&after, ino), [&expected[..], &added].concat());
    editor
        .image
        .change(editor.dump.nat[&ino].blkaddr, |block| put32(block, 4056, 0));

    // A cluster begins in the middle of another one.
    editor.image.change(editor.dump.nat[&ino].blkaddr, |block| {
        put32(block, 360 + EXTRA + 7 * 4, u32::MAX - 1);
    });
    let after = editor.image.build().expect("map");
    let notice = format!("inode {ino}: node {ino}: no compressed cluster begins at 7");
    assert!(after.notices().contains(&notice), "{:?}", after.notices());
    assert_eq!(contents(&after, ino).len(), expected.len() - 1);
}

fn entries_in_the_inode_and_names_in_ciphertext() {
    let (mut editor, before) = editor("");
    let dir = inode_at(&before, b"/dir");
    let (one, many) = (inode_at(&before, b"/one"), inode_at(&before, b"/many"));
    let old = contents(&before, dir);
    assert_eq!(old.len(), 1);
    // (923 - 50 - 1) words hold 182 entries: 23 bytes of bits, 7 spare bytes, then 11 and 8 bytes for each entry.
    let area = 360 + 4;
    let (dentries, names) = (area + 23 + 7, area + 23 + 7 + 182 * 11);
    let blkaddr = editor.dump.nat[&dir].blkaddr;
    editor.image.change(blkaddr, |block| {
        block[3] |= 4;
        block[area..4052 - 200].fill(0);
        for (slot, ino, name) in [(2, one, &b"eleven byte"[..]), (181, many, b"a/\xff")] {
            block[area + slot / 8] |= 1 << (slot % 8);
            put32(block, dentries + slot * 11 + 4, ino as u32);
            block[dentries + slot * 11 + 8] = name.len() as u8;
            block[names + slot * 8..][..name.len()].copy_from_slice(name);
        }
    });
    let names = |map: &Map, ino| -> Vec<String> {
        let paths = map.paths(ino).into_iter();
        let mut names: Vec<_> = paths
            .map(|p| String::from_utf8_lossy(&p).into_owned())
            .collect();
        names.sort();
        names
    };
    let after = editor.image.build().expect("map");
    assert_eq!(names(&after, one), ["/dir/eleven byte", "/one"]);
    assert_eq!(names(&after, many), ["/dir/a/\u{fffd}", "/many"]);
    assert_eq!(kind_at(&after, old[0].0.into()), (Kind::Unmapped, 0));

    // FADVISE_ENCRYPT_BIT
    editor.image.change(blkaddr, |block| block[2] |= 4);
    let after = editor.image.build().expect("map");
    assert_eq!(
        names(&after, one),
        ["/dir/<encrypted:656c6576656e2062797465>", "/one"]
    );
    assert_eq!(names(&after, many), ["/dir/<encrypted:612fff>", "/many"]);
    // The same with the entries in blocks.
    editor.image.change(blkaddr, |block| block[3] &= !4);
    editor
        .image
        .change(blkaddr, |block| put32(block, 360, old[0].0));
    let after = editor.image.build().expect("map");
    let hex: String = b"hard link to many"
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        names(&after, many),
        [format!("/dir/<encrypted:{hex}>"), "/many".into()]
    );
}

fn the_node_of_extended_attributes_is_the_files() {
    let (mut editor, before) = editor("");
    let free = editor.free_blocks(3);
    let (many, dir) = (inode_at(&before, b"/many"), inode_at(&before, b"/dir"));
    for (ino, nid, blkaddr, marks) in [
        (many, 900, free[0], 0),
        (dir, 901, free[1], 0),
        (many, 902, free[2], 2),
    ] {
        editor.set_nat(nid, ino as u32, blkaddr);
        editor.image.change(blkaddr.into(), |block| {
            put32(block, 4072, nid);
            put32(block, 4076, ino as u32);
            put32(block, 4080, u32::MAX << 3 | marks);
        });
    }
    let set = |editor: &mut Editor, ino: u64, nid| {
        let inode = editor.dump.nat[&ino].blkaddr;
        editor.image.change(inode, |block| put32(block, 76, nid));
    };
    set(&mut editor, many, 900);
    set(&mut editor, dir, 901);
    let after = editor.image.build().expect("map");
    assert_eq!(kind_at(&after, free[0].into()), (Kind::WarmNode, many));
    assert_eq!(kind_at(&after, free[1].into()), (Kind::HotNode, dir));
    // No inode points to the third node.
    assert_eq!(kind_at(&after, free[2].into()), (Kind::Free, 0));
    let notices = after.notices();
    assert_eq!(notices.len(), 2);
    assert!(
        notices[0].contains("nothing leads to its node 902"),
        "{notices:?}"
    );
    assert!(
        notices[1].starts_with("2 blocks, the first is ")
            && notices[1].ends_with("have an owner, but are not in use")
    );
    set(&mut editor, many, 902);
    let after = editor.image.build().expect("map");
    assert_eq!(kind_at(&after, free[2].into()), (Kind::FsyncNode, many));
}

/// A checkpoint lists an orphan; then the same file is not listed.
fn an_orphan_has_blocks_and_no_name() {
    let (mut editor, before) = editor("");
    let one = inode_at(&before, b"/one");
    let root = before
        .extents()
        .iter()
        .find(|e| e.kind == Kind::Directory && e.inode == 3);
    let block = root.expect("root").sector / 8;
    editor.image.change(block, |block| {
        let slot = (0..214).find(|slot| u64::from(get32(block, 30 + slot * 11 + 4)) == one);
        let slot = slot.expect("slot");
        block[slot / 8] &= !(1 << (slot % 8));
    });
    let after = editor.image.build().expect("map");
    assert_eq!(
        after.notices(),
        [format!("1 files, the first is inode {one}, have no name")]
    );
    assert_eq!(after.extents(), before.extents());
    assert!(after.paths(one).is_empty());

    let pack = editor.pack();
    let total = u64::from(get32(&editor.image.block(pack), 136));
    assert_eq!(get32(&editor.image.block(pack), 140), 1);
    for nth in (1..total).rev() {
        let moved = editor.image.block(pack + nth);
        editor
            .image
            .change(pack + nth + 1, |block| block.copy_from_slice(&moved));
    }
    editor.image.change(pack + 1, |block| {
        block.fill(0);
        put32(block, 0, one as u32);
        put32(block, 4088, 1);
    });
    for nth in [pack, pack + total] {
        editor.image.change(nth, |cp| {
            put32(cp, 132, get32(cp, 132) | 2);
            put32(cp, 136, total as u32 + 1);
            put32(cp, 140, 2);
            mend_checkpoint(cp);
        });
    }
    let after = editor.image.build().expect("map");
    assert_eq!(after.notices(), [""; 0]);
    assert_eq!(after.extents(), before.extents());
    assert!(after.paths(one).is_empty());
}
