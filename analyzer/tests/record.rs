// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace record` as a user meets it: errors, exit codes, and what a killed recorder leaves.
#![cfg(feature = "record")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[path = "common/loopdev.rs"]
mod loopdev;
use loopdev::{LoopExt4, LoopOptions};

/// One at a time: ftrace has one user.
static ONE: Mutex<()> = Mutex::new(());

fn privileged() -> Option<MutexGuard<'static, ()>> {
    match loopdev::privileged() {
        Ok(()) => Some(ONE.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

fn mostrace() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mostrace"))
}

fn record(device: &Path, out: &Path) -> Command {
    let mut command = mostrace();
    command
        .arg("record")
        .arg("-d")
        .arg(device)
        .arg("-o")
        .arg(out);
    command
}

/// The one line on stderr, and the exit status.
fn complaint(output: &Output) -> (String, Option<i32>) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    (text.trim_end().to_owned(), output.status.code())
}

fn assert_complains(command: &mut Command, wanted: &str) {
    let (line, code) = complaint(&command.output().unwrap());
    assert!(line.contains(wanted), "`{line}` lacks `{wanted}`");
    assert_eq!(code, Some(1), "{line}");
}

#[test]
fn wrong_devices_and_commands() {
    let Some(_one) = privileged() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let record = |device: &Path| record(device, &out);
    assert_complains(
        &mut record(Path::new("/etc/passwd")),
        "/etc/passwd: not a block device",
    );
    assert_complains(
        &mut record(Path::new("/dev/no-such")),
        "/dev/no-such: No such file",
    );
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    assert_complains(
        record(disk.device()).args(["--", "no-such-command"]),
        "no-such-command: command not found",
    );
    assert_complains(
        record(disk.device()).args(["--files", "[", "--", "true"]),
        "--files [",
    );
    assert!(!out.exists(), "nothing is left behind");
    let status = record(disk.device())
        .args(["-w", "-3"])
        .output()
        .unwrap()
        .status;
    assert_eq!(status.code(), Some(2), "usage");
}

#[test]
fn without_root() {
    let Some(_one) = privileged() else { return };
    // The test binary's folder may be closed to others: a copy is not.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let copy = dir.path().join("mostrace");
    fs::copy(env!("CARGO_BIN_EXE_mostrace"), &copy).unwrap();
    let chmod = Command::new("chmod")
        .args(["-R", "a+rx"])
        .arg(dir.path())
        .status()
        .unwrap();
    assert!(chmod.success());
    assert_complains(
        Command::new(&copy)
            .uid(65534)
            .args(["record", "-d", "/dev/loop0", "-o", "/tmp/x.most"]),
        "record needs root",
    );
}

#[test]
fn a_device_without_filesystem() {
    let Some(_one) = privileged() else { return };
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    let wipe = Command::new("wipefs")
        .args(["-aq"])
        .arg(disk.device())
        .status()
        .unwrap();
    assert!(wipe.success());
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let record = || record(disk.device(), &out);
    assert_complains(record().args(["--", "true"]), "no filesystem recognised");
    let raw = record()
        .args([
            "--no-snapshot",
            "--",
            "dd",
            "if=/dev/zero",
            "bs=64k",
            "count=4",
            "oflag=direct",
        ])
        .arg(format!("of={}", disk.device().display()))
        .output()
        .unwrap();
    assert!(
        raw.status.success(),
        "{}",
        String::from_utf8_lossy(&raw.stderr)
    );
}

/// A mount namespace in which the kernel's BTF is hidden.
#[test]
fn a_kernel_without_btf() {
    let Some(_one) = privileged() else { return };
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs none /sys/kernel/btf && exec \"$0\" record -d {} -o {} {}",
        disk.device().display(),
        dir.path().join("t.most").display(),
        "\"$@\""
    );
    let hidden = |args: &[&str]| {
        let mut c = Command::new("unshare");
        c.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_mostrace")])
            .args(args);
        c
    };
    assert_complains(&mut hidden(&["--", "true"]), "no BTF");
    let without = hidden(&["--entries", "none", "--", "true"])
        .output()
        .unwrap();
    assert!(
        without.status.success(),
        "{}",
        String::from_utf8_lossy(&without.stderr)
    );
}

#[test]
fn the_exit_status_of_the_command_passes_through() {
    let Some(_one) = privileged() else { return };
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let out = dir.path().join(format!("{code}.most.tar.zst"));
        let status = record(disk.device(), &out)
            .args(["--", "sh", "-c", script])
            .output()
            .unwrap()
            .status;
        assert_eq!(status.code(), Some(code), "{script}");
        assert!(out.is_file());
        assert!(
            !dir.path().join(format!("{code}.most")).exists(),
            "only the archive is left"
        );
    }
}

