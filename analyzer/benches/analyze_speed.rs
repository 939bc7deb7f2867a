// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace analyze` and `events` of five million events, against blkparse formatting the same
//! files, and against btt: as a bare trace, and as a bundle with an entry for every bio. btt does not
//! read the files themselves but what `blkparse -d` makes of them, so it stands here with that pass
//! and alone. Each is the best of three runs, as a process of its own.
//!
//! `cargo bench -p mostrace --bench analyze_speed [-- EVENTS]`

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mostrace::blktrace::{Completions, Trace};
use mostrace_bundle::entry::{
    Flags, Jbd2, NONE, Origin, RawFile, RawHead, RawProcess, Stage, TYPE_FILE, TYPE_PROCESS, What,
};
use mostrace_bundle::manifest::{SCHEMA, State};
use mostrace_bundle::table::TableWriter;
use mostrace_bundle::{Manifest, Writer, layout};
use support::synthetic::{Recipe, write};
use zerocopy::IntoBytes;

fn main() -> Result<(), Box<dyn Error>> {
    let args = std::env::args().skip(1).find(|arg| arg != "--bench");
    let events: u64 = args.map_or(Ok(5_000_000), |n| n.parse())?;
    let folder = tempfile::tempdir()?;
    // An IO of this recipe has 8.66 events on average.
    let recipe = Recipe {
        seed: 1,
        ios: events * 100 / 866,
        cpus: 2,
        plain: true,
    };
    let (paths, events) = write(recipe, folder.path(), "speed");
    let entries = make_bundle(folder.path(), &paths)?;
    println!(
        "{events} events in {} files; {entries} entries in each table",
        paths.len()
    );

    let mostrace = env!("CARGO_BIN_EXE_mostrace");
    let blkparse = best(folder.path(), "blkparse", &["-i", "speed"])?;
    let dump = best(
        folder.path(),
        "blkparse",
        &["-O", "-i", "speed", "-d", "speed.bin"],
    )?;
    let btt = best(folder.path(), "btt", &["-i", "speed.bin"])?;
    for (name, cost) in [
        ("blkparse", &blkparse),
        ("blkparse -O -d", &dump),
        ("btt", &btt),
    ] {
        println!("{name:<37} {cost}");
    }
    for args in [
        &["analyze", "speed"][..],
        &["analyze", "speed.most"],
        &["analyze", "speed.most", "--by", "file", "--json"],
        &["events", "speed.most", "-o", "speed.csv"],
        &["events", "speed.most", "-o", "speed.parquet"],
    ] {
        let cost = best(folder.path(), mostrace, args)?;
        let times = |peer: Duration| peer.as_secs_f64() / cost.time.as_secs_f64();
        println!(
            "{:<37} {cost}  speed: {:4.1} × blkparse, {:4.1} × blkparse -d and btt, {:4.1} × btt alone",
            args.join(" "),
            times(blkparse.time),
            times(dump.time + btt.time),
            times(btt.time)
        );
    }
    Ok(())
}

/// The same events as a bundle, with both entries of every bio.
fn make_bundle(folder: &Path, paths: &[PathBuf]) -> Result<usize, Box<dyn Error>> {
    let writer = Writer::create(&folder.join("speed.most"))?;
    let manifest = Manifest {
        schema: SCHEMA,
        state: State::Complete,
        ..Manifest::default()
    };
    writer.put_manifest(&manifest)?;
    for (cpu, path) in (0..).zip(paths) {
        std::fs::hard_link(path, writer.path(&layout::trace_of_cpu(cpu)))?;
    }
    // In the order of time, as a probe would have made them.
    let mut bios = BTreeMap::new();
    let mut completions = Completions::new(Trace::open(paths)?);
    while let Some(completion) = completions.next()? {
        let made = completion
            .i_ns
            .or(completion.d_ns)
            .unwrap_or(completion.time_ns);
        for part in completion.parts.iter().filter(|part| part.bytes > 0) {
            bios.insert((made, part.sector), (part.bytes, part.pid.unwrap_or(0)));
        }
    }
    let mut processes = TableWriter::create(&writer.path(layout::PROCESS))?;
    let mut files = TableWriter::create(&writer.path(layout::FILE))?;
    for (&(time_ns, sector), &(bytes, pid)) in &bios {
        let (process, file) = entries(time_ns, sector, bytes, pid);
        processes.push(&process)?;
        files.push(&file)?;
    }
    processes.flush()?;
    files.flush()?;
    Ok(bios.len())
}

/// Files of 4 MiB side by side on the disk.
fn entries(time_ns: u64, sector: u64, bytes: u32, pid: u32) -> (Vec<u8>, Vec<u8>) {
    let inode = sector >> 13;
    let name = format!("file-{inode}.db");
    let size = 72 + name.len().next_multiple_of(8);
    let head = |kind: u16, size: usize| RawHead {
        kind: kind.into(),
        size: (size as u16).into(),
        dev: (8 << 20).into(),
        time_ns: time_ns.into(),
        sector: sector.into(),
        bytes: bytes.into(),
        cpu: 0.into(),
        stage: Stage::INSERT,
        flags: Flags::default(),
    };
    let process = RawProcess {
        head: head(TYPE_PROCESS, 88),
        submit_ns: time_ns.into(),
        home_sector: NONE.into(),
        pid: pid.into(),
        tgid: pid.into(),
        uid: 0.into(),
        opf: 1.into(),
        tid: 0.into(),
        origin: Origin::FILE,
        jbd2: Jbd2::NONE,
        pad: [0; 2],
        comm: *b"synthetic\0\0\0\0\0\0\0",
    };
    let file = RawFile {
        head: head(TYPE_FILE, size),
        ino: inode.into(),
        offset: ((sector & 0x1fff) * 512).into(),
        parent: 2.into(),
        generation: 1.into(),
        s_dev: (8 << 20).into(),
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

/// A run's time and its peak memory.
struct Cost {
    time: Duration,
    peak_kib: u64,
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:7.2} s  peak {:5} MiB",
            self.time.as_secs_f64(),
            self.peak_kib >> 10
        )
    }
}

fn best(folder: &Path, program: &str, args: &[&str]) -> Result<Cost, Box<dyn Error>> {
    let mut best = run(folder, program, args)?;
    for _ in 1..3 {
        let cost = run(folder, program, args)?;
        best.time = best.time.min(cost.time);
        best.peak_kib = best.peak_kib.max(cost.peak_kib);
    }
    Ok(best)
}

fn run(folder: &Path, program: &str, args: &[&str]) -> Result<Cost, Box<dyn Error>> {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut peak_kib = 0;
    loop {
        peak_kib = peak(&child).unwrap_or(0).max(peak_kib);
        if let Some(status) = child.try_wait()? {
            assert!(status.success(), "{program}: {status}");
            return Ok(Cost {
                time: start.elapsed(),
                peak_kib,
            });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The child's peak memory so far (Linux): what it had a moment before its end is near enough.
fn peak(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
