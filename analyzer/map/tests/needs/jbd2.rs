// SPDX-License-Identifier: MIT OR Apache-2.0
//! jbd2's log compared with debugfs: transactions that it wrote, and what its `logdump` prints.

use crate::ext4::images;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;

use images::{TOOLS, mke2fs, tool};
use mostrace_map::Map;
use mostrace_map::class::Kind;
use mostrace_map::fs::jbd2::Journal;
use mostrace_map::fs::{self, Image};
use proptest::prelude::*;
use test_support::{Suite, at_once, tests};

pub fn suite() -> Suite {
    at_once(tests![
        copies_are_where_debugfs_logs_them needs TOOLS,
        copies_that_were_overwritten_are_none needs TOOLS,
        contents_tell_what_a_freed_block_was needs TOOLS,
        damaged_logs_are_read_or_refused needs TOOLS,
    ])
}

/// Runs debugfs commands on an image and returns their output.
fn debugfs(image: &Path, commands: &str) -> String {
    let mut child = tool("debugfs")
        .args(["-w", "-f", "/dev/stdin"])
        .arg(image)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(commands.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the numbers in a line, in order.
fn numbers(line: &str) -> Vec<u64> {
    let words = line.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Returns the transaction, journal block and home of each copy that debugfs prints.
fn dumped(image: &Path) -> Vec<(u32, u64, u64)> {
    let mut tid = 0;
    let mut copies = Vec::new();
    for line in debugfs(image, "logdump -a\n").lines() {
        if line.starts_with("Dumping descriptor block") {
            tid = u32::try_from(numbers(line)[0]).unwrap();
        } else if line.starts_with("  FS block") {
            let [home, at, ..] = numbers(line)[..] else {
                panic!("{line}");
            };
            copies.push((tid, at, home));
        }
    }
    copies
}

/// Returns the same from our reader, for 4 KiB blocks.
fn read(map: &Map, journal: &Journal) -> Vec<(u32, u64, u64)> {
    let at = |sector| {
        let piece = map.pieces(sector, 1).next().unwrap();
        piece.file_offset.unwrap() / 4096
    };
    let copies = journal.copies();
    let mut copies: Vec<_> = copies
        .map(|(sector, copy)| (copy.tid, at(sector), copy.home_sector / 8))
        .collect();
    copies.sort_unstable();
    copies
}

fn opened(path: &Path) -> (Map, Journal) {
    let image = Image::open(path).unwrap();
    let map = fs::build(&image, 0).unwrap();
    let journal = Journal::read(&image, &map, 0).unwrap();
    (map, journal)
}

fn copies_are_where_debugfs_logs_them() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    // The second block begins with the magic number and so is escaped.
    let mut blocks = vec![7; 3 * 4096];
    blocks[4096..4100].copy_from_slice(&0xc03b_3998_u32.to_be_bytes());
    std::fs::write(&data, blocks).unwrap();
    let data = data.display();
    for (features, checksums) in [
        ("^metadata_csum,64bit", ""),
        ("^metadata_csum,^64bit", ""),
        ("^metadata_csum,64bit", "-c -v 2"),
        ("^metadata_csum,^64bit", "-c -v 2"),
        ("metadata_csum,64bit", "-c -v 3"),
        ("metadata_csum,^64bit", "-c -v 3"),
        ("metadata_csum,64bit,fast_commit", "-c"),
    ] {
        let image = dir.path().join("image");
        mke2fs(&image, &format!("-t ext4 -b 4096 -O {features}"), 64, None);
        debugfs(
            &image,
            &format!(
                "jo {checksums}\njw -b 333,4444,555 {data}\njw -r 444\njw -b 700-702 {data}\njc\n"
            ),
        );
        let (map, journal) = opened(&image);
        let found = read(&map, &journal);
        assert_eq!(found, dumped(&image), "{features} {checksums}");
        assert_eq!(found.len(), 6, "{features} {checksums}");
        assert_eq!((found[1].0, found[1].2), (1, 4444));
    }
}

/// The log has wrapped around, and the new transaction ends in the middle of an old one's copies.
fn copies_that_were_overwritten_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    mke2fs(&image, "-t ext4 -b 4096", 64, None);
    let data = dir.path().join("data");
    std::fs::write(&data, vec![7; 3 * 4096]).unwrap();
    debugfs(
        &image,
        &format!("jo\njw -b 333,444,555 {}\njc\n", data.display()),
    );
    let (map, journal) = opened(&image);
    assert_eq!(journal.copies().count(), 3);
    let (sector, _) = journal.copies().max_by_key(|(sector, _)| *sector).unwrap();
    let file = OpenOptions::new().write(true).open(&image).unwrap();
    // The block behind the copies belongs to another transaction, as if the copies had been overwritten up to it.
    let header = [0xc03b_3998_u32, 2, 99].map(u32::to_be_bytes).concat();
    file.write_all_at(&header, (sector + 8) * 512).unwrap();
    let image = Image::open(&image).unwrap();
    let journal = Journal::read(&image, &map, 0).unwrap();
    assert_eq!(journal.copies().count(), 0);
}

fn contents_tell_what_a_freed_block_was() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    mke2fs(&image, "-t ext4 -b 4096", 64, None);
    let mut blocks = vec![0; 5 * 4096];
    // eh_magic, eh_entries, eh_max
    blocks[..6].copy_from_slice(&[0x0a, 0xf3, 3, 0, 84, 1]);
    // An empty directory block with the entry for its checksum.
    blocks[2 * 4096 - 12..2 * 4096 - 4].copy_from_slice(&[0, 0, 0, 0, 12, 0, 0, 0xde]);
    blocks[2 * 4096..2 * 4096 + 10].copy_from_slice(&[11, 0, 0, 0, 12, 0, 1, 2, b'.', 0]);
    blocks[3 * 4096..3 * 4096 + 4].copy_from_slice(&[0, 0, 0x02, 0xea]);
    blocks[4 * 4096..].fill(0x55);
    let data = dir.path().join("data");
    std::fs::write(&data, blocks).unwrap();
    debugfs(
        &image,
        &format!("jo\njw -b 9000-9004 {}\njc\n", data.display()),
    );
    let (_, journal) = opened(&image);
    let mut kinds: Vec<_> = journal
        .copies()
        .map(|(_, copy)| (copy.home_sector / 8, copy.kind))
        .collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [
            (9000, Some(Kind::ExtentTree)),
            (9001, Some(Kind::Directory)),
            (9002, Some(Kind::Directory)),
            (9003, Some(Kind::Xattr)),
            (9004, None),
        ]
    );
}

