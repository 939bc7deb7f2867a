// SPDX-License-Identifier: MIT OR Apache-2.0
//! Roll-forward recovery: the tests put nodes into an image as fsync writes them after the checkpoint.

use crate::f2fs::edit;
use crate::f2fs::images;
use crate::f2fs::oracles;

use edit::*;
use images::*;
use mostrace_map::class::Kind;
use mostrace_map::{Extent, Map};
use test_support::{Suite, at_once, tests};

pub fn suite() -> Suite {
    at_once(tests![
        an_overwritten_file_has_its_new_blocks needs TOOLS,
        a_new_file_has_the_name_in_its_inode needs TOOLS,
        only_what_came_before_the_last_mark_counts needs TOOLS,
        a_file_that_moved_into_its_inode_has_no_blocks needs TOOLS,
        nodes_far_out_are_where_the_kernel_counts_them needs TOOLS,
        the_checksum_of_the_checkpoint_is_a_part_of_the_version needs TOOLS,
        a_bad_chain_counts_for_nothing needs TOOLS,
    ])
}

const ROOT: u32 = 3;
const NEW_INO: u32 = 900;
/// Number of addresses in an inode with inline xattr, as sload.f2fs makes it.
const IN_INODE: u64 = 923 - 50;

fn at(map: &Map, blkaddr: u32) -> (Kind, u32, Option<u64>) {
    let pieces: Vec<_> = map.pieces(u64::from(blkaddr) * 8, 8).collect();
    let [piece] = pieces[..] else {
        panic!("{pieces:?}");
    };
    (
        piece.kind,
        piece.inode as u32,
        piece.file_offset.map(|offset| offset / 4096),
    )
}

/// Returns the blocks of an inode's contents in file order.
fn contents(map: &Map, ino: u32) -> Vec<(u64, u32)> {
    let of_ino = |e: &&Extent| e.inode == u64::from(ino) && e.file_offset.is_some();
    let mut blocks = vec![];
    for extent in map.extents().iter().filter(of_ino) {
        for nth in 0..extent.sectors / 8 {
            let offset = extent.file_offset.expect("offset") / 4096 + nth;
            blocks.push((offset, (extent.sector / 8 + nth) as u32));
        }
    }
    blocks.sort_unstable();
    blocks
}

fn recovered(nodes: usize, files: usize) -> String {
    format!(
        "{nodes} nodes of {files} files, written after the checkpoint, were found through the node chain"
    )
}

fn new(nid: u32, ino: u32, ofs: u32, marks: u32, block: Vec<u8>) -> New {
    New {
        nid,
        ino,
        ofs,
        marks,
        block,
    }
}

fn an_overwritten_file_has_its_new_blocks() {
    let (mut editor, before) = editor("");
    let ino = inode_at(&before, b"/many") as u32;
    let old = editor.dump.nat[&u64::from(ino)].blkaddr as u32;
    let fresh = editor.free_blocks(2);
    let mut block = editor.node(ino.into());
    let was = [3, 7, 9].map(|nth| get32(&block, 360 + nth * 4));
    put32(&mut block, 360 + 3 * 4, fresh[0]);
    put32(&mut block, 360 + 7 * 4, fresh[1]);
    put32(&mut block, 360 + 9 * 4, 0);
    let chain = editor.write_chain(&[new(ino, ino, 0, FSYNC, block)]);
    let after = editor.image.build().expect("map");
    assert_eq!(after.notices(), [recovered(1, 1)]);
    assert_eq!(at(&after, fresh[0]), (Kind::Regular, ino, Some(3)));
    assert_eq!(at(&after, fresh[1]), (Kind::Regular, ino, Some(7)));
    assert_eq!(at(&after, chain[0]), (Kind::FsyncNode, ino, None));
    for gone in was.into_iter().chain([old]) {
        assert_eq!(at(&after, gone), (Kind::Free, 0, None));
    }
    assert_eq!(contents(&after, ino).len(), 39);
    assert_eq!(after.paths(ino.into()), before.paths(ino.into()));
    // Nothing else has changed.
    let others = |map: &Map| -> Vec<Extent> {
        let free = |e: &&Extent| e.kind != Kind::Free && e.inode != u64::from(ino);
        map.extents().iter().filter(free).copied().collect()
    };
    assert_eq!(others(&after), others(&before));
}

