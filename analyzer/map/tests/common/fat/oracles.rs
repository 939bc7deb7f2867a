// SPDX-License-Identifier: MIT OR Apache-2.0
//! What mtools, dosfstools and The Sleuth Kit report about a FAT image.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use super::images::{mtool, run, tool};

/// The layout that `fsstat` reports, in the filesystem's sectors except for the sizes.
#[derive(Debug)]
pub struct Layout {
    pub sector_size: u64,
    pub cluster_size: u64,
    pub total: RangeInclusive<u64>,
    pub reserved: RangeInclusive<u64>,
    pub fats: Vec<RangeInclusive<u64>>,
    pub data: RangeInclusive<u64>,
    /// FAT12 and FAT16 only.
    pub root: Option<RangeInclusive<u64>>,
    pub clusters: RangeInclusive<u64>,
    /// FAT32 only.
    pub fsinfo: Option<u64>,
    pub backup: Option<u64>,
    /// `FAT12`, `FAT16` or `FAT32`.
    pub kind: String,
}

impl Layout {
    pub fn new(image: &Path) -> Layout {
        let said = String::from_utf8_lossy(&run(tool("fsstat").arg(image))).into_owned();
        let value = |label: &str| {
            said.lines()
                .find_map(|line| line.trim_start_matches('*').trim().strip_prefix(label))
                .map(|rest| rest.trim_start_matches(':').trim().to_owned())
        };
        let number = |label: &str| value(label).and_then(|text| text.parse().ok());
        let range = |label: &str| {
            let (from, to) = value(label)?
                .split_once(" - ")
                .map(|(a, b)| (a.to_owned(), b.to_owned()))?;
            Some(from.parse().ok()?..=to.parse().ok()?)
        };
        let kind = value("File System Type:").expect("type");
        let root = range("Root Directory:").filter(|_| kind != "FAT32");
        Layout {
            sector_size: number("Sector Size:").expect("size"),
            cluster_size: number("Cluster Size:").expect("size"),
            total: range("Total Range:").expect("range"),
            reserved: range("Reserved:").expect("range"),
            fats: (0..8).map_while(|n| range(&format!("FAT {n}:"))).collect(),
            data: range("Data Area:").expect("range"),
            root,
            clusters: range("Cluster Area:").expect("range"),
            fsinfo: number("FS Info Sector:"),
            backup: number("Backup Boot Sector:"),
            kind,
        }
    }

    /// Converts The Sleuth Kit's inode number to Linux's. The Sleuth Kit counts entries from the data area on,
    /// including the root directory of FAT12 and FAT16, beginning with 3; its root is 2. Linux counts from the start of
    /// the filesystem (`i_pos`), and its root is 1.
    pub fn i_pos(&self, tsk: u64) -> u64 {
        match tsk {
            2 => 1,
            _ => self.data.start() * (self.sector_size / 32) + tsk - 3,
        }
    }

    pub fn cluster_of(&self, sector: u64) -> u64 {
        (sector - self.clusters.start()) * self.sector_size / self.cluster_size + 2
    }
}

/// A file or directory that fiwalk reports.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// The path, without the first `/`.
    pub path: String,
    pub inode: u64,
    pub parent: u64,
    pub deleted: bool,
    pub directory: bool,
    pub size: u64,
    /// Offset in the file, offset in the image, and length of each run, in bytes.
    pub runs: Vec<(u64, u64, u64)>,
}

