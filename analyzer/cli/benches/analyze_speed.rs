// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace analyze`, `events` and `query` of a generated trace, compared with blkparse formatting the same files, and with
//! btt, which measures a merged dump that only `blkparse -d` can make: as a bare trace, as a bundle with two entries for
//! every bio, and also with the map of an ext4 (root). Each figure is the least of three runs in a process of its own, in
//! processor time as the kernel accounts for it.
//!
//! `cargo bench -p mostrace --bench analyze_speed [-- EVENTS [CPUS]]`; with ten million events or more, each runs once and
//! without the peers, to show what grows with the trace.

#[path = "../tests/support/cost.rs"]
mod cost;
#[path = "../../trace/tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use cost::{Cost, run_as_told};
use mostrace_bundle::entry::{
    Flags, Jbd2, NONE, Origin, RawFile, RawHead, RawProcess, Stage, TYPE_FILE, TYPE_PROCESS, What,
};
use mostrace_bundle::manifest::{SCHEMA, State};
use mostrace_bundle::table::TableWriter;
use mostrace_bundle::{Manifest, Writer, layout};
use support::generator::{Bio, Recipe, generate_with};
use zerocopy::IntoBytes;

const RUNS: u32 = 3;
/// With this many events the peers take minutes.
const LONG: u64 = 9_000_000;
/// Size of the generator's disk, bytes.
const DISK: u64 = 1 << 38;

fn main() -> Result<(), Box<dyn Error>> {
    if run_as_told()? {
        return Ok(());
    }
    let numbers = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let numbers: Vec<u64> = numbers.map(|n| n.parse()).collect::<Result<_, _>>()?;
    let recipe = Recipe {
        seed: 1,
        events: numbers.first().copied().unwrap_or(5_000_000),
        cpus: numbers.get(1).map_or(Ok(4), |&n| n.try_into())?,
    };
    let folder = tempfile::tempdir()?;
    let (events, entries) = make_bundle(&recipe, folder.path())?;
    let map = make_map(folder.path());
    println!(
        "{events} events in {} files; {entries} entries in each of two tables",
        recipe.cpus
    );
    match &map {
        Ok(extents) => println!("the map is of an ext4 with {extents} extents"),
        Err(error) => println!("without a map: {error}"),
    }
    let mut ours = vec![
        &["analyze", "speed", "--by", "op"][..],
        &["analyze", "speed"],
        &["analyze", "speed.most", "--by", "role"],
        &["analyze", "speed.most"],
        &["analyze", "speed.most", "--full"],
    ];
    if map.is_ok() {
        ours.push(&[
            "analyze",
            "speed.most",
            "--image",
            "disk.img",
            "--by",
            "role",
        ]);
        ours.push(&["analyze", "speed.most", "--image", "disk.img"]);
    }
    ours.extend([
        &["analyze", "speed.most", "--by", "file", "--json"][..],
        &[
            "query",
            "speed.most",
            "SELECT role, sum(bytes) FROM events GROUP BY role",
        ],
        &["events", "speed.most", "-o", "speed.csv"],
        &["events", "speed.most", "-o", "speed.parquet"],
    ]);
    let long = events >= LONG;
    if long {
        ours.retain(|args| args[0] == "analyze" && !args.contains(&"--json"));
    }
    let runs = if long { 1 } else { RUNS };
    let of = |program: &str, args: &[&str]| Cost::of(folder.path(), runs, program, args);
    let mut peers = Vec::new();
    if !long {
        peers.push(("blkparse", of("blkparse", &["-i", "speed"])?));
        of("blkparse", &["-i", "speed", "-O", "-d", "dump"])?;
        peers.push(("btt", of("btt", &["-i", "dump"])?));
    }
    for (name, cost) in &peers {
        println!("{name:<55} {cost}");
    }
    for args in ours {
        let cost = of(env!("CARGO_BIN_EXE_mostrace"), args)?;
        print!("{:<55} {cost}", args.join(" "));
        print!(
            "  {:5.1} million events/s",
            events as f64 / cost.elapsed.as_secs_f64() / 1e6
        );
        for (name, peer) in &peers {
            print!("  {name} {:4.1} ×", peer.cpu() / cost.cpu());
        }
        println!();
    }
    Ok(())
}