fn a_new_file_has_the_name_in_its_inode() {
    let (mut editor, before) = editor("");
    let dir = inode_at(&before, b"/dir") as u32;
    let data = editor.free_blocks(4);
    // A name in the directory now leads to the new file instead of the old one.
    let taken = inode_at(&before, b"/dir/hard link to many") as u32;
    let nodes = [
        new(
            NEW_INO,
            NEW_INO,
            0,
            FSYNC | DENT,
            regular_inode(dir, b"fresh", &data[..2]),
        ),
        new(
            NEW_INO + 1,
            NEW_INO,
            1,
            FSYNC,
            node_of(&[(0, data[2]), (1017, data[3])]),
        ),
        new(
            NEW_INO + 2,
            NEW_INO + 2,
            0,
            FSYNC | DENT,
            regular_inode(dir, b"hard link to many", &[]),
        ),
    ];
    let chain = editor.write_chain(&nodes);
    let after = editor.image.build().expect("map");
    assert_eq!(after.notices(), [recovered(3, 2)]);
    assert_eq!(after.paths(NEW_INO.into()), [b"/dir/fresh"]);
    assert_eq!(
        after.inode(NEW_INO.into()).expect("inode").generation,
        Some(0x5eed)
    );
    let offsets = [
        (0, data[0]),
        (1, data[1]),
        (923, data[2]),
        (923 + 1017, data[3]),
    ];
    assert_eq!(contents(&after, NEW_INO), offsets);
    assert_eq!(at(&after, chain[0]), (Kind::FsyncNode, NEW_INO, None));
    assert_eq!(at(&after, chain[1]), (Kind::FsyncNode, NEW_INO, None));
    assert_eq!(
        after.paths(u64::from(NEW_INO) + 2),
        [b"/dir/hard link to many"]
    );
    assert_eq!(after.paths(taken.into()), [b"/many"]);
}

fn only_what_came_before_the_last_mark_counts() {
    let (mut editor, before) = editor("");
    let ino = inode_at(&before, b"/dir/direct") as u32;
    let data = editor.free_blocks(9);
    let unmarked = |nth: usize| new(950, ino, 1, 0, node_of(&[(0, data[nth])]));
    let marked = |nth: usize| new(950, ino, 1, FSYNC, node_of(&[(1, data[nth])]));
    let nodes = [
        unmarked(0),
        marked(1),
        // The node belongs to no inode, neither one in the checkpoint nor a new one.
        new(970, 971, 1, FSYNC, node_of(&[(0, data[2])])),
        // When the file was synced first, its name was not yet in the directory.
        new(
            NEW_INO,
            NEW_INO,
            0,
            0,
            regular_inode(ROOT, b"lost", &[data[3]]),
        ),
        unmarked(4),
    ];
    let chain = editor.write_chain(&nodes);
    let after = editor.image.build().expect("map");
    assert_eq!(after.notices(), [recovered(1, 1)]);
    // The 930 - 873 blocks of the old node are gone with it.
    let kept = contents(&before, ino).into_iter().take(IN_INODE as usize);
    let expected: Vec<_> = kept.chain([(IN_INODE + 1, data[1])]).collect();
    assert_eq!(contents(&after, ino), expected);
    assert_eq!(at(&after, chain[1]), (Kind::FsyncNode, ino, None));
    for nth in [0, 2, 3, 4] {
        assert_eq!(at(&after, chain[nth]), (Kind::Free, 0, None), "{nth}");
        assert_eq!(at(&after, data[nth]), (Kind::Free, 0, None), "{nth}");
    }
    assert!(after.inode(NEW_INO.into()).is_none());
}