/// Returns all that fiwalk finds except `.`, `..` and The Sleuth Kit's virtual files.
pub fn fiwalk(image: &Path) -> Vec<Object> {
    let said = run(tool("fiwalk").args(["-z", "-g", "-x"]).arg(image));
    let said = String::from_utf8(said).expect("UTF-8");
    let mut objects = Vec::new();
    let mut object = Object::default();
    let mut in_parent = false;
    for line in said.lines().map(str::trim) {
        let element = |tag: &str| {
            let rest = line.strip_prefix(&format!("<{tag}>"))?;
            rest.strip_suffix(&format!("</{tag}>"))
        };
        match line {
            "<fileobject>" => object = Object::default(),
            "<parent_object>" => in_parent = true,
            "</parent_object>" => in_parent = false,
            "</fileobject>" => objects.push(std::mem::take(&mut object)),
            "<unalloc>1</unalloc>" => object.deleted = true,
            "<name_type>d</name_type>" => object.directory = true,
            _ if line.starts_with("<byte_run ") => object.runs.push(byte_run(line)),
            _ => {}
        }
        if let Some(number) = element("inode") {
            let number = number.parse().expect("inode");
            match in_parent {
                true => object.parent = number,
                false => object.inode = number,
            }
        } else if let Some(path) = element("filename") {
            object.path = unescape(path);
        } else if let Some(size) = element("filesize") {
            object.size = size.parse().expect("size");
        }
    }
    objects.retain(|object| {
        let name = object.path.rsplit('/').next().unwrap_or("");
        !object.path.starts_with('$') && name != "." && name != ".."
    });
    objects
}

fn byte_run(line: &str) -> (u64, u64, u64) {
    let value = |name: &str| {
        let rest = line.split(&format!(" {name}='")).nth(1).expect("attribute");
        rest.split('\'')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("figures")
    };
    (value("file_offset"), value("img_offset"), value("len"))
}

fn unescape(text: &str) -> String {
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&apos;", "'"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Returns the sectors of an inode that istat prints.
pub fn istat(image: &Path, inode: u64) -> Vec<u64> {
    let said = run(tool("istat").arg(image).arg(inode.to_string()));
    let said = String::from_utf8_lossy(&said).into_owned();
    let (_, sectors) = said.split_once("\nSectors:\n").expect("sectors");
    sectors
        .split_whitespace()
        .map(|n| n.parse().expect("sector"))
        .collect()
}

/// Returns the inode that owns a sector, as ifind reports it.
pub fn ifind(image: &Path, sector: u64) -> Option<u64> {
    let output = tool("ifind")
        .args(["-d", &sector.to_string()])
        .arg(image)
        .output();
    let said = output.expect("ifind").stdout;
    String::from_utf8_lossy(&said).trim().parse().ok()
}

/// Returns the paths that mdir lists, without the first `/`; directories have a last one.
pub fn mdir(image: &Path) -> Vec<String> {
    let said = mtool(
        "mdir",
        image,
        &["-/".into(), "-a".into(), "-b".into(), "::/".into()],
    );
    let said = String::from_utf8(said).expect("UTF-8");
    let path = |line: &str| line.strip_prefix("::/").map(str::to_owned);
    said.lines().filter_map(path).collect()
}

/// Returns the clusters of files and directories, in order, as mshowfat prints them.
pub fn mshowfat(image: &Path, paths: &[String]) -> BTreeMap<String, Vec<u64>> {
    let paths: Vec<String> = paths.iter().map(|path| format!("::/{path}")).collect();
    let said = String::from_utf8(mtool("mshowfat", image, &paths)).expect("UTF-8");
    let mut clusters = BTreeMap::new();
    for line in said.lines().filter(|line| !line.is_empty()) {
        let (path, runs) = match line.split_once(" <") {
            Some((path, runs)) => (path, runs),
            None => (line.split(" Root directory").next().expect("path"), ""),
        };
        let path = path.strip_prefix("::/").expect("path").to_owned();
        let numbers = runs.split(['<', '>', ' ']).filter(|run| !run.is_empty());
        let numbers = numbers.flat_map(|run| {
            let (from, to) = run.split_once('-').unwrap_or((run, run));
            from.parse::<u64>().expect("cluster")..=to.parse().expect("cluster")
        });
        clusters.insert(path, numbers.collect());
    }
    clusters
}

/// Returns the number of clusters in use and of all clusters, as fsck.vfat counts them in a sound filesystem.
pub fn fsck(image: &Path) -> (u64, u64) {
    let said = run(tool("fsck.vfat").arg("-n").arg(image));
    let said = String::from_utf8_lossy(&said).into_owned();
    let counts = said.lines().find_map(|line| {
        let (_, counts) = line.strip_suffix(" clusters")?.split_once(" files, ")?;
        let (used, all) = counts.split_once('/')?;
        Some((used.parse().ok()?, all.parse().ok()?))
    });
    counts.unwrap_or_else(|| panic!("fsck.vfat: {said}"))
}
