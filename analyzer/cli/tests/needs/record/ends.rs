// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a recording ends: with its command, by a signal, by a full disk.

use super::*;

pub fn suite() -> Suite {
    one_by_one(tests![
        what_a_killed_recorder_left_goes needs [Need::Loop, Need::Btf],
        what_a_command_leaves_running_is_waited_for needs [Need::Loop, Need::Btf],
        what_is_waited_for_has_no_more_time_than_the_recording needs [Need::Loop, Need::Btf],
        the_exit_status_of_the_command_passes_through needs [Need::Loop, Need::Btf],
        until_interrupted needs [Need::Loop, Need::Btf],
        a_command_that_does_not_end_is_asked_to needs [Need::Loop, Need::Btf],
        disk_full_while_recording needs [Need::Loop, Need::Btf, FIO],
        disk_full_while_records_wait needs [Need::Loop, Need::Btf, FIO],
        killed_while_recording needs [Need::Loop, Need::Btf],
    ])
}

fn what_a_killed_recorder_left_goes() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let left = || fs::read_dir(&temporary).unwrap().count();
    let out = dir.path().join("killed.most");
    let mut recorder = record(disk.device(), &out)
        .env("TMPDIR", &temporary)
        .args(["--", "sleep", "600"])
        .process_group(0)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let group = format!("-{}", recorder.id());
    while_running(&mut recorder, "no temporary folder", || {
        out.join("manifest.json").exists() && left() > 0
    });
    tool::kill("-KILL", &group);
    recorder.wait().unwrap();
    assert_tracer_is_free();
    assert_eq!(left(), 1);
    let next = dir.path().join("next.most");
    succeeds(
        record(disk.device(), &next)
            .env("TMPDIR", &temporary)
            .args(["--", "true"]),
    );
    assert_eq!(left(), 0);
}

fn what_a_command_leaves_running_is_waited_for() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "(sleep 1.5; {}) </dev/null >/dev/null 2>&1 & exit 3",
        dd(&disk.mount_point().join("f"))
    );
    let run = |name: &str, args: &[&str]| {
        let out = dir.path().join(name);
        let mut command = record(disk.device(), &out);
        let output = command
            .args(args)
            .args(["--", "sh", "-c", &script])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let table = Bundle::open(&out)
            .unwrap()
            .table(layout::PROCESS, false)
            .unwrap()
            .unwrap();
        let direct = table.filter(|entry| match entry.as_ref().unwrap() {
            Entry::Process(process) => process.origin == Origin::DIRECT,
            _ => false,
        });
        (text, direct.count())
    };
    let (text, direct) = run("no-wait.most", &["--no-wait", "--no-snapshot"]);
    assert!(!text.contains("has ended, but not"), "{text}");
    assert_eq!(direct, 0, "{text}");
    std::thread::sleep(Duration::from_secs(2));
    let (text, direct) = run("wait.most", &["--no-snapshot"]);
    assert!(
        text.contains("sh has ended, but not what it started"),
        "{text}"
    );
    assert!(direct >= 8, "{direct}: {text}");
}

/// The probes wake nobody while there is no IO.
fn what_is_waited_for_has_no_more_time_than_the_recording() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let mut waiting = record(disk.device(), &out);
    waiting.args(["--no-snapshot", "--source", "bpf", "-w", "1", "--"]);
    waiting.args(["sh", "-c", "sleep 15 </dev/null >/dev/null 2>&1 & exit 3"]);
    assert_eq!(code_of(&mut waiting), Some(3));
    let clock = manifest(&out).clock;
    let recorded = Duration::from_nanos(clock.stop_mono_ns - clock.start_mono_ns);
    assert!(recorded < Duration::from_secs(6), "{recorded:?}");
}

fn the_exit_status_of_the_command_passes_through() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let out = dir.path().join(format!("{code}.most.tar.zst"));
        let ended = code_of(record(disk.device(), &out).args(["--", "sh", "-c", script]));
        assert_eq!(ended, Some(code), "{script}");
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
    let written = dd(&disk.mount_point().join("f"));
    tool::run(tool::command("sh").args(["-c", &written]));
    tool::kill("-INT", &recorder.id().to_string());
    assert_eq!(recorder.wait().unwrap().code(), Some(0));
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"complete\""), "{manifest}");
    assert!(fs::metadata(out.join("process.entries")).unwrap().len() >= 16 + 8 * 88);
}

fn a_command_that_does_not_end_is_asked_to() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut endless = record(disk.device(), dir.path().join("w.most"));
    endless.args(["-w", "1", "--", "sleep", "infinity"]);
    assert_eq!(code_of(&mut endless), Some(143));
}

fn disk_full_while_recording() {
    a_full_disk_ends_the_recording("true");
}

/// What waits gives its room back to the files that are made of it.
fn disk_full_while_records_wait() {
    a_full_disk_ends_the_recording(NO_TIME_TO_SPARE);
}

fn a_full_disk_ends_the_recording(first: &str) {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let small = tempfile::tempdir().unwrap();
    let mut mount = tool::command("mount");
    tool::run(
        mount
            .args(["-t", "tmpfs", "-o", "size=256k", "none"])
            .arg(small.path()),
    );
    let out = small.path().join("t.most");
    let script = format!(
        "{first}; exec fio --name=x --filename={}/f --size=32m --rw=randwrite --bs=4k --direct=1 --time_based --runtime=1d",
        disk.mount_point().display()
    );
    // It ends only because the disk is full.
    let output = record(disk.device(), &out)
        .args([
            "--source",
            "bpf",
            "--ring-size",
            "64K",
            "--",
            "sh",
            "-c",
            &script,
        ])
        .output();
    let files = fs::read_dir(&out).unwrap().map(|file| file.unwrap());
    let kept: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    let bundle_read = program()
        .args(["analyze", "--by", "class"])
        .arg(&out)
        .output();
    tool::run(tool::command("umount").arg(small.path()));
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().last().unwrap_or_default();
    assert!(
        line.contains("No space left on device: the recording ends here; what came before is in ")
            && line.ends_with("t.most"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(kept > 100_000, "{kept} bytes are left");
    assert_tracer_is_free();
    let read = bundle_read.unwrap();
    assert!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
}

/// More CPUs than a machine that runs the tests has.
const MOST_CPUS: u32 = 1024;

/// SIGKILL leaves a bundle that can be read up to its last whole record, and a free tracer.
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
    while_running(&mut recorder, "no entries, or no events", || {
        let has = |name: &str| fs::metadata(out.join(name)).is_ok_and(|m| m.len() >= 4096);
        has("process.entries") && (0..MOST_CPUS).any(|cpu| has(&layout::events_of_cpu(cpu)))
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
    // The table is cut as if the kill had come in the middle of a write.
    let table = out.join("process.entries");
    let len = fs::metadata(&table).unwrap().len();
    fs::File::options()
        .write(true)
        .open(&table)
        .unwrap()
        .set_len(len - 13)
        .unwrap();
    let said = tool::text(program().arg("analyze").arg(&out));
    let first = said.lines().next().unwrap_or_default().to_lowercase();
    assert!(
        first.contains("cut short") || first.contains("killed"),
        "{first}"
    );
}

/// The guard needs a moment after a kill.
fn assert_tracer_is_free() {
    let current = Path::new("/sys/kernel/tracing/current_tracer");
    wait::until("the tracer was left on", || {
        !current.exists() || fs::read_to_string(current).unwrap().trim() == "nop"
    });
}