/// Writes the bare trace `speed`, and the same as a bundle with both entries of every bio; returns the number of events and
/// of each table's entries.
fn make_bundle(recipe: &Recipe, folder: &Path) -> Result<(u64, u64), Box<dyn Error>> {
    let writer = Writer::create(&folder.join("speed.most"))?;
    let mut processes = TableWriter::create(&writer.path(layout::PROCESS))?;
    let mut files = TableWriter::create(&writer.path(layout::FILE))?;
    let mut entries = 0;
    let (paths, events) = generate_with(recipe, folder, "speed", |bio| {
        if bio.bytes > 0 {
            let (process, file) = entries_of(bio);
            processes.push(&process)?;
            files.push(&file)?;
            entries += 1;
        }
        Ok(())
    })?;
    processes.flush()?;
    files.flush()?;
    for (cpu, path) in (0..).zip(&paths) {
        fs::hard_link(path, writer.path(&layout::trace_of_cpu(cpu)))?;
    }
    writer.put_manifest(&Manifest {
        schema: SCHEMA,
        state: State::Complete,
        ..Manifest::default()
    })?;
    Ok((events, entries))
}

/// The files are 32 MiB each, side by side on the disk.
fn entries_of(bio: &Bio) -> (Vec<u8>, Vec<u8>) {
    let inode = bio.sector >> 16;
    let name = format!("file-{inode}.db");
    let size = 72 + name.len().next_multiple_of(8);
    let head = |kind: u16, size: usize| RawHead {
        kind: kind.into(),
        size: (size as u16).into(),
        dev: bio.device.into(),
        time_ns: bio.made_ns().into(),
        sector: bio.sector.into(),
        bytes: bio.bytes.into(),
        cpu: (bio.cpu as u16).into(),
        stage: bio.i_ns.map_or(Stage::ISSUE, |_| Stage::INSERT),
        flags: Flags::default(),
    };
    let mut comm = [0; 16];
    comm[..9].copy_from_slice(b"synthetic");
    let process = RawProcess {
        head: head(TYPE_PROCESS, 88),
        submit_ns: bio.q_ns.into(),
        home_sector: NONE.into(),
        pid: bio.pid.into(),
        tgid: bio.pid.into(),
        opf: 1.into(),
        origin: if bio.journal {
            Origin::JOURNAL
        } else {
            Origin::FILE
        },
        jbd2: if bio.journal {
            Jbd2::METADATA_COPY
        } else {
            Jbd2::NONE
        },
        comm,
        ..RawProcess::default()
    };
    let file = RawFile {
        head: head(TYPE_FILE, size),
        ino: inode.into(),
        offset: ((bio.sector & 0xffff) * 512).into(),
        parent: 2.into(),
        generation: 1.into(),
        s_dev: bio.device.into(),
        nlink: 1.into(),
        name_len: (name.len() as u16).into(),
        origin: Origin::FILE,
        what: What::REGULAR,
    };
    let mut record = file.as_bytes().to_vec();
    record.extend_from_slice(name.as_bytes());
    record.resize(size, 0);
    (process.as_bytes().to_vec(), record)
}

/// Makes `disk.img`, an ext4 as large as the generator's disk, full of files that were only allocated; returns the number of
/// extents in its map.
fn make_map(folder: &Path) -> Result<usize, Box<dyn Error>> {
    let image = folder.join("disk.img");
    File::create(&image)?.set_len(DISK)?;
    let mount = folder.join("mnt");
    fs::create_dir(&mount)?;
    let image_text = image.display().to_string();
    let options = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
    sh(&[
        "mkfs.ext4",
        "-q",
        "-T",
        "largefile",
        "-E",
        options,
        &image_text,
    ])?;
    sh(&[
        "mount",
        "-o",
        "loop",
        &image_text,
        &mount.display().to_string(),
    ])?;
    let filled = fill(&mount);
    sh(&["umount", &mount.display().to_string()])?;
    filled?;
    let image = mostrace_map::fs::Image::open(&image)?;
    let map = mostrace_trace::reading::map_of(&image, 0, Default::default(), &|_| {})?;
    Ok(map.extents().len())
}

/// Writes files of 8 MiB in turns, so that none has long extents.
fn fill(mount: &Path) -> io::Result<()> {
    let files: Vec<PathBuf> = (0..64)
        .map(|n| mount.join(format!("file-{n}.db")))
        .collect();
    for round in 0..440_u64 {
        for path in &files {
            let file = File::options().create(true).append(true).open(path)?;
            rustix::fs::fallocate(
                &file,
                rustix::fs::FallocateFlags::empty(),
                round << 23,
                1 << 23,
            )?;
        }
    }
    Ok(())
}

fn sh(words: &[&str]) -> Result<(), Box<dyn Error>> {
    let output = Command::new(words[0]).args(&words[1..]).output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", words[0], text.trim()).into());
    }
    Ok(())
}
