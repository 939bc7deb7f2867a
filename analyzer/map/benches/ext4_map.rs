// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks up the files of 1,000 blocks in a 1 GB ext4 image with 50,000 files: with the map, including the time to build
//! it, compared with one `debugfs icheck` and one `debugfs ncheck` per block, as MOST does it.
//!
//! `cargo bench -p mostrace-map --bench ext4_map` needs e2fsprogs, but not root.

mod common;

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use common::{median, path_of, peak_memory, seconds, some_sectors};
use mostrace_map::fs::ext4;
use test_support::tool;

const FILES: usize = 50_000;
const FILES_PER_DIRECTORY: usize = 100;
const LOOKUPS: usize = 1000;
/// Number of lookups measured in MOST's way, from which the time for all is scaled.
const MEASURED: usize = 20;
const ROUNDS: usize = 5;

fn main() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = scratch.path().join("image");
    make_image(scratch.path(), &image);
    println!("image: 1 GB, ext4, {FILES} files");

    // Both run in turns, because a shared machine changes its speed.
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let map = ext4::build(&image, 0).expect("map");
        let built = begun.elapsed();
        let sectors = some_sectors(&map, LOOKUPS);
        let begun = Instant::now();
        for &sector in &sectors {
            black_box(path_of(&map, sector));
        }
        let looked_up = begun.elapsed();
        ours.push(built + looked_up);
        println!(
            "map: built in {}, {LOOKUPS} lookups in {} µs",
            seconds(built),
            looked_up.as_micros()
        );

        let begun = Instant::now();
        for &sector in sectors.iter().take(MEASURED) {
            let path = path_by_debugfs(&image, sector / 8);
            assert_eq!(Some(path), path_of(&map, sector), "sector {sector}");
        }
        let measured = begun.elapsed();
        theirs.push(measured.mul_f64(LOOKUPS as f64 / MEASURED as f64));
        println!(
            "icheck + ncheck: {MEASURED} lookups in {}, the same answers",
            seconds(measured)
        );
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!("peak memory of this process: {} kB", peak_memory());
    println!(
        "the map, building included: {LOOKUPS} lookups in {}",
        seconds(ours)
    );
    println!(
        "icheck + ncheck: {LOOKUPS} lookups in {}, scaled from {MEASURED}",
        seconds(theirs)
    );
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!("the map is {ratio:.0} times faster (medians of {ROUNDS} rounds)");
    assert!(ratio >= 100.0, "less than 100 times faster");
}

/// Makes an image with files of 1 to 12 KB, which mke2fs copies in.
fn make_image(scratch: &Path, image: &Path) {
    let tree = scratch.join("tree");
    for n in 0..FILES {
        let dir = tree.join(format!("dir_{}", n / FILES_PER_DIRECTORY));
        if n % FILES_PER_DIRECTORY == 0 {
            fs::create_dir_all(&dir).expect("directory");
        }
        fs::write(
            dir.join(format!("file_{n}.db")),
            vec![1; (n % 8 + 1) * 1500],
        )
        .expect("file");
    }
    tool::run(
        tool::command("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-d"])
            .args([&tree, image])
            .arg("1G"),
    );
    fs::remove_dir_all(&tree).expect("tree");
}

/// Finds a block's path with two debugfs processes.
fn path_by_debugfs(image: &Path, block: u64) -> Vec<u8> {
    let second_column = |request: String| {
        let out = tool::text(tool::command("debugfs").args(["-R", &request]).arg(image));
        let line = out.lines().nth(1).expect("answer");
        line.split_once('\t').expect("two columns").1.to_owned()
    };
    let inode = second_column(format!("icheck {block}"));
    second_column(format!("ncheck {inode}")).into_bytes()
}