fn damaged_logs_are_read_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    mke2fs(&path, "-t ext4 -b 4096", 16, None);
    let data = dir.path().join("data");
    std::fs::write(&data, vec![7; 20 * 4096]).unwrap();
    debugfs(
        &path,
        &format!("jo -c\njw -b 333-352 {}\njc\n", data.display()),
    );
    let image = Image::open(&path).unwrap();
    let map = fs::build(&image, 0).unwrap();
    let sound = std::fs::read(&path).unwrap();
    let journal = map
        .extents()
        .iter()
        .find(|e| e.kind == Kind::Jbd2Superblock);
    let from = usize::try_from(journal.unwrap().sector * 512).unwrap();
    let config = test_support::property::config(file!(), 200);
    let flips = prop::collection::vec((0usize..3 * 4096, any::<u8>()), 1..20);
    proptest::test_runner::TestRunner::new(config)
        .run(&flips, |flips| {
            let mut bytes = sound.clone();
            for (at, value) in flips {
                bytes[from + at] = value;
            }
            let len = u64::try_from(bytes.len()).unwrap();
            let image = Image::new(&path, len, bytes);
            if let Ok(journal) = Journal::read(&image, &map, 0) {
                prop_assert!(journal.copies().count() <= 8192);
            }
            Ok(())
        })
        .unwrap();
}
