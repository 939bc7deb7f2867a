// SPDX-License-Identifier: MIT OR Apache-2.0
//! f2fs images made by mkfs.f2fs and sload.f2fs. Each block of a file holds the file's path and the block's number.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use mostrace_map::Map;
use mostrace_map::fs::{Image, ReadAt, Result, f2fs};
use test_support::Need;
pub use test_support::tool::{command as tool, text as run};

/// The tools that make the images and check the maps.
pub const TOOLS: [Need; 4] = [
    Need::Tool("mkfs.f2fs", "f2fs-tools"),
    Need::Tool("sload.f2fs", "f2fs-tools"),
    Need::Tool("dump.f2fs", "f2fs-tools"),
    Need::Tool("fsck.f2fs", "f2fs-tools"),
];

pub const BLOCK: usize = 4096;

/// Options of mkfs.f2fs for all features that it supports.
pub const ALL_FEATURES: &str = "-O extra_attr,inode_checksum,sb_checksum,inode_crtime,compression,\
    quota,project_quota,casefold,flexible_inline_xattr,lost_found,verity,encrypt -C utf8";

/// Makes an empty filesystem of this many megabytes; `options` are passed to mkfs.f2fs.
pub fn mkfs(image: &Path, megabytes: u64, options: &str) {
    let file = File::create(image).expect("image");
    file.set_len(megabytes << 20).expect("size");
    let options = options.split_whitespace();
    run(tool("mkfs.f2fs")
        .args(["-q", "-f"])
        .args(options)
        .arg(image));
}

/// Copies a tree into the filesystem; `options` are passed to sload.f2fs.
pub fn sload(image: &Path, tree: &Path, options: &str) {
    let options = options.split_whitespace();
    // It exits with 1 if its last check corrects something.
    let out = tool("sload.f2fs")
        .args(options)
        .arg("-f")
        .args([tree, image])
        .output()
        .expect("sload.f2fs");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("Done"), "{text}");
}

/// Makes a filesystem and loads a tree made by `fill` into it.
pub fn filled(dir: &Path, megabytes: u64, options: &str, fill: impl FnOnce(&Path)) -> PathBuf {
    let (image, tree) = (dir.join("image"), dir.join("tree"));
    fs::create_dir(&tree).expect("tree");
    fill(&tree);
    mkfs(&image, megabytes, options);
    sload(&image, &tree, "");
    image
}

/// Writes a file of this many blocks, each beginning with the file's path in the tree and the block's number.
pub fn marked(tree: &Path, name: impl AsRef<Path>, blocks: usize) {
    let name = name.as_ref();
    let mut bytes = Vec::with_capacity(blocks * BLOCK);
    for nth in 0..blocks {
        bytes.extend(mark(name.as_os_str().as_bytes(), nth));
    }
    let path = tree.join(name);
    fs::create_dir_all(path.parent().expect("folder")).expect("folder");
    fs::write(path, bytes).expect("file");
}

/// Returns the contents of a file's `nth` block.
pub fn mark(name: &[u8], nth: usize) -> Vec<u8> {
    let mut block = b"MARK /".to_vec();
    block.extend(name);
    block.extend(format!("\0{nth}\0").bytes());
    block.resize(BLOCK, 0x5a);
    block
}

/// Returns the path and the number in a block made by [`mark`].
pub fn marked_as(block: &[u8]) -> Option<(Vec<u8>, u64)> {
    let mut parts = block.strip_prefix(b"MARK ")?.split(|byte| *byte == 0);
    let name = parts.next()?.to_vec();
    let nth = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    Some((name, nth))
}

/// Writes a few small files.
pub fn fill_little(tree: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(tree.join(name), bytes).expect("file");
    write("empty", b"");
    write("inline", &[b'i'; 100]);
    for (name, blocks) in [("one", 1), ("two", 2), ("many", 40), ("dir/direct", 930)] {
        marked(tree, name, blocks);
    }
    symlink("one", tree.join("short_link")).expect("link");
    symlink("l".repeat(3900), tree.join("long_link")).expect("link");
    fs::hard_link(tree.join("many"), tree.join("dir/hard link to many")).expect("link");
}

/// Writes every kind of file that sload.f2fs supports.
pub fn fill(tree: &Path) {
    fill_little(tree);
    for (name, blocks) in [
        // A file that just fits into the inode's addresses and one block more; one that needs the first indirect node
        // and its second child.
        ("edge", 923 - 50 - 9),
        ("indirect", 923 + 2 * 1018 + 1100),
    ] {
        marked(tree, name, blocks);
    }
    let sparse = File::create(tree.join("sparse")).expect("file");
    for nth in [3, 700, 1500, 2500] {
        let at = u64::try_from(nth * BLOCK).expect("offset");
        sparse
            .write_all_at(&mark(b"sparse", nth), at)
            .expect("write");
    }
    let mut deep = PathBuf::from("deep");
    for level in 0..20 {
        deep.push(format!("level_{level}"));
    }
    marked(tree, deep.join("bottom"), 3);
    for n in 0..600 {
        marked(tree, format!("dir/a file in a directory, {n}"), n % 3);
    }
    let name = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    marked(tree, Path::new("names").join(name(&[b'n'; 255])), 2);
    marked(
        tree,
        Path::new("names").join(name(b"\xff\xfe not UTF-8 \x80")),
        2,
    );
    marked(
        tree,
        Path::new("names").join(name(b"new\nline, and a \\ backslash")),
        2,
    );
    fs::create_dir(tree.join("empty_dir")).expect("folder");
}