#[test]
fn until_interrupted_or_for_some_seconds() {
    let Some(_one) = privileged() else { return };
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let mut recorder = record(disk.device(), &out).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !out.join("manifest.json").exists() {
        assert!(Instant::now() < deadline, "no manifest within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    let written = Command::new("dd")
        .args([
            "if=/dev/zero",
            "bs=4k",
            "count=8",
            "oflag=direct",
            "status=none",
        ])
        .arg(format!("of={}", disk.mount_point().join("f").display()))
        .status()
        .unwrap();
    assert!(written.success());
    let id = recorder.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(recorder.wait().unwrap().code(), Some(0));
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"complete\""), "{manifest}");
    assert!(fs::metadata(out.join("process.entries")).unwrap().len() >= 16 + 8 * 88);

    // A command that does not end is asked to.
    let started = Instant::now();
    let status = mostrace()
        .args(["record", "-w", "1", "-o"])
        .arg(dir.path().join("w.most"))
        .arg("-d")
        .arg(disk.device())
        .args(["--", "sleep", "50"])
        .output()
        .unwrap()
        .status;
    assert_eq!(status.code(), Some(143));
    assert!(started.elapsed() < Duration::from_secs(40));
}

#[test]
fn disk_full_while_recording() {
    let Some(_one) = privileged() else { return };
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let small = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(small.path())
        .status()
        .unwrap();
    assert!(mounted.success());
    let out = small.path().join("t.most");
    let script = format!(
        "exec fio --name=x --filename={}/f --size=32m --rw=randwrite --bs=4k --direct=1 --time_based --runtime=60",
        disk.mount_point().display()
    );
    let started = Instant::now();
    let output = record(disk.device(), &out)
        .args(["--", "sh", "-c", &script])
        .output();
    let bundle_read = mostrace()
        .args(["analyze", "--by", "class"])
        .arg(&out)
        .output();
    let unmounted = Command::new("umount").arg(small.path()).status().unwrap();
    assert!(unmounted.success());
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().last().unwrap_or_default();
    assert!(
        line.contains("No space left on device") && line.contains("t.most"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        started.elapsed() < Duration::from_secs(40),
        "it stops when the disk is full"
    );
    assert_tracer_is_free();
    if cfg!(feature = "analyze") {
        let read = bundle_read.unwrap();
        assert!(
            read.status.success(),
            "{}",
            String::from_utf8_lossy(&read.stderr)
        );
    }
}

/// SIGKILL leaves a bundle that reads up to its last whole record, and a free tracer.
#[test]
fn killed_while_recording() {
    let Some(_one) = privileged() else { return };
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let script = format!(
        "while :; do echo x > {0}/f; sync {0}/f; done",
        disk.mount_point().display()
    );
    let mut recorder = record(disk.device(), &out)
        .args(["--", "sh", "-c", &script])
        .process_group(0)
        .spawn()
        .unwrap();
    let group = format!("-{}", recorder.id());
    let deadline = Instant::now() + Duration::from_secs(60);
    let events = || fs::metadata(out.join("process.entries")).map_or(0, |m| m.len());
    while events() < 4096 {
        assert!(Instant::now() < deadline, "no entries within a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .status()
        .unwrap();
    assert_tracer_is_free();
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"recording\""));
    if cfg!(feature = "analyze") {
        // As if the kill had come in the middle of a write.
        let table = out.join("process.entries");
        let len = fs::metadata(&table).unwrap().len();
        fs::File::options()
            .write(true)
            .open(&table)
            .unwrap()
            .set_len(len - 13)
            .unwrap();
        let output = mostrace().arg("analyze").arg(&out).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let first = said.lines().next().unwrap_or_default().to_lowercase();
        assert!(
            first.contains("cut short") || first.contains("killed"),
            "{first}"
        );
    }
}

/// The guard needs a moment after a kill.
fn assert_tracer_is_free() {
    let current = Path::new("/sys/kernel/tracing/current_tracer");
    let deadline = Instant::now() + Duration::from_secs(10);
    while current.exists() && fs::read_to_string(current).unwrap().trim() != "nop" {
        assert!(Instant::now() < deadline, "the tracer was left on");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn doctor_says_what_auto_would_take() {
    let output = mostrace().arg("doctor").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.lines()
            .last()
            .unwrap()
            .starts_with("auto takes: events from "),
        "{text}"
    );
}
