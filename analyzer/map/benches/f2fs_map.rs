// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the map of an f2fs image with a million files, compared with fsck.f2fs, which also reads the whole image, and
//! with `dump.f2fs -b`, which finds the owner of one block.
//!
//! `cargo bench -p mostrace-map --bench f2fs_map [-- FILES]` needs f2fs-tools, but not root. sload.f2fs takes 21
//! minutes of CPU time to fill the image, which is kept in `~/.cache/mostrace/bench`.

mod common;

use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{median, peak_memory, seconds, some_files};
use mostrace_map::Map;
use mostrace_map::class::Kind;
use mostrace_map::fs::{Image, f2fs};
use test_support::tool;

const FILES_PER_DIRECTORY: usize = 100;
/// Number of owners that are looked up with dump.f2fs, one after the other.
const ASKED: usize = 50;
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let args = std::env::args().skip(1).find(|arg| arg != "--bench");
    let files: usize = args.map_or(Ok(1_000_000), |n| n.parse())?;
    let image = image_of(files)?;
    println!(
        "image: {}, {files} files, half of them of one block",
        image.display()
    );

    // The programs run in turns, because a shared machine changes its speed.
    let (mut ours, mut fsck, mut dump) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let map = f2fs::build(&Image::open(&image)?, 0)?;
        ours.push(begun.elapsed());
        println!("map: built in {}", seconds(begun.elapsed()));
        check(&map, files);

        let begun = Instant::now();
        run(tool::command("fsck.f2fs").arg("--dry-run").arg(&image));
        fsck.push(begun.elapsed());
        println!("fsck.f2fs: {}", seconds(begun.elapsed()));

        let begun = Instant::now();
        for extent in some_files(&map, ASKED) {
            let block = format!("{:#x}", extent.sector / 8);
            let said = run(tool::command("dump.f2fs").args(["-b", &block]).arg(&image));
            let path = map.path(black_box(extent.inode)).ok_or("path")?;
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            assert!(
                said.contains(&format!(": {name}\n")),
                "{extent:?}, {name}: {said}"
            );
        }
        dump.push(begun.elapsed() / ASKED as u32);
        println!(
            "dump.f2fs: {} for each of {ASKED} blocks, the same names",
            seconds(begun.elapsed() / ASKED as u32)
        );
    }
    let (ours, fsck, dump) = (median(ours), median(fsck), median(dump));
    println!("peak memory of this process: {} kB", peak_memory());
    println!("the map: {} (medians of {ROUNDS} rounds)", seconds(ours));
    let ratio = |theirs: Duration| theirs.as_secs_f64() / ours.as_secs_f64();
    println!(
        "fsck.f2fs: {}, {:.1} times as long",
        seconds(fsck),
        ratio(fsck)
    );
    println!(
        "dump.f2fs -b: {} for one block; in the map's time {:.0} blocks",
        seconds(dump),
        1.0 / ratio(dump)
    );
    Ok(())
}

/// Checks that every file has its node and its name, and half of them a block.
fn check(map: &Map, files: usize) {
    assert_eq!(map.notices(), [""; 0]);
    let blocks = |kind| -> u64 {
        let extents = map.extents().iter().filter(|extent| extent.kind == kind);
        extents.map(|extent| extent.sectors / 8).sum()
    };
    assert_eq!(blocks(Kind::WarmNode), files as u64);
    assert_eq!(blocks(Kind::Regular), files as u64 / 2);
    let named = map
        .extents()
        .iter()
        .filter(|extent| extent.kind == Kind::WarmNode);
    assert_eq!(
        named
            .filter(|extent| map.path(extent.inode).is_some())
            .count(),
        files
    );
}

/// Returns the image's path; the image is made if it is not there yet.
fn image_of(files: usize) -> Result<PathBuf, Box<dyn Error>> {
    let home = std::env::var_os("HOME").ok_or("no HOME")?;
    let cache = Path::new(&home).join(".cache/mostrace/bench");
    let image = cache.join(format!("f2fs-{files}.img"));
    if image.exists() {
        return Ok(image);
    }
    fs::create_dir_all(&cache)?;
    let tree = tempfile::tempdir_in(&cache)?;
    let part = image.with_extension("img.part");
    for n in 0..files {
        let dir = tree.path().join(format!("dir_{}", n / FILES_PER_DIRECTORY));
        if n % FILES_PER_DIRECTORY == 0 {
            fs::create_dir(&dir)?;
        }
        let bytes = if n % 2 == 0 { 100 } else { 4096 };
        fs::write(dir.join(format!("file_{n}.db")), vec![b'x'; bytes])?;
    }
    File::create(&part)?.set_len((files as u64 * 16384).max(128 << 20))?;
    run(tool::command("mkfs.f2fs").args(["-q", "-f"]).arg(&part));
    run(tool::command("sload.f2fs")
        .arg("-f")
        .args([tree.path(), &part]));
    fs::rename(part, &image)?;
    Ok(image)
}

/// Runs a tool and returns its output. sload.f2fs exits with 1 if its last check corrects something.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("f2fs-tools");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("Done") || output.status.success(), "{said}");
    said
}
