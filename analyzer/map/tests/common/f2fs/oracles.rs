// SPDX-License-Identifier: MIT OR Apache-2.0
//! What f2fs-tools report about an image: NAT, SIT and SSA from dump.f2fs, counts from fsck.f2fs.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use mostrace_map::Map;
use mostrace_map::class::Kind;

use super::images::{run, tool};

/// A line of `dump.f2fs -n`.
#[derive(Clone, Copy, Debug)]
pub struct Nat {
    pub ino: u64,
    pub ofs: u64,
    pub blkaddr: u64,
}

/// The output of one run of dump.f2fs.
pub struct Dump {
    /// NAT entries by nid.
    pub nat: BTreeMap<u64, Nat>,
    /// For each segment its count of valid blocks, and its bits in block order.
    pub sit: Vec<(u64, Vec<bool>)>,
    /// The nid of each block of the main area; 0 for none.
    pub ssa: Vec<u64>,
    pub main_blkaddr: u64,
}

impl Dump {
    pub fn of(image: &Path) -> Dump {
        let dir = tempfile::tempdir().expect("scratch folder");
        let all = ["-n", "0~-1", "-s", "0~-1", "-a", "0~-1"];
        run(tool("dump.f2fs")
            .args(all)
            .arg(image)
            .current_dir(dir.path()));
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("dump");
        let ssa = read("dump_ssa");
        let main = ssa.split_once("blkaddr = 0x").expect("note").1;
        let main = main.split_whitespace().next().expect("main");
        Dump {
            nat: read("dump_nat").lines().map(nat).collect(),
            sit: read("dump_sit").split("segno:").skip(1).map(sit).collect(),
            ssa: cells(&ssa),
            main_blkaddr: u64::from_str_radix(main, 16).expect("hex"),
        }
    }
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or_else(|_| panic!("{text}"))
}

/// Parses a line whose fields are separated by tabs: `nid:  3`, `ino:  3`, `offset:  0`, `blkaddr:    4096`, `pack:1`.
fn nat(line: &str) -> (u64, Nat) {
    let fields: Vec<u64> = line
        .split('\t')
        .map(|field| number(field.split_once(':').expect("field").1))
        .collect();
    let &[nid, ino, ofs, blkaddr, _] = &fields[..] else {
        panic!("{line}");
    };
    (nid, Nat { ino, ofs, blkaddr })
}

/// Parses a segment, whose fields are separated by tabs: `     0`, `vblocks:  5`, `seg_type:3`, `sit_pack:1`; then 64
/// bytes in hex, if there are any valid blocks.
fn sit(text: &str) -> (u64, Vec<bool>) {
    let (head, map) = text.split_once("\n\n").expect("segment");
    let vblocks = head.split("vblocks:").nth(1).expect("count");
    let vblocks = number(vblocks.split('\t').next().expect("count"));
    let map = map.split("valid_blocks").next().expect("map");
    let bytes = map
        .split_whitespace()
        .map(|hex| u8::from_str_radix(hex, 16).expect("hex"));
    let bits = bytes.flat_map(|byte| (0..8).map(move |bit| byte << bit & 0x80 != 0));
    let mut bits: Vec<bool> = bits.collect();
    bits.resize(512, false);
    (vblocks, bits)
}

/// Parses `[  0:    3][  1:    4]…`, with nids in hex.
fn cells(ssa: &str) -> Vec<u64> {
    let cells = ssa.split('[').skip(1).map(|cell| {
        let nid = cell.split_once(':').expect("cell").1;
        let nid = nid.split_once(']').expect("cell").0;
        u64::from_str_radix(nid.trim(), 16).expect("nid")
    });
    cells.collect()
}

/// Returns true for the offset of a direct node, numbered as in the kernel's comment at `IS_DNODE`.
pub fn is_direct(ofs: u64) -> bool {
    const N: u64 = 1018;
    let below = 6 + 2 * N;
    let above = [3, 4 + N, 5 + 2 * N].contains(&ofs);
    !above
        && (ofs < below || ofs == u64::from(u32::MAX >> 3) || !(ofs - below).is_multiple_of(N + 1))
}

