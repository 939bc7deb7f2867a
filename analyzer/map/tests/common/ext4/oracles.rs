// SPDX-License-Identifier: MIT OR Apache-2.0
//! What other tools report about an image: debugfs's icheck, testb and ncheck, dumpe2fs, FIEMAP.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mostrace_map::class::Kind;

use super::images::{Seen, run, tool};

/// Runs debugfs with these requests, one per line; each must be shorter than 8 KiB, where it cuts lines.
fn debugfs(image: &Path, requests: impl Iterator<Item = String>) -> Vec<u8> {
    let file = image.with_extension("requests");
    let requests: Vec<String> = requests.collect();
    assert!(requests.iter().all(|request| request.len() < 8000));
    fs::write(&file, requests.join("\n")).expect("requests");
    run(tool("debugfs").arg("-f").arg(&file).arg(image))
}

fn join(numbers: &[u64]) -> String {
    numbers
        .iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the owning inode of each block below `blocks`; 0 for none.
pub fn icheck(image: &Path, blocks: u64) -> Vec<u64> {
    let all: Vec<u64> = (0..blocks).collect();
    let out = debugfs(
        image,
        all.chunks(900).map(|some| format!("icheck {}", join(some))),
    );
    let out = String::from_utf8(out).expect("numbers");
    let mut owners = BTreeMap::new();
    for (block, owner) in out.lines().filter_map(|line| line.split_once('\t')) {
        if let Ok(block) = block.parse::<u64>() {
            owners.insert(block, owner.parse().unwrap_or(0));
        }
    }
    assert!(
        owners.keys().copied().eq(0..blocks),
        "icheck left blocks out"
    );
    owners.into_values().collect()
}

/// Returns for each block below `blocks` whether it is in use. Block 0 cannot be queried.
pub fn testb(image: &Path, blocks: u64) -> Vec<bool> {
    let out = debugfs(image, std::iter::once(format!("testb 1 {}", blocks - 1)));
    let out = String::from_utf8(out).expect("numbers");
    let answers = out.lines().filter(|line| line.starts_with("Block "));
    let in_use: Vec<bool> = std::iter::once(true)
        .chain(answers.map(|line| line.ends_with("marked in use")))
        .collect();
    assert_eq!(in_use.len() as u64, blocks);
    in_use
}

/// Returns ncheck's whole output for these inodes, without headers and echoed requests.
pub fn ncheck(image: &Path, inodes: &[u64]) -> Vec<u8> {
    let requests: Vec<_> = inodes
        .chunks(900)
        .map(|some| format!("ncheck {}", join(some)))
        .collect();
    let mut out = debugfs(image, requests.iter().cloned());
    for request in requests {
        let header = format!("debugfs: {request}\nInode\tPathname\n");
        let at = find(&out, header.as_bytes()).expect("header");
        out.drain(at..at + header.len());
    }
    out
}

/// Returns the offset of a byte string in another.
pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The superblock and groups as dumpe2fs prints them.
pub struct Dump(String);

impl Dump {
    pub fn new(image: &Path) -> Dump {
        Dump(String::from_utf8_lossy(&run(tool("dumpe2fs").arg(image))).into_owned())
    }

    /// Returns a number of the header by its title.
    pub fn number(&self, title: &str) -> Option<u64> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(title))?;
        line.trim().parse().ok()
    }

    /// Returns the kind of every block of the groups' own metadata. The blocks reserved for descriptors belong to the
    /// resize inode if there is one, otherwise to the group.
    pub fn layout(&self) -> BTreeMap<u64, Kind> {
        let mut kinds = BTreeMap::new();
        for (title, kind) in [
            ("superblock at ", Kind::Superblock),
            ("Group descriptors at ", Kind::GroupDesc),
            ("Group descriptor at ", Kind::GroupDesc),
            ("Reserved GDT blocks at ", Kind::GroupDesc),
            ("Block bitmap at ", Kind::BlockBitmap),
            ("Inode bitmap at ", Kind::InodeBitmap),
            ("Inode table at ", Kind::InodeTable),
            ("MMP block number:", Kind::Mmp),
        ] {
            for (at, _) in self.0.match_indices(title) {
                let rest = self.0[at + title.len()..].trim_start();
                let end = rest
                    .find(|c: char| !c.is_ascii_digit() && c != '-')
                    .unwrap_or(0);
                let (first, last) = rest[..end]
                    .split_once('-')
                    .unwrap_or((&rest[..end], &rest[..end]));
                let number = |text: &str| text.parse::<u64>().expect("block number");
                kinds.extend((number(first)..=number(last)).map(|block| (block, kind)));
            }
        }
        kinds
    }
}

