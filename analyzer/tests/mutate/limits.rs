// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program, run under limits.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use wait4::Wait4;

/// Of all threads together, which a busy machine does not make longer.
pub const CPU: Duration = Duration::from_secs(10);
/// It waits for what does not come if for so long none of it runs or wants to: on a busy machine a run may take long.
const IDLE: Duration = Duration::from_secs(60);
/// How often that is looked at, which costs more than whether it has ended.
const LOOK: Duration = Duration::from_secs(1);
/// In memory at once.
pub const MEMORY: u64 = 1 << 30;
/// So that the machine does not run out of memory. Polars asks for more addresses than memory.
const ADDRESSES: u64 = 8 << 30;
/// Written to files.
pub const WRITTEN: u64 = 1 << 30;

/// How a run went.
pub struct Outcome {
    pub status: Option<i32>,
    pub signal: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
    pub cpu: Duration,
    pub memory: u64,
    pub written: u64,
    /// It was killed, as it did not come to its end.
    pub waited: bool,
    /// Processes that it started go on without it.
    pub left_processes: bool,
    /// Names of temporary files that it did not remove.
    pub left_files: Vec<OsString>,
}

/// Runs it to its end, with `scratch` for what it prints and for its temporary files.
pub fn run(arguments: &[OsString], scratch: &Path) -> Outcome {
    let (out, err) = (scratch.join("out"), scratch.join("err"));
    let (temporary, peak) = (scratch.join("temporary"), scratch.join("peak"));
    fs::create_dir_all(&temporary).unwrap();
    let mut child = measured(&peak)
        .arg(env!("CARGO_BIN_EXE_mostrace"))
        .args(arguments)
        .env("TMPDIR", &temporary)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let group = Pid::from_child(&child);
    let waited = !ends(group);
    if waited {
        kill(group);
    }
    let written = written(&child);
    let ended = child.wait4().unwrap();
    let left_processes = kill(group) && !waited;
    let left_files = names(&temporary);
    let _ = fs::remove_dir_all(&temporary);
    Outcome {
        status: ended.status.code().filter(|code| *code < SIGNALS),
        signal: ended.status.code().and_then(signal),
        out: fs::read(out).unwrap(),
        err: String::from_utf8_lossy(&fs::read(err).unwrap()).into_owned(),
        cpu: ended.rusage.utime + ended.rusage.stime,
        memory: kibibytes(&peak) << 10,
        written,
        waited,
        left_processes,
        left_files,
    }
}

/// Under the limits, and with its largest memory told to a file, in KiB. wait4(2) of the program itself would tell that of
/// whoever started it, if that has more.
fn measured(peak: &Path) -> Command {
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--cpu={}", CPU.as_secs()))
        .arg(format!("--as={ADDRESSES}"))
        .arg("--core=0")
        .args(["time", "-q", "-f", "%M", "-o"])
        .arg(peak);
    command
}

/// 0 where it could not be told, as the program was killed with all of its group.
fn kibibytes(peak: &Path) -> u64 {
    let text = fs::read_to_string(peak).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// By which time(1) tells that a signal ended the program.
const SIGNALS: i32 = 128;

fn signal(code: i32) -> Option<i32> {
    code.checked_sub(SIGNALS).filter(|signal| *signal > 0)
}

/// Whether it does so in time. It can still be asked about then.
fn ends(process: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let (mut looked, mut ran) = (Instant::now(), Instant::now());
    while ran.elapsed() < IDLE {
        if rustix::process::waitid(WaitId::Pid(process), options)
            .unwrap()
            .is_some()
        {
            return true;
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if is_running(process) {
                ran = looked;
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// Whether any thread of a group runs, wants to, or waits for a disk.
fn is_running(group: Pid) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let threads = processes.flat_map(|process| {
        let threads = fs::read_dir(process.path().join("task"));
        threads.into_iter().flatten().flatten()
    });
    let stat = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("stat")).ok();
    threads.filter_map(stat).any(|stat| {
        // Of proc_pid_stat(5): `pid (comm) state ppid pgrp …`.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let mut fields = rest.split(' ');
        let is_active = matches!(fields.next(), Some("R" | "D"));
        is_active && fields.nth(1) == Some(&group.as_raw_nonzero().to_string())
    })
}

/// Kills what there still is of a group; whether there was anything.
fn kill(group: Pid) -> bool {
    rustix::process::kill_process_group(group, Signal::KILL).is_ok()
}

/// What it wrote to files, bytes; 0 where the kernel does not count it.
fn written(child: &Child) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}