/// Compares a map with NAT, SIT and SSA, block for block. Returns the number of data blocks that were compared.
pub fn compare(image: &Path, map: &Map) -> usize {
    let dump = Dump::of(image);
    let mut data = 0;
    let mut nodes: HashMap<u64, u64> = HashMap::new();
    for (nid, node) in &dump.nat {
        if node.blkaddr >= dump.main_blkaddr {
            nodes.insert(node.blkaddr, *nid);
        }
    }
    assert!(!nodes.is_empty());
    assert_eq!(dump.ssa.len(), dump.sit.len() * 512);
    for (segno, (vblocks, bits)) in dump.sit.iter().enumerate() {
        let used = bits.iter().filter(|bit| **bit).count() as u64;
        assert_eq!(used, *vblocks, "segment {segno}");
        for (nth, &is_used) in bits.iter().enumerate() {
            let n = segno * 512 + nth;
            let blkaddr = dump.main_blkaddr + n as u64;
            let pieces: Vec<_> = map.pieces(blkaddr * 8, 8).collect();
            let [piece] = pieces[..] else {
                panic!("block {blkaddr}: {pieces:?}");
            };
            let at = format!("block {blkaddr}: {piece:?}");
            if !is_used {
                assert_eq!(piece.kind, Kind::Free, "{at}");
                continue;
            }
            let nid = dump.ssa[n];
            let node = dump
                .nat
                .get(&nid)
                .unwrap_or_else(|| panic!("{at}: nid {nid}"));
            assert_eq!(piece.inode, node.ino, "{at}");
            let is_node = nodes.get(&blkaddr) == Some(&nid);
            let is_cold = is_node && !is_direct(node.ofs);
            use Kind::*;
            match piece.kind {
                HotNode | WarmNode | FsyncNode => assert!(is_node && !is_cold, "{at}"),
                ColdNode => assert!(is_cold, "{at}"),
                Regular | Directory | Symlink | Quota => {
                    assert!(!is_node && piece.file_offset.is_some(), "{at}");
                    data += 1;
                }
                _ => panic!("{at}"),
            }
            assert_eq!(piece.file_offset.is_none(), is_node, "{at}");
        }
    }
    data
}

/// Returns the inode of a data block and the block's number in the file (`dump.f2fs -b`). The number is None if the
/// address is in a direct node: f2fs-tools 1.15 takes that node for an inode and computes a wrong number.
pub fn owner(image: &Path, blkaddr: u64) -> (u64, Option<u64>) {
    let said = run(tool("dump.f2fs")
        .args(["-b", &format!("{blkaddr:#x}")])
        .arg(image));
    let hex = |label: &str| {
        let value = said.split(label).nth(1).unwrap_or_else(|| panic!("{said}"));
        let value = value
            .trim_start_matches([' ', ':'])
            .trim_start_matches("id = ");
        let end = value
            .find(|c: char| !c.is_ascii_hexdigit() && c != 'x')
            .expect("end");
        u64::from_str_radix(value[..end].trim_start_matches("0x"), 16).expect("hex")
    };
    let inode = hex("Inode block");
    let is_in_inode = hex("Direct node block") == inode;
    (inode, is_in_inode.then(|| hex("Data offset")))
}

/// Returns a count printed by `fsck.f2fs --dry-run`, in hex behind the line's text.
pub fn fsck_count(image: &Path, line: &str) -> u64 {
    let out = tool("fsck.f2fs")
        .arg("--dry-run")
        .arg(image)
        .output()
        .expect("fsck.f2fs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let found = said
        .lines()
        .find(|l| l.contains(line))
        .unwrap_or_else(|| panic!("{said}"));
    let value = found
        .rsplit("[0x")
        .next()
        .expect("value")
        .trim_end_matches(']');
    u64::from_str_radix(value, 16).expect("hex")
}