/// Builds the map of an image file that begins at sector 0.
pub fn map(image: &Path) -> Map {
    f2fs::build(&Image::open(image).expect("open"), 0).expect("map")
}

/// A scratch folder.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("scratch folder")
}

/// Builds a map, which must have no notices and cover the whole filesystem.
pub fn sound_map(image: &Path) -> Map {
    let map = map(image);
    assert_eq!(map.notices(), [""; 0]);
    assert!(
        map.extents()
            .windows(2)
            .all(|pair| pair[0].end() == pair[1].sector)
    );
    let end = map.extents().last().expect("extent").end();
    assert_eq!(end * 512, fs::metadata(image).expect("image").len());
    map
}

/// Returns true if the map covers the filesystem, without gaps or overlaps.
pub fn conserves(map: &Map, bytes: u64) -> bool {
    let extents = map.extents();
    extents.first().is_some_and(|first| first.sector == 0)
        && extents
            .windows(2)
            .all(|pair| pair[0].end() == pair[1].sector)
        && extents.last().is_some_and(|last| last.end() * 512 <= bytes)
        && extents
            .iter()
            .all(|e| e.sectors > 0 && e.sector % 8 == 0 && e.sectors % 8 == 0)
}

/// Returns the first inode with this path.
pub fn inode_at(map: &Map, path: &[u8]) -> u64 {
    let mut inodes = map.extents().iter().map(|extent| extent.inode);
    inodes
        .find(|&inode| map.paths(inode).iter().any(|p| p == path))
        .expect("inode")
}

/// Returns an error's text without the image's name.
pub fn line(image: &Sparse, error: &mostrace_map::fs::Error) -> String {
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    line.strip_prefix(&format!("{}: ", image.path.display()))
        .expect("the file's name")
        .to_owned()
}

/// An image in memory: the blocks that are not zeros, and changed blocks that hide them.
#[derive(Clone, Default)]
pub struct Sparse {
    blocks: std::sync::Arc<std::collections::HashMap<u64, Box<[u8]>>>,
    pub over: std::collections::BTreeMap<u64, Box<[u8]>>,
    pub bytes: u64,
    pub path: PathBuf,
    /// Number of bytes that were read from it and its clones.
    read: std::sync::Arc<AtomicU64>,
}

impl Sparse {
    pub fn load(path: &Path) -> Sparse {
        let file = File::open(path).expect("image");
        let bytes = file.metadata().expect("length").len();
        let mut blocks = std::collections::HashMap::new();
        let mut block = [0; BLOCK];
        for nth in 0..bytes / BLOCK as u64 {
            FileExt::read_exact_at(&file, &mut block, nth * BLOCK as u64).expect("read");
            if block != [0; BLOCK] {
                blocks.insert(nth, block.into());
            }
        }
        let (blocks, path) = (blocks.into(), path.to_owned());
        Sparse {
            blocks,
            over: Default::default(),
            bytes,
            path,
            read: Default::default(),
        }
    }

    /// Returns a block with its changes.
    pub fn block(&self, nth: u64) -> Vec<u8> {
        let here = self.over.get(&nth).or_else(|| self.blocks.get(&nth));
        here.map_or_else(|| vec![0; BLOCK], |block| block.to_vec())
    }

    /// Returns the numbers of the blocks that are not zeros.
    pub fn used(&self) -> Vec<u64> {
        let mut used: Vec<_> = self.blocks.keys().copied().collect();
        used.sort_unstable();
        used
    }

    /// Changes a block.
    pub fn change(&mut self, nth: u64, change: impl FnOnce(&mut [u8])) {
        let mut block = self.block(nth);
        change(&mut block);
        self.over.insert(nth, block.into());
    }

    /// Builds the map. The work must be bounded whatever the image holds: in all, only a few times the image's size may
    /// be read.
    pub fn build(&self) -> Result<Map> {
        let before = self.read.load(Ordering::Relaxed);
        let map = f2fs::build(&Image::new(&self.path, self.bytes, self.clone()), 0);
        let read = self.read.load(Ordering::Relaxed) - before;
        assert!(read <= 4 * self.bytes, "{read} bytes read: too much work");
        map
    }
}

impl ReadAt for Sparse {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        let mut at = 0;
        while at < buf.len() {
            let from = offset + at as u64;
            let (nth, skip) = (from / BLOCK as u64, (from % BLOCK as u64) as usize);
            let len = (BLOCK - skip).min(buf.len() - at);
            let part = &mut buf[at..at + len];
            match self.over.get(&nth).or_else(|| self.blocks.get(&nth)) {
                Some(block) => part.copy_from_slice(&block[skip..skip + len]),
                None => part.fill(0),
            }
            at += len;
        }
        Ok(())
    }
}