/// Returns the blocks of files and directories as the kernel reports them (FIEMAP): for each inode its blocks, with
/// their offset in the file in blocks. Data inside the inode is left out.
pub fn fiemap(seen: &[Seen], block_size: u64) -> BTreeMap<u64, BTreeMap<u64, u64>> {
    let openable = |seen: &&Seen| seen.file_type.is_file() || seen.file_type.is_dir();
    let seen: Vec<&Seen> = seen.iter().filter(openable).collect();
    let mut maps = BTreeMap::new();
    for some in seen.chunks(100) {
        let paths: Vec<&PathBuf> = some.iter().map(|seen| &seen.on_host).collect();
        let out = run(tool("filefrag")
            .arg("-e")
            .arg(format!("-b{block_size}"))
            .arg("--")
            .args(&paths));
        let header =
            |path: &Path| [b"File size of ", path.as_os_str().as_bytes(), b" is "].concat();
        let sections: Vec<usize> = paths
            .iter()
            .map(|path| find(&out, &header(path)).unwrap_or(usize::MAX))
            .collect();
        for (seen, &at) in some.iter().zip(&sections) {
            if at == usize::MAX {
                maps.insert(seen.inode, BTreeMap::new());
                continue;
            }
            let end = sections
                .iter()
                .copied()
                .filter(|&other| other > at && other != usize::MAX);
            let section = &out[at..end.min().unwrap_or(out.len())];
            maps.insert(seen.inode, extents(&String::from_utf8_lossy(section)));
        }
    }
    maps
}

/// Parses rows such as `   0:    0..     3:     4247..    4250:    4:       last,eof`.
fn extents(section: &str) -> BTreeMap<u64, u64> {
    let mut blocks = BTreeMap::new();
    let is_row = |line: &&str| {
        line.contains("..") && line.trim_start().starts_with(|c: char| c.is_ascii_digit())
    };
    for row in section
        .lines()
        .skip_while(|line| !line.starts_with(" ext:"))
        .filter(is_row)
    {
        if row.contains("inline") {
            continue;
        }
        let cells: Vec<&str> = row.split(':').collect();
        let first = |cell: &str| {
            cell.split("..")
                .next()
                .and_then(|n| n.trim().parse::<u64>().ok())
        };
        let (logical, block) = (first(cells[1]).expect(row), first(cells[2]).expect(row));
        let length: u64 = cells[3].trim().parse().expect(row);
        blocks.extend((0..length).map(|n| (block + n, logical + n)));
    }
    blocks
}

/// Runs `e2image -r`, which saves the metadata alone, as a capture does.
pub fn e2image(from: &Path, to: &Path) {
    run(tool("e2image").args(["-r", "-f"]).arg(from).arg(to));
}

/// Returns the output of `e2fsck -n` on an image, without the image's name.
pub fn e2fsck(image: &Path) -> String {
    let out = tool("e2fsck").arg("-fn").arg(image).output();
    let said = String::from_utf8_lossy(&out.expect("e2fsck").stdout).into_owned();
    said.replace(&image.display().to_string(), "IMAGE")
}

/// Runs a request of debugfs and returns what it printed.
pub fn ask(image: &Path, request: &str) -> String {
    String::from_utf8_lossy(&run(tool("debugfs").args(["-R", request]).arg(image))).into_owned()
}

/// Returns the inode of a path, found with `stat`.
pub fn inode_of(image: &Path, path: &str) -> u64 {
    let said = ask(image, &format!("stat {path}"));
    let number = said
        .strip_prefix("Inode: ")
        .and_then(|rest| rest.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{path}: {said}"))
}
