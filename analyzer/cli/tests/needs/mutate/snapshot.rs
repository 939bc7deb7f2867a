// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes to the snapshot: its runs, and the filesystem's structures within.

use std::ops::Range;

use super::bytes;
use super::number::{self, Place};
use super::random::Random;

/// Length of magic number and size before the runs; a run has offset and length.
const HEADER: usize = 16;
const RUN: usize = 16;
/// Offset in ext4's superblock of the features that a reader must check, and the bit of metadata checksums.
const RO_COMPAT: usize = 1024 + 0x64;
const METADATA_CSUM: u64 = 0x400;
const EXT4_MAGIC: usize = 1024 + 0x38;
/// Superblocks and boot records lie within this many bytes.
const FIRST: usize = 8192;

/// Makes one or several changes to the unpacked contents; a file that cannot be unpacked is changed directly.
pub fn change(random: &mut Random, file: &mut Vec<u8>) {
    let Ok(mut image) = zstd::decode_all(&file[..]) else {
        return bytes::change(random, file);
    };
    if random.one_in(10) {
        return bytes::change(random, file);
    }
    let runs = runs(&image);
    without_checksums(&mut image, runs.first());
    for _ in 0..=random.below(6) {
        change_image(random, &mut image, &runs);
    }
    *file = zstd::encode_all(&image[..], 1).unwrap();
}

/// Returns where the contents of the runs lie.
fn runs(image: &[u8]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut at = HEADER;
    while let Some(length) = image.get(at..).and_then(|rest| Place::at(8, 8).get(rest)) {
        let run = at + RUN..(at + RUN).saturating_add(length as usize);
        if length == 0 || run.end > image.len() {
            break;
        }
        at = run.end;
        runs.push(run);
    }
    runs
}

/// Clears the checksum feature: with it ext4's walker rejects changed blocks, without it their contents are read.
fn without_checksums(image: &mut [u8], first: Option<&Range<usize>>) {
    let Some(blocks) = first.and_then(|run| image.get_mut(run.clone())) else {
        return;
    };
    let features = Place::at(RO_COMPAT, 4);
    if let (Some(0xef53), Some(was)) = (Place::at(EXT4_MAGIC, 2).get(blocks), features.get(blocks))
    {
        features.put(blocks, was & !METADATA_CSUM);
    }
}

fn change_image(random: &mut Random, image: &mut [u8], runs: &[Range<usize>]) {
    let some = |random: &mut Random| runs[random.below(runs.len() as u64) as usize].clone();
    if runs.is_empty() || random.one_in(12) {
        return put(random, &mut image[..HEADER]);
    }
    let run = some(random);
    match random.below(10) {
        0 => put(random, &mut image[run.start - RUN..run.start]),
        1 => {
            let from = some(random);
            let length = run.len().min(from.len());
            image.copy_within(from.start..from.start + length, run.start);
        }
        2 => image[run].fill([0, 0xff][random.below(2) as usize]),
        3 | 4 => {
            let first = &runs[0];
            let end = first.end.min(first.start + FIRST);
            put(random, &mut image[first.start..end]);
        }
        _ => put(random, &mut image[run]),
    }
}

fn put(random: &mut Random, within: &mut [u8]) {
    if let Some(place) = Place::within(random, within.len()) {
        let was = place.get(within).unwrap_or(0);
        place.put(within, number::other(random, was));
    }
}
