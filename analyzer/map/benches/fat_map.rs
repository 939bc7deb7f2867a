// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the map of a FAT32 with a million files and looks up the files of 1,000 blocks in it, compared with The
//! Sleuth Kit's `fls -r -p`, which only lists names, and `ifind`, which finds the file of one sector.
//!
//! `cargo bench -p mostrace-map --bench fat_map` needs dosfstools, mtools and sleuthkit, but not root. The image (2.5
//! GB) is made once, which takes minutes, and kept in `~/.cache/mostrace/bench`.

mod common;

use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{median, path_of, peak_memory, seconds, some_sectors};
use mostrace_map::fs::{Image, fat};
use test_support::tool;

/// Number of folders, of folders in each, and of files in each of those.
const FOLDERS: [usize; 3] = [100, 100, 100];
const LOOKUPS: usize = 1000;
/// Number of lookups measured with ifind, from which the time for all is scaled.
const MEASURED: usize = 2;
const ROUNDS: usize = 5;
/// Number of rounds with The Sleuth Kit, which takes half a minute for each.
const PEER_ROUNDS: usize = 3;

fn main() {
    let image = &image();
    let files = FOLDERS.iter().product::<usize>();
    println!("image: {}, FAT32, {files} files", image.display());

    // The programs run in turns, because a shared machine changes its speed.
    let (mut builds, mut ours, mut lists, mut finds) = (vec![], vec![], vec![], vec![]);
    let mut peak = 0;
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let map = fat::build(&Image::open(image).expect("image"), 0).expect("map");
        let built = begun.elapsed();
        assert_eq!(map.notices(), [""; 0]);
        let sectors = some_sectors(&map, LOOKUPS);
        let begun = Instant::now();
        for &sector in &sectors {
            black_box(path_of(&map, sector).expect("path"));
        }
        let looked_up = begun.elapsed();
        builds.push(built);
        ours.push(built + looked_up);

        println!(
            "map built in {}, {LOOKUPS} lookups in {} µs",
            seconds(built),
            looked_up.as_micros()
        );
        if round == 0 {
            // Measured before this process holds the output of fls.
            peak = peak_memory();
        }
        if round < PEER_ROUNDS {
            lists.push(list_names(image));
            finds.push(find_inodes(image, &sectors));
        }
    }
    let [build, ours, list, find] = [builds, ours, lists, finds].map(median);
    println!("medians of {ROUNDS} rounds, of The Sleuth Kit's {PEER_ROUNDS}:");
    println!("the map is built in {}", seconds(build));
    println!("peak memory of this process: {} MB", peak / 1024);
    let ratio = |theirs: Duration, ours: Duration| theirs.as_secs_f64() / ours.as_secs_f64();
    println!(
        "fls -r -p, names alone: {}, {:.1} times as long",
        seconds(list),
        ratio(list, build)
    );
    println!(
        "ifind, inodes alone: {LOOKUPS} lookups in {}, scaled from {MEASURED}; \
         with the map, building included, {}: {:.0} times as long",
        seconds(find),
        seconds(ours),
        ratio(find, ours)
    );
    assert!(build < Duration::from_secs(10), "10 s or more");
    assert!(peak < 1 << 20, "1 GB or more");
}

/// Returns the path of the image of an earlier run, or of a new one.
fn image() -> PathBuf {
    let home = std::env::var("HOME").expect("HOME");
    let cache = std::env::var("XDG_CACHE_HOME").unwrap_or(format!("{home}/.cache"));
    let folder = Path::new(&cache).join("mostrace/bench");
    let image = folder.join("fat32-1000000.img");
    if !image.exists() {
        fs::create_dir_all(&folder).expect("cache");
        let unfinished = folder.join("fat32-1000000.img.part");
        make_image(&unfinished);
        fs::rename(&unfinished, &image).expect("image");
    }
    image
}

/// Makes the image and fills it with mcopy, a hundredth at a time; fsck.vfat must find nothing wrong with it.
fn make_image(image: &Path) {
    let begun = Instant::now();
    let scratch = tempfile::tempdir().expect("scratch folder");
    let [folders, inner, files] = FOLDERS;
    let mut parts = Vec::new();
    for n in 0..inner {
        let folder = scratch.path().join(format!("inner folder {n}"));
        fs::create_dir(&folder).expect("folder");
        for file in 0..files {
            let name = folder.join(format!("message {file}.txt"));
            fs::write(name, vec![b'x'; (n * files + file) % 4 * 500]).expect("file");
        }
        parts.push(folder);
    }
    let file = File::create(image).expect("image");
    file.set_len(2500 << 20).expect("length");
    tool::text(
        tool::command("mkfs.vfat")
            .args(["-F", "32", "-s", "2"])
            .arg(image),
    );
    for n in 0..folders {
        let folder = format!("::/folder {n}");
        tool::text(tool::command("mmd").arg("-i").arg(image).arg(&folder));
        let mut copy = tool::command("mcopy");
        copy.args(["-s", "-Q", "-i"]).arg(image).args(&parts);
        tool::text(copy.arg(&folder));
    }
    tool::text(tool::command("fsck.vfat").arg("-n").arg(image));
    println!("image made in {}", seconds(begun.elapsed()));
}

/// Returns the time that fls takes to list all files and folders.
fn list_names(image: &Path) -> Duration {
    let begun = Instant::now();
    let said = tool::text(tool::command("fls").args(["-r", "-p", "-u"]).arg(image));
    let took = begun.elapsed();
    let made_up = |line: &&str| line.contains("\t$");
    let names = said.lines().filter(|line| !made_up(line)).count();
    let folders = FOLDERS[0] + FOLDERS[0] * FOLDERS[1];
    let files = FOLDERS.iter().product::<usize>();
    assert_eq!(names, files + folders, "fls lists other files");
    took
}

/// Returns the time that ifind takes for all sectors, scaled from those measured.
fn find_inodes(image: &Path, sectors: &[u64]) -> Duration {
    let begun = Instant::now();
    for sector in sectors.iter().step_by(LOOKUPS / MEASURED) {
        let found = tool::text(
            tool::command("ifind")
                .args(["-d", &sector.to_string()])
                .arg(image),
        );
        assert!(found.trim().parse::<u64>().is_ok(), "{sector}: {found}");
    }
    begun.elapsed().mul_f64(LOOKUPS as f64 / MEASURED as f64)
}
