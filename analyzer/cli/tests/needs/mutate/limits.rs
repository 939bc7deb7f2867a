// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the program under limits.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use wait4::Wait4;

/// Processor time of all threads together, which does not depend on the load of the machine.
pub const CPU: Duration = Duration::from_secs(10);
/// The program hangs if none of it runs or wants to run for this long; on a busy machine a run may take long.
const IDLE: Duration = Duration::from_secs(60);
/// Time between two checks of that, which are more expensive than checks for the end.
const LOOK: Duration = Duration::from_secs(1);
/// Bytes in memory at a time.
pub const MEMORY: u64 = 1 << 30;
/// Bytes of address space, so that the machine does not run out of memory. Polars asks for more addresses than memory.
const ADDRESSES: u64 = 8 << 30;
/// Bytes written to files.
pub const WRITTEN: u64 = 1 << 30;

/// The number of the signal that ends a process which used up its processor time.
pub const SIGXCPU: i32 = 24;

/// The outcome of a run.
pub struct Outcome {
    pub status: Option<i32>,
    pub signal: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
    pub cpu: Duration,
    pub memory: u64,
    pub written: u64,
    /// True if it was killed because it did not end.
    pub waited: bool,
    /// True if processes that it started outlive it.
    pub left_processes: bool,
    /// Names of temporary files that it did not remove.
    pub left_files: Vec<OsString>,
}

impl Outcome {
    /// Returns true if the run was ended because it took too much time, or if the measuring program was.
    pub fn is_cut_short(&self) -> bool {
        let is_over = self.signal == Some(SIGXCPU) || self.cpu >= CPU;
        self.waited || is_over || self.status.or(self.signal).is_none()
    }
}

/// Runs the program to its end; its output and temporary files are in `scratch`.
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

/// Adds the limits, and has the peak memory in KiB written to a file. wait4(2) of the program itself would return that of
/// the process that started it, if that is larger.
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

/// Returns 0 if it is unknown, because the program was killed with its group.
fn kibibytes(peak: &Path) -> u64 {
    let text = fs::read_to_string(peak).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// time(1) adds this to the number of a signal that ended the program.
const SIGNALS: i32 = 128;

fn signal(code: i32) -> Option<i32> {
    code.checked_sub(SIGNALS).filter(|signal| *signal > 0)
}

/// Returns true if it ends in time. The exit status can still be asked for then.
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

/// Returns true if any thread of a group runs, wants to run, or waits for a disk.
fn is_running(group: Pid) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let threads = processes.flat_map(|process| {
        let threads = fs::read_dir(process.path().join("task"));
        threads.into_iter().flatten().flatten()
    });
    let stat = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("stat")).ok();
    threads.filter_map(stat).any(|stat| {
        // See proc_pid_stat(5): `pid (comm) state ppid pgrp …`.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let mut fields = rest.split(' ');
        let is_active = matches!(fields.next(), Some("R" | "D"));
        is_active && fields.nth(1) == Some(&group.as_raw_nonzero().to_string())
    })
}

/// Kills the rest of a group; returns true if there was any.
fn kill(group: Pid) -> bool {
    rustix::process::kill_process_group(group, Signal::KILL).is_ok()
}

/// Returns the bytes that it wrote to files; 0 if the kernel does not count them.
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