fn a_file_that_moved_into_its_inode_has_no_blocks() {
    let (mut editor, before) = editor("");
    let ino = inode_at(&before, b"/dir/direct") as u32;
    let mut inline = editor.node(ino.into());
    inline[3] |= 2;
    let data = editor.free_blocks(1);
    let nodes = [
        new(950, ino, 2, FSYNC, node_of(&[(0, data[0])])),
        new(ino, ino, 0, FSYNC, inline.clone()),
    ];
    let chain = editor.write_chain(&nodes);
    let after = editor.image.build().expect("map");
    assert_eq!(after.notices(), [recovered(1, 1)]);
    assert_eq!(contents(&after, ino), []);
    let of_ino: Vec<_> = after
        .extents()
        .iter()
        .filter(|e| e.inode == u64::from(ino))
        .collect();
    assert_eq!(of_ino.len(), 1);
    assert_eq!(at(&after, chain[1]), (Kind::FsyncNode, ino, None));
}

fn nodes_far_out_are_where_the_kernel_counts_them() {
    let (mut editor, before) = editor("");
    let ino = inode_at(&before, b"/many") as u32;
    let n = 1018u64;
    // Each pair is an offset in the tree and the number of the file's blocks ahead of that node, following the drawing
    // in the kernel's node.h.
    let places = [
        (2, IN_INODE + n),
        (4, IN_INODE + 2 * n),
        (4 + n - 1, IN_INODE + 2 * n + (n - 1) * n),
        (5 + n, IN_INODE + 2 * n + n * n),
        (7 + 2 * n, IN_INODE + 2 * n + 2 * n * n),
        (
            7 + 2 * n + 3 * (n + 1) + 5,
            IN_INODE + 2 * n + 2 * n * n + 3 * n * n + 5 * n,
        ),
        (
            7 + 2 * n + (n - 1) * (n + 1) + n - 1,
            IN_INODE + 2 * n + 2 * n * n + n * n * n - n,
        ),
    ];
    let data = editor.free_blocks(places.len());
    let nodes: Vec<_> = (0..)
        .zip(places)
        .map(|(nth, (ofs, _))| {
            let block = node_of(&[(nth, data[nth])]);
            new(950 + nth as u32, ino, ofs as u32, FSYNC, block)
        })
        .collect();
    editor.write_chain(&nodes);
    let after = editor.image.build().expect("map");
    assert_eq!(after.notices(), [recovered(places.len(), 1)]);
    for (nth, (_, start)) in places.iter().enumerate() {
        let expected = (Kind::Regular, ino, Some(start + nth as u64));
        assert_eq!(at(&after, data[nth]), expected);
    }
    assert_eq!(contents(&after, ino).len(), 40 + places.len());
}

fn the_checksum_of_the_checkpoint_is_a_part_of_the_version() {
    let (mut editor, before) = editor("");
    let ino = inode_at(&before, b"/many") as u32;
    let node = |editor: &Editor| [new(ino, ino, 0, FSYNC, editor.node(ino.into()))];
    // nocrc_recovery off, crc_recovery on.
    editor.change_checkpoint(|cp| {
        let flags = get32(cp, 132) & !0x200 | 0x40;
        put32(cp, 132, flags);
    });
    let nodes = node(&editor);
    let chain = editor.write_chain(&nodes);
    assert_eq!(
        editor.image.build().expect("map").notices(),
        [recovered(1, 1)]
    );
    // With another checksum the nodes belong to another checkpoint.
    editor.change_checkpoint(|cp| cp[168] ^= 1);
    let other = editor.image.build().expect("map");
    assert_eq!(other.notices(), [""; 0]);
    assert_eq!(at(&other, chain[0]), (Kind::Free, 0, None));
    // With checkpoints disabled nothing is recovered.
    let nodes = node(&editor);
    editor.write_chain(&nodes);
    assert_eq!(
        editor.image.build().expect("map").notices(),
        [recovered(1, 1)]
    );
    editor.change_checkpoint(|cp| put32(cp, 132, 0x1200 | get32(cp, 132)));
    assert_eq!(editor.image.build().expect("map").notices(), [""; 0]);
}

