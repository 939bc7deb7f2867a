// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of an aged f2fs with blocks of 16 KiB equals what the kernel reported for every file. The recording and the reports were
//! left by `tests/guest/phone/tests/f2fs-map.sh` on Debian's 6.12 for arm64 with pages of 16 KiB, because kernels with smaller pages cannot
//! mount such a filesystem.

use crate::run;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use run::{mostrace, program};

/// Length of a block in sectors.
const BLOCK: u64 = 32;

fn data(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/f2fs-16k");
    format!("{folder}/{name}")
}

fn lines(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(data(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A row of the map with an inode.
struct Row {
    sector: u64,
    sectors: u64,
    kind: String,
    inode: u64,
    offset: Option<u64>,
    path: String,
}

fn map() -> Vec<Row> {
    let csv = mostrace(&["map", &data("map.most.tar.zst"), "--format", "csv"]);
    let rows = csv.lines().skip(1).filter_map(|line| {
        let [sector, sectors, _, kind, inode, offset, path] =
            line.splitn(7, ',').collect::<Vec<_>>().try_into().unwrap();
        Some(Row {
            sector: sector.parse().unwrap(),
            sectors: sectors.parse().unwrap(),
            kind: kind.to_owned(),
            inode: inode.parse().ok()?,
            offset: offset.parse().ok(),
            path: path.trim_matches('"').to_owned(),
        })
    });
    rows.collect()
}

/// Each block of a file or directory: its first sector, the inode, and its place in the file.
type Blocks = BTreeSet<(u64, u64, u64)>;

fn blocks(
    sector: u64,
    sectors: u64,
    inode: u64,
    offset: u64,
) -> impl Iterator<Item = (u64, u64, u64)> {
    assert_eq!((sector % BLOCK, sectors % BLOCK), (0, 0));
    (0..sectors / BLOCK).map(move |nth| (sector + nth * BLOCK, inode, offset + nth * BLOCK * 512))
}

#[test]
fn it_is_what_the_kernel_says() {
    let rows = map();
    let mapped: Blocks = rows
        .iter()
        .filter(|row| ["regular", "directory"].contains(&row.kind.as_str()))
        .flat_map(|row| blocks(row.sector, row.sectors, row.inode, row.offset.unwrap()))
        .collect();
    // FIEMAP: sector, sectors, inode, offset.
    let told: Blocks = lines("fiemap.txt")
        .iter()
        .flat_map(|line| {
            let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
            blocks(numbers[0], numbers[1], numbers[2], numbers[3])
        })
        .collect();
    assert!(told.len() > 100, "{}", told.len());
    assert_eq!(mapped, told);

    // The names of each inode.
    let mut named: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for line in lines("files.txt") {
        let [inode, _, _, path] = line.splitn(4, ' ').collect::<Vec<_>>().try_into().unwrap();
        let of_inode = named.entry(inode.parse().unwrap()).or_default();
        of_inode.insert(path.to_owned());
    }
    let owners: BTreeSet<u64> = rows
        .iter()
        .filter(|row| row.kind != "quota" && !row.path.is_empty())
        .map(|row| row.inode)
        .collect();
    assert!(owners.iter().eq(named.keys()));
    for row in rows.iter().filter(|row| !row.path.is_empty()) {
        assert!(named[&row.inode].contains(&row.path), "{}", row.path);
    }

    // What is inside an inode is in a node of that inode.
    let nodes: BTreeSet<(u64, u64)> = rows
        .iter()
        .filter(|row| row.kind.ends_with("node"))
        .flat_map(|row| blocks(row.sector, row.sectors, row.inode, 0))
        .map(|(sector, inode, _)| (sector, inode))
        .collect();
    let inline = lines("inline.txt");
    assert!(inline.len() > 100, "{}", inline.len());
    for line in inline {
        let (sector, inode) = line.split_once(' ').unwrap();
        assert!(
            nodes.contains(&(sector.parse().unwrap(), inode.parse().unwrap())),
            "{line}"
        );
    }
}

/// The second superblock is in the second block, whose place only its own size tells.
#[test]
fn the_second_superblock_serves_if_the_first_is_gone() {
    let tmp = tempfile::tempdir().unwrap();
    let image = tmp.path().join("image");
    let empty = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/guest/phone/f2fs-16k.img.zst"
    );
    let file = File::create_new(&image).unwrap();
    zstd::stream::copy_decode(File::open(empty).unwrap(), &file).unwrap();
    let path = image.to_str().unwrap();
    let before = mostrace(&["map", path, "--format", "csv"]);
    assert!(before.contains(",hot_node,3,"), "{before}");
    file.write_all_at(&[0; 4096], 1024).unwrap();
    let output = program()
        .args(["map", path, "--format", "csv"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), before);
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "the first superblock is bad: ";
    assert!(said.contains(expected), "{said}");
    // With neither, nothing is known.
    file.write_all_at(&[0; 4096], 16384 + 1024).unwrap();
    let output = program().args(["map", path]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with(&format!("mostrace: {path}")), "{said}");
}
