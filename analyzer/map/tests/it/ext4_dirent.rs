// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory entry parser compared with blocks built here, and fed with random bytes.

use mostrace_map::fs::ext4::dirent::{Dirent, parse};
use proptest::prelude::*;

/// Builds one entry in the kernel's layout.
fn entry(inode: u32, name: &[u8], rec_len: usize) -> Vec<u8> {
    let mut bytes = inode.to_le_bytes().to_vec();
    bytes.extend(u16::try_from(rec_len).unwrap_or(0xffff).to_le_bytes());
    bytes.extend([name.len() as u8, 1]);
    bytes.extend(name);
    bytes.resize(rec_len, 0xee);
    bytes
}

/// Builds a block with these entries, of which the last reaches to the end.
fn block(size: usize, entries: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (nth, (inode, name)) in entries.iter().enumerate() {
        let least = (8 + name.len()).next_multiple_of(4);
        let last = nth + 1 == entries.len();
        let rec_len = if last { size - block.len() } else { least };
        block.extend(entry(*inode, name, rec_len));
    }
    block
}

type Entries = Vec<(u32, Vec<u8>)>;

fn collect(area: &[u8]) -> (Entries, Result<(), usize>) {
    let mut found = Vec::new();
    let end = parse(area, |Dirent { inode, name }| {
        found.push((inode, name.to_vec()))
    });
    (found, end)
}

proptest! {
    #![proptest_config(test_support::property::config(file!(), 256))]

    #[test]
    fn noise_ends(area in prop::collection::vec(any::<u8>(), 0..5000)) {
        let (found, end) = collect(&area);
        prop_assert!(found.len() <= area.len() / 8);
        prop_assert!(end.is_ok() || end.is_err_and(|at| at < area.len()));
    }

    #[test]
    fn noise_in_a_sound_block_ends(at in 0usize..4096, byte: u8) {
        let names: Vec<_> = (1..200).map(|n| (n, format!("name {n}").into_bytes())).collect();
        let mut area = block(4096, &names);
        area[at] = byte;
        let _ = collect(&area);
    }

    #[test]
    fn every_name_comes_back(
        names in prop::collection::vec((0u32..50, prop::collection::vec(any::<u8>(), 1..256)), 1..15),
    ) {
        let (found, end) = collect(&block(4096, &names));
        let dots = [&b"."[..], b".."];
        let expected: Vec<_> =
            names.into_iter().filter(|(inode, name)| *inode != 0 && !dots.contains(&&name[..])).collect();
        prop_assert_eq!(end, Ok(()));
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn htree_nodes_and_checksum_tails_name_nothing() {
    let node = entry(0, b"", 1024);
    assert_eq!(collect(&node), (vec![], Ok(())));
    let mut leaf = entry(12, b"a", 1024 - 12);
    let mut tail = entry(0, b"", 12);
    tail[7] = 0xde;
    leaf.extend(tail);
    assert_eq!(collect(&leaf), (vec![(12, b"a".to_vec())], Ok(())));
}

#[test]
fn what_stands_before_a_bad_entry_is_kept() {
    // The values are the second entry's rec_len and name_len in a block of 1024 bytes.
    for (rec_len, name_len) in [
        (0u16, 1u8),
        (4, 1),
        (8, 1),
        (13, 1),
        (1016, 1),
        (5000, 1),
        (0xffff, 1),
        (1012, 0),
        (16, 9),
    ] {
        let mut area = [entry(12, b"a", 12), entry(13, b"b", 1012)].concat();
        area[16..18].copy_from_slice(&rec_len.to_le_bytes());
        area[18] = name_len;
        assert_eq!(
            collect(&area),
            (vec![(12, b"a".to_vec())], Err(12)),
            "{rec_len}, {name_len}"
        );
    }
}

#[test]
fn a_64k_block_has_a_length_that_16_bits_cannot_hold() {
    for rec_len in [0u16, 0xffff] {
        let mut area = entry(12, b"a", 65536);
        area[4..6].copy_from_slice(&rec_len.to_le_bytes());
        assert_eq!(collect(&area), (vec![(12, b"a".to_vec())], Ok(())));
    }
}