/// If the kernel rejects a chain it mounts without it, so nothing is recovered.
fn a_bad_chain_counts_for_nothing() {
    let (editor, before) = editor("");
    let ino = inode_at(&before, b"/many") as u32;
    let dir = inode_at(&before, b"/dir") as u32;
    let same = |editor: &Editor| {
        vec![
            new(ino, ino, 0, FSYNC, editor.node(ino.into())),
            new(
                NEW_INO,
                NEW_INO,
                0,
                FSYNC | DENT,
                regular_inode(dir, b"fresh", &[]),
            ),
        ]
    };
    type Case<'a> = (&'a str, &'a dyn Fn(&mut Editor));
    let cases: [Case; 7] = [
        ("the chain of nodes bites its tail at block", &|editor| {
            let nodes = same(editor);
            let chain = editor.write_chain(&nodes);
            editor
                .image
                .change(chain[1].into(), |block| put32(block, 4092, chain[0]));
        }),
        ("an address outside the main area", &|editor| {
            let mut nodes = same(editor);
            put32(&mut nodes[0].block, 360, 17);
            editor.write_chain(&nodes);
        }),
        ("is marked as new, but the checkpoint has it", &|editor| {
            let mut nodes = same(editor);
            nodes[0].marks |= DENT;
            editor.write_chain(&nodes);
        }),
        ("its directory 888 does not exist", &|editor| {
            let mut nodes = same(editor);
            put32(&mut nodes[1].block, 84, 888);
            editor.write_chain(&nodes);
        }),
        ("not a direct node: offset 3", &|editor| {
            let mut nodes = same(editor);
            (nodes[1].nid, nodes[1].ofs) = (NEW_INO + 1, 3);
            editor.write_chain(&nodes);
        }),
        // An inode that has the number of another node, and a node that has an inode's.
        ("not a direct node: offset 0", &|editor| {
            let mut nodes = same(editor);
            nodes[1].nid = NEW_INO + 1;
            editor.write_chain(&nodes);
        }),
        ("not a direct node: offset 1", &|editor| {
            let mut nodes = same(editor);
            nodes[1].ofs = 1;
            editor.write_chain(&nodes);
        }),
    ];
    for (says, change) in cases {
        let mut editor = Editor {
            image: editor.image.clone(),
            dump: dump(&editor),
        };
        change(&mut editor);
        let after = editor.image.build().expect("map");
        let [notice] = after.notices() else {
            panic!("{says}: {:?}", after.notices());
        };
        assert!(notice.starts_with("what was written after the checkpoint is left out: "));
        assert!(notice.contains(says), "{notice}");
        assert_eq!(after.extents(), before.extents());
    }
    // A chain may end in any way: with a node of another version, or outside the disk.
    type Change<'a> = &'a dyn Fn(&mut [u8]);
    let end: [Change; 2] = [&|block| block[4084] ^= 1, &|block| put32(block, 4092, 5)];
    for (change, nodes) in end.into_iter().zip([1, 2]) {
        let mut editor = Editor {
            image: editor.image.clone(),
            dump: dump(&editor),
        };
        let list = same(&editor);
        let chain = editor.write_chain(&list);
        editor.image.change(chain[1].into(), change);
        assert_eq!(
            editor.image.build().expect("map").notices(),
            [recovered(nodes, nodes)]
        );
    }
}

fn dump(editor: &Editor) -> oracles::Dump {
    oracles::Dump {
        nat: editor.dump.nat.clone(),
        sit: editor.dump.sit.clone(),
        ssa: vec![],
        main_blkaddr: editor.dump.main_blkaddr,
    }
}
