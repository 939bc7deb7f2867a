// SPDX-License-Identifier: MIT OR Apache-2.0
//! FAT images, made by mkfs.vfat and filled by mtools, without mounting and without root.

use std::fs::{self, File};
use std::path::Path;

use test_support::Need;
pub use test_support::tool::{command as tool, run};

/// The tools that make the images and check the maps.
pub const TOOLS: [Need; 4] = [
    Need::Tool("mkfs.vfat", "dosfstools"),
    Need::Tool("fsck.vfat", "dosfstools"),
    Need::Tool("mcopy", "mtools"),
    Need::Tool("fiwalk", "sleuthkit"),
];

/// Makes an empty filesystem of `kib` KiB; `options` are mkfs.vfat's, separated by spaces.
pub fn mkfs(image: &Path, options: &str, kib: u64) {
    File::create(image)
        .and_then(|file| file.set_len(kib << 10))
        .expect("image");
    // The serial number is the same every time.
    run(tool("mkfs.vfat")
        .args(["-i", "12345678"])
        .args(options.split_whitespace())
        .arg(image));
}

/// Runs one of the mtools on an image.
pub fn mtool(name: &str, image: &Path, args: &[String]) -> Vec<u8> {
    run(tool(name).arg("-i").arg(image).args(args))
}

/// Copies files and folders of the host to a folder of the image.
pub fn copy(image: &Path, from: &[&Path], to: &str) {
    let from = from.iter().map(|path| path.display().to_string());
    let mut args: Vec<String> = vec!["-s".into(), "-Q".into()];
    args.extend(from);
    args.push(format!("::{to}"));
    mtool("mcopy", image, &args);
}

/// Returns names that are hard to handle: of every length up to the longest, with and without the need for a long name,
/// outside ASCII and outside UTF-16's first plane.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "UPPER.TXT",
        "lower.txt",
        "Mixed.Txt",
        "lower2.TXT",
        "UPPER2.txt",
        "noext",
        "NOEXT2",
        "größe.txt",
        "日本語のファイル名.txt",
        "clef \u{1d11e} and face \u{1f600}.txt",
        "two words",
        "a.b.c.d",
        ".hidden",
        "brackets [1].txt",
        "plus+comma,semi;equals=.txt",
        "it's & that",
        "exactly13char",
        "exactly26characters_abcdef",
    ]
    .map(String::from)
    .into();
    for length in [8, 12, 14, 25, 27, 39, 40, 100, 254, 255] {
        names.push(format!("n{length:0>0$}", length - 1));
    }
    // The short names of all of these are COLLIS~n.
    names.extend((0..20).map(|n| format!("collision of names {n}.text")));
    names
}

/// Makes a tree of about 400 KB on the host.
pub fn tree(root: &Path) {
    let dir = |name: &str| {
        let dir = root.join(name);
        fs::create_dir_all(&dir).expect("directory");
        dir
    };
    let write = |path: &Path, bytes: usize| fs::write(path, vec![b'x'; bytes]).expect("file");
    for (n, name) in names().iter().enumerate() {
        write(&dir("names").join(name), n * 37);
        write(&dir("gone").join(name), 1 + n * 37);
    }
    for n in 0..25 {
        write(&dir("plain").join(format!("file_{n}")), n * 700);
    }
    for n in 0..40 {
        // The directory's entries take two clusters or more.
        write(
            &dir("wide").join(format!("entry {n} of a directory of many clusters")),
            n % 2,
        );
    }
    let levels: Vec<String> = (0..20).map(|n| format!("level_{n}")).collect();
    write(&dir(&format!("deep/{}", levels.join("/"))).join("leaf"), 10);
    write(&root.join("empty"), 0);
}

/// Fills an image: the tree, then one file that takes all the rest, then a file in the gaps that deleted files left;
/// and deleted files and folders of all kinds.
pub fn fill(image: &Path, scratch: &Path) {
    let host = scratch.join("tree");
    tree(&host);
    make_room(image, scratch, &["/names", "/gone"]);
    let parts = ["names", "gone", "plain", "wide", "deep", "empty"];
    let parts: Vec<_> = parts.map(|name| host.join(name)).into();
    copy(image, &parts.iter().map(|p| &**p).collect::<Vec<_>>(), "/");
    let small: Vec<_> = (0..60)
        .map(|n| scratch.join(format!("small_{n}")))
        .collect();
    for path in &small {
        fs::write(path, [1; 1500]).expect("file");
    }
    mtool("mmd", image, &["::/pieces".into()]);
    copy(
        image,
        &small.iter().map(|p| &**p).collect::<Vec<_>>(),
        "/pieces",
    );

    let rest = scratch.join("rest");
    let file = File::create(&rest).expect("file");
    file.set_len(free_bytes(image)).expect("length");
    copy(image, &[&rest], "/");
    assert_eq!(free_bytes(image), 0, "the volume is not full");
    let odd = (0..60).step_by(2).map(|n| format!("::/pieces/small_{n}"));
    mtool("mdel", image, &odd.collect::<Vec<_>>());
    let large = scratch.join("large");
    fs::write(&large, [2; 37_500]).expect("file");
    copy(image, &[&large], "/");

    let gone = names().into_iter().filter(|name| !name.contains('['));
    let gone = gone.step_by(2).map(|name| format!("::/gone/{name}"));
    mtool("mdel", image, &gone.collect::<Vec<_>>());
    mtool("mdeltree", image, &["::/deep/level_0/level_1".into()]);
    for path in small.iter().chain([&rest, &large]) {
        fs::remove_file(path).expect("file");
    }
    fs::remove_dir_all(&host).expect("tree");
}

/// Makes directories with room for entries of more than a cluster; mtools adds one cluster at most.
fn make_room(image: &Path, scratch: &Path, dirs: &[&str]) {
    let files: Vec<_> = (0..150)
        .map(|n| scratch.join(format!("room_{n}")))
        .collect();
    for file in &files {
        fs::write(file, b"").expect("file");
    }
    for dir in dirs {
        mtool("mmd", image, &[format!("::{dir}")]);
        copy(image, &files.iter().map(|p| &**p).collect::<Vec<_>>(), dir);
        mtool("mdel", image, &[format!("::{dir}/room_*")]);
    }
    for file in &files {
        fs::remove_file(file).expect("file");
    }
}

/// Returns the free bytes that mdir reports.
fn free_bytes(image: &Path) -> u64 {
    let said = String::from_utf8(mtool("mdir", image, &["::/".into()])).expect("text");
    let line = said.lines().rev().find(|line| line.contains("bytes free"));
    let figures = line
        .expect("bytes free")
        .chars()
        .filter(char::is_ascii_digit);
    figures.collect::<String>().parse().expect("figures")
}
