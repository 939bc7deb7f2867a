// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace record` as a user meets it: errors, exit codes, and what a killed recorder leaves.
//! One at a time: ftrace has one user.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};

use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, run_one_by_one, tests, wait};

const FIO: Need = Need::Tool("fio", "fio");

fn main() -> ExitCode {
    run_one_by_one(tests![
        doctor_says_what_auto_would_take,
        wrong_devices_and_commands needs [Need::Loop],
        without_root needs [Need::Loop],
        a_device_without_filesystem needs [Need::Loop, Need::Btf],
        a_kernel_without_btf needs [Need::Loop, Need::Btf],
        the_exit_status_of_the_command_passes_through needs [Need::Loop, Need::Btf],
        until_interrupted needs [Need::Loop, Need::Btf],
        a_command_that_does_not_end_is_asked_to needs [Need::Loop, Need::Btf],
        disk_full_while_recording needs [Need::Loop, Need::Btf, FIO],
        killed_while_recording needs [Need::Loop, Need::Btf],
    ])
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

/// Waits until it is so, as long as the recorder runs.
fn while_running(recorder: &mut Child, what: &str, is_so: impl Fn() -> bool) {
    wait::until(what, || {
        let ended = recorder.try_wait().unwrap();
        assert!(ended.is_none(), "{what}, and the recorder ended: {ended:?}");
        is_so()
    });
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

fn wrong_devices_and_commands() {
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

fn without_root() {
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

fn a_device_without_filesystem() {
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
fn a_kernel_without_btf() {
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

fn the_exit_status_of_the_command_passes_through() {
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

fn until_interrupted() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let mut recorder = record(disk.device(), &out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while_running(&mut recorder, "no manifest", || {
        out.join("manifest.json").exists()
    });
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
}

fn a_command_that_does_not_end_is_asked_to() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let status = mostrace()
        .args(["record", "-w", "1", "-o"])
        .arg(dir.path().join("w.most"))
        .arg("-d")
        .arg(disk.device())
        .args(["--", "sleep", "infinity"])
        .output()
        .unwrap()
        .status;
    assert_eq!(status.code(), Some(143));
}

fn disk_full_while_recording() {
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
        "exec fio --name=x --filename={}/f --size=32m --rw=randwrite --bs=4k --direct=1 --time_based --runtime=1d",
        disk.mount_point().display()
    );
    // That it ends at all is because the disk is full.
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
fn killed_while_recording() {
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
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let group = format!("-{}", recorder.id());
    while_running(&mut recorder, "no entries", || {
        fs::metadata(out.join("process.entries")).is_ok_and(|m| m.len() >= 4096)
    });
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
    wait::until("the tracer was left on", || {
        !current.exists() || fs::read_to_string(current).unwrap().trim() == "nop"
    });
}

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
