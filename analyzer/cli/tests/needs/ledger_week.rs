// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ledger through days of load and nights of quiet, in which its recorder is killed, stopped for a while, and finds the folder's disk full,
//! and the filesystem is unmounted and mounted again: each byte that the kernel counted is in a row, or in a gap that is stated.
//!
//! An hour takes two seconds. There are twelve of them, or a week's with `MOSTRACE_LONG=1`.

use crate::ledger::await_hours;
use crate::run;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use run::{program, succeeds};
use rustix::process::{Pid, Signal, kill_process};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, at_once, tests, tool};

const LIVE: [Need; 2] = [Need::Loop, Need::Btf];
const HOUR: Duration = Duration::from_secs(2);
/// Hours of load and hours of quiet of each day.
const DAY: [u32; 2] = [8, 4];
/// The most bytes that may be counted twice at each gap: what is written between a segment's last reading of the counters and its
/// end, some milliseconds later, is in its rows and in the gap that follows.
const TWICE: u64 = 4 << 20;

pub fn suite() -> Suite {
    at_once(tests![
        every_byte_is_in_a_row_or_in_a_gap needs LIVE,
    ])
}

fn disk(mib: u64) -> LoopExt4 {
    LoopExt4::new(&LoopOptions {
        size_mib: mib,
        mount_options: "noinit_itable".into(),
        ..LoopOptions::default()
    })
    .unwrap()
}

/// A recorder, which is started again whenever it has ended.
struct Keeper {
    folder: PathBuf,
    mount_point: PathBuf,
    child: Child,
}

impl Keeper {
    fn start(folder: &Path, disk: &LoopExt4) -> Keeper {
        let mut keeper = Keeper {
            folder: folder.to_owned(),
            mount_point: disk.mount_point(),
            child: Command::new("true").spawn().unwrap(),
        };
        keeper.restart();
        keeper
    }

    fn restart(&mut self) {
        self.child.wait().unwrap();
        let mut command = program();
        command
            .args(["ledger", "start"])
            .arg(&self.folder)
            .arg("-d");
        command
            .arg(&self.mount_point)
            .args(["--every", "2s", "--segment", "0.5"]);
        // With the test's own output, so that a recorder that ends says why.
        self.child = command.stdout(Stdio::null()).spawn().unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops it in order.
    fn stop(&mut self) {
        succeeds(program().args(["ledger", "stop"]).arg(&self.folder));
        assert!(self.child.wait().unwrap().success());
    }
}

fn shown(folder: &Path, args: &[&str]) -> String {
    let mut show = program();
    let show = show.args(["ledger", "show", "--format", "csv"]).args(args);
    let shown = succeeds(show.arg(folder));
    shown.out
}

/// Returns the values of a column of a table in CSV; empty ones are 0.
fn column(csv: &str, name: &str) -> Vec<u64> {
    let mut lines = csv.lines();
    let mut names = lines.next().unwrap().split(',');
    let at = names.position(|column| column == name);
    let at = at.unwrap_or_else(|| panic!("no {name}: {csv}"));
    let value = |line: &str| line.split(',').nth(at).unwrap().parse().unwrap_or(0);
    lines.map(value).collect()
}

fn sum(csv: &str, name: &str) -> u64 {
    column(csv, name).iter().sum()
}

/// What the kernel counted for the disk as written, in bytes; everything is written out before.
fn counted(disk: &LoopExt4) -> u64 {
    tool::run(Command::new("sync").arg("-f").arg(disk.mount_point()));
    thread::sleep(Duration::from_millis(300));
    let name = disk.device().file_name().unwrap().to_str().unwrap();
    let stat = fs::read_to_string(format!("/sys/class/block/{name}/stat")).unwrap();
    let sectors = stat.split_ascii_whitespace().nth(6).unwrap();
    sectors.parse::<u64>().unwrap() * 512
}

/// Writes and syncs until the time is over: some hundred kilobytes a second.
fn load(mount_point: &Path, time: Duration) {
    let began = Instant::now();
    let mut log = File::options();
    let mut log = log
        .create(true)
        .append(true)
        .open(mount_point.join("log"))
        .unwrap();
    for n in 0_u64.. {
        if began.elapsed() >= time {
            break;
        }
        log.write_all(&n.to_le_bytes().repeat(700)).unwrap();
        log.sync_data().unwrap();
        thread::sleep(Duration::from_millis(25));
    }
}

fn every_byte_is_in_a_row_or_in_a_gap() {
    let is_long = std::env::var_os("MOSTRACE_LONG").is_some();
    let days = if is_long { 14 } else { 1 };
    let mut traced = disk(256);
    let kept = disk(16);
    let folder = kept.mount_point().join("ledger");
    let before = counted(&traced);
    let mut keeper = Keeper::start(&folder, &traced);
    // What is written before the recorder begins is in no gap.
    await_hours(&folder, 1);
    let mut breaks = 0;
    for day in 0..days {
        let mount_point = traced.mount_point();
        let writer = thread::spawn(move || load(&mount_point, HOUR * DAY[0]));
        await_hours(&folder, 1);
        match day % 3 {
            0 => {
                keeper.signal(Signal::KILL);
                thread::sleep(HOUR / 2);
                keeper.restart();
                breaks += 1;
                // A machine that sleeps stops its recorder too.
                thread::sleep(HOUR);
                keeper.signal(Signal::STOP);
                thread::sleep(HOUR);
                keeper.signal(Signal::CONT);
            }
            1 => {
                let filler = kept.mount_point().join("filler");
                let filled = Command::new("dd")
                    .args(["if=/dev/zero", "bs=64k", "status=none"])
                    .arg(format!("of={}", filler.display()))
                    .stderr(Stdio::null())
                    .status();
                assert!(!filled.unwrap().success(), "the disk is not full");
                thread::sleep(2 * HOUR);
                fs::remove_file(filler).unwrap();
            }
            _ => {
                keeper.stop();
                keeper.restart();
                breaks += 1;
            }
        }
        writer.join().unwrap();
        if day % 3 == 0 {
            keeper.stop();
            traced.unmount().unwrap();
            traced.mount().unwrap();
            load(&traced.mount_point(), HOUR / 4);
            keeper.restart();
            breaks += 1;
        }
        thread::sleep(HOUR * DAY[1]);
    }
    let counted = counted(&traced) - before;
    keeper.stop();

    let hours = shown(&folder, &["--hours"]);
    let rows = shown(&folder, &["--by", "command"]);
    let gaps = sum(&hours, "gap_write_bytes");
    let watched = sum(&hours, "kernel_write_bytes");
    // The last row of a table is its total only on a terminal, so all rows are summed.
    let written = sum(&rows, "write_bytes") + sum(&rows, "zeroed_bytes");
    let lost = sum(&hours, "lost");
    println!("counted {counted}: {written} in rows, {gaps} in gaps, {lost} lost\n{hours}");
    assert_eq!(watched + gaps, counted, "{hours}");
    assert_eq!(
        column(&hours, "gap_ms")
            .iter()
            .filter(|&&ms| ms > 0)
            .count() as u64,
        breaks
    );
    assert!(gaps > 0, "{hours}");
    if lost == 0 {
        assert!(
            written + gaps >= counted,
            "{written} and {gaps} of {counted}: {hours}"
        );
        assert!(
            written + gaps <= counted + breaks * TWICE,
            "{written} and {gaps} of {counted}: {hours}"
        );
    }
}
