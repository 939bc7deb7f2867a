// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small ext2, ext3 and ext4 images with every kind of file in them.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use test_support::Need;
use test_support::loopdev::unmount;
pub use test_support::tool::{command as tool, run};

/// The tools that make the images and check the maps.
pub const TOOLS: [Need; 2] = [
    Need::Tool("mke2fs", "e2fsprogs"),
    Need::Tool("debugfs", "e2fsprogs"),
];

/// Makes an empty filesystem of `mib` MiB; `options` are mke2fs's, separated by spaces.
pub fn mke2fs(image: &Path, options: &str, mib: u64, contents: Option<&Path>) {
    File::create(image)
        .and_then(|file| file.set_len(mib << 20))
        .expect("image");
    let mut command = tool("mke2fs");
    command.args(["-q", "-F"]).args(options.split_whitespace());
    if let Some(contents) = contents {
        command.arg("-d").arg(contents);
    }
    run(command.arg(image));
}

/// A mounted image, which is unmounted when this is dropped.
pub struct Mount {
    pub dir: PathBuf,
}

impl Mount {
    /// Mounts an image through a loop device.
    pub fn new(image: &Path, dir: &Path) -> Mount {
        fs::create_dir_all(dir).expect("mount point");
        run(tool("mount").args(["-o", "loop"]).arg(image).arg(dir));
        Mount {
            dir: dir.to_owned(),
        }
    }

    /// Writes everything back.
    pub fn sync(&self) {
        run(Command::new("sync").arg("-f").arg(&self.dir));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.dir) {
            eprintln!("clean-up: {error}");
        }
    }
}

/// Names that have confused parsers of debugfs's output, or might.
pub const NAMES: &[&[u8]] = &[
    b"new\nline",
    b"\n12\tforged\n",
    b"quote\"'`",
    b"gt>lt<",
    b"<12>",
    b"#12",
    b"debugfs: ex <2>",
    b" lead and trail ",
    b"back\\slash",
    b"-f",
    b"...",
    b"tab\t\x7f\x1b[0m",
    b"\xff\xfe\x80",
    "größe".as_bytes(),
    &[b'n'; 255],
];

/// Fills a directory with about 4 MB: every kind of file, in every form that the map must handle.
pub fn fill(root: &Path) {
    let dir = |name: &str| {
        let dir = root.join(name);
        fs::create_dir(&dir).expect("directory");
        dir
    };
    let plain = dir("plain");
    for n in 0..60 {
        write(&plain.join(format!("file_{n}")), n * 700);
    }
    write(&root.join("big"), 1_500_000);
    pattern(&root.join("sparse"), &[0, 100 << 10, 1 << 20, 70 << 20]);
    pattern(
        &root.join("fragmented"),
        &(0..150).map(|n| n << 13).collect::<Vec<_>>(),
    );
    fallocate(&root.join("preallocated"), &["-l", "300000"]);
    write(&root.join("kept"), 5000);
    fallocate(&root.join("kept"), &["-n", "-o", "8192", "-l", "100000"]);
    write(&root.join("punched"), 100_000);
    fallocate(&root.join("punched"), &["-p", "-o", "32768", "-l", "32768"]);

    let links = dir("links");
    for name in ["again", "and\nagain"] {
        fs::hard_link(plain.join("file_1"), links.join(name)).expect("hard link");
    }
    for length in [1, 59, 60, 61, 200, 1000] {
        let link = links.join(format!("to_{length}"));
        symlink("t".repeat(length), link).expect("symlink");
    }
    run(Command::new("mkfifo").arg(links.join("fifo")));

    let names = dir("names");
    for name in NAMES {
        let below = names.join(OsStr::from_bytes(name));
        fs::create_dir(&below).expect("hostile directory");
        write(&below.join(OsStr::from_bytes(name)), 100);
    }
    let mut deep = dir("deep");
    for level in 0..40 {
        deep.push(format!("level_{level}"));
        fs::create_dir(&deep).expect("deep directory");
    }
    write(&deep.join("bottom"), 3000);

    let many = dir("many");
    let entry = |n| many.join(format!("{n:03}_{}", "x".repeat(40)));
    (0..400).for_each(|n| write(&entry(n), 0));
    (0..400)
        .step_by(3)
        .for_each(|n| fs::remove_file(entry(n)).expect("remove"));
}

fn write(path: &Path, bytes: usize) {
    let contents: Vec<u8> = (0..bytes).map(|n| (n % 251 + 1) as u8).collect();
    fs::write(path, contents).unwrap_or_else(|error| panic!("{path:?}: {error}"));
}

/// Makes a sparse file with 4 KiB of data at each of these offsets.
fn pattern(path: &Path, offsets: &[u64]) {
    let file = File::create(path).expect("sparse file");
    for &offset in offsets {
        file.write_all_at(&[7; 4096], offset).expect("sparse write");
    }
}

/// Calls fallocate(1). ext2 and ext3 do not support it; then nothing is changed.
fn fallocate(path: &Path, options: &[&str]) {
    let _ = Command::new("fallocate")
        .args(options)
        .arg(path)
        .stderr(Stdio::null())
        .status();
}

/// Gives a file an extended attribute; one of about 300 bytes or more does not fit into the inode.
pub fn add_xattr(image: &Path, path: &str, bytes: usize, scratch: &Path) {
    let value = scratch.join("value");
    fs::write(&value, vec![b'v'; bytes]).expect("value");
    let request = format!("ea_set -f {} {path} user.large", value.display());
    run(tool("debugfs").args(["-w", "-R", &request]).arg(image));
}

/// One directory entry as the kernel shows it.
pub struct Seen {
    pub inode: u64,
    /// The path in the map's form: from the filesystem's root, starting with `/`.
    pub path: Vec<u8>,
    pub on_host: PathBuf,
    pub file_type: fs::FileType,
}

/// Walks a mounted filesystem, including its root.
pub fn walk(root: &Path) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(on_host) = left.pop() {
        let metadata = fs::symlink_metadata(&on_host).expect("metadata");
        let below = on_host.strip_prefix(root).expect("below the root");
        if metadata.is_dir() {
            let entries = fs::read_dir(&on_host).expect("directory");
            left.extend(entries.map(|entry| entry.expect("entry").path()));
        }
        seen.push(Seen {
            inode: metadata.ino(),
            path: [b"/", below.as_os_str().as_bytes()].concat(),
            file_type: metadata.file_type(),
            on_host,
        });
    }
    seen
}

/// Overwrites bytes of an image.
pub fn patch(image: &Path, offset: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(image).expect("image");
    file.write_all_at(bytes, offset).expect("patch");
    (&file).flush().expect("flush");
}
