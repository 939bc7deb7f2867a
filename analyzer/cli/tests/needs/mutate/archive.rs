// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes to a bundle's archive: its bytes, or the headers of its members.

use std::fs;
use std::path::Path;

use super::number;
use super::random::Random;
use super::{bytes, hostile};

const BLOCK: usize = 512;
/// Fields of a header: offset and length.
const NAME: (usize, usize) = (0, 100);
const SIZE: (usize, usize) = (124, 12);
const CHECKSUM: (usize, usize) = (148, 8);
const KIND: usize = 156;
/// Types of members: files, links, devices, folders, long names, PAX headers, sparse files.
const KINDS: &[u8] = b"0127345LKxgSV\0";

/// Packs the folder and changes the archive.
pub fn pack(random: &mut Random, folder: &Path, to: &Path) {
    mostrace_bundle::archive::pack(folder, to).unwrap();
    let mut file = fs::read(to).unwrap();
    match random.below(4) {
        0 => {}
        1 => bytes::change(random, &mut file),
        _ => {
            let mut tar = zstd::decode_all(&file[..]).unwrap();
            change(random, &mut tar);
            file = zstd::encode_all(&tar[..], 1).unwrap();
        }
    }
    fs::write(to, file).unwrap();
}

fn change(random: &mut Random, tar: &mut [u8]) {
    let headers = headers(tar);
    let nth = random.below(headers.len() as u64) as usize;
    let header = &mut tar[headers[nth]..][..BLOCK];
    match random.below(4) {
        0 => header[KIND] = KINDS[random.below(KINDS.len() as u64) as usize],
        1 => put(header, NAME, &hostile::name(random)),
        2 => put(
            header,
            SIZE,
            format!("{:011o}", number::extreme(random) & 0o77_777_777_777).as_bytes(),
        ),
        _ => {
            // Numbers with more digits are stored in base 256.
            put(
                header,
                SIZE,
                &[&[0x80, 0, 0, 0][..], &number::extreme(random).to_be_bytes()].concat(),
            );
        }
    }
    mend(header);
}

/// Returns the offsets of the headers.
fn headers(tar: &[u8]) -> Vec<usize> {
    let mut headers = vec![0];
    let mut at = 0;
    while let Some(header) = tar.get(at..at + BLOCK).filter(|header| header[0] != 0) {
        headers.push(at);
        let size = std::str::from_utf8(&header[SIZE.0..SIZE.0 + SIZE.1 - 1]).unwrap();
        at += BLOCK
            + usize::from_str_radix(size, 8)
                .unwrap()
                .next_multiple_of(BLOCK);
    }
    headers
}

fn put(header: &mut [u8], (at, length): (usize, usize), bytes: &[u8]) {
    let field = &mut header[at..at + length];
    field.fill(0);
    let length = bytes.len().min(length);
    field[..length].copy_from_slice(&bytes[..length]);
}

fn mend(header: &mut [u8]) {
    put(header, CHECKSUM, b"        ");
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    put(header, CHECKSUM, format!("{sum:06o}\0 ").as_bytes());
}
