// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace record` as a user runs it: errors, exit codes, and what a killed recorder leaves behind. The tests run one at a
//! time, because each makes its own load.

pub mod ends;
mod isolated;
pub mod users;

use crate::run;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use isolated::an_isolated_process_is_its_apps;
use mostrace_bundle::entry::Origin;
use mostrace_bundle::{Bundle, Entry, Manifest, layout};
use run::{program, record, say, succeeds};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, nothing_lost, one_by_one, tests, tool, wait};

const FIO: Need = Need::Tool("fio", "fio");
const SFDISK: Need = Need::Tool("sfdisk", "fdisk");
const SETPRIV: Need = Need::Tool("setpriv", "util-linux");
const SCRIPT: Need = Need::Tool("script", "bsdutils");
const PERL: Need = Need::Tool("perl", "perl-base");
/// The user ID of nobody on Debian.
const NOBODY: u32 = 65534;

pub fn suite() -> Suite {
    one_by_one(tests![
        doctor_says_what_auto_would_take,
        wrong_devices_and_commands needs [Need::Loop],
        wrong_names_and_a_missing_dash,
        a_path_names_its_device needs [Need::Loop, Need::Btf],
        apps_are_kept_with_the_recording needs [Need::Loop, Need::Btf],
        an_isolated_process_is_its_apps needs [Need::Loop, Need::Btf, SETPRIV],
        a_whole_disk_names_its_partitions needs [Need::Loop, SFDISK],
        the_terminal_is_the_commands needs [Need::Loop, Need::Btf, SCRIPT],
        a_device_without_filesystem needs [Need::Loop, Need::Btf],
        a_kernel_without_btf needs [Need::Loop, Need::Btf],
        rings_are_as_small_as_asked_and_lose_nothing needs [Need::Loop, Need::Btf],
        what_waits_for_spare_time_comes_too needs [Need::Loop, Need::Btf],
    ])
}

/// Waits until the condition holds, as long as the recorder runs.
fn while_running(recorder: &mut Child, what: &str, is_so: impl Fn() -> bool) {
    wait::until(what, || {
        let ended = recorder.try_wait().unwrap();
        assert!(ended.is_none(), "{what}, and the recorder ended: {ended:?}");
        is_so()
    });
}

/// Returns the one line on stderr, and the exit status.
fn complaint(output: &Output) -> (String, Option<i32>) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    (text.trim_end().to_owned(), output.status.code())
}

fn assert_complains(command: &mut Command, wanted: &str) {
    assert_complains_with(1, command, wanted);
}

fn assert_complains_with(status: i32, command: &mut Command, wanted: &str) {
    let (line, code) = complaint(&command.output().unwrap());
    assert!(line.contains(wanted), "`{line}` lacks `{wanted}`");
    assert_eq!(code, Some(status), "{line}");
}

/// Runs a command and returns its exit status.
fn code_of(command: &mut Command) -> Option<i32> {
    command.output().unwrap().status.code()
}

/// Returns the number of direct requests that have an entry for the file f.
fn direct_entries(bundle: &Path) -> usize {
    let entries = Bundle::open(bundle).unwrap();
    let entries = entries.table(layout::FILE, false).unwrap().unwrap();
    let named = entries.filter(|entry| match entry.as_ref().unwrap() {
        Entry::File(file) => file.name == b"/f" && file.raw.origin == Origin::DIRECT,
        _ => false,
    });
    named.count()
}

fn manifest(bundle: &Path) -> Manifest {
    Bundle::open(bundle).unwrap().manifest().clone()
}

/// A command whose writes reach the device.
fn dd(to: &Path) -> String {
    format!(
        "dd if=/dev/zero of={} bs=4k count=8 oflag=direct status=none",
        to.display()
    )
}

fn wrong_devices_and_commands() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let record = |device: &Path| record(device, &out);
    assert_complains(
        &mut record(Path::new("/dev/null")),
        "/dev/null: not a block device",
    );
    assert_complains(
        &mut record(Path::new("/proc/version")),
        "/proc/version: on proc, which has no block device of its own",
    );
    assert_complains(
        &mut record(Path::new("/dev/no-such")),
        "/dev/no-such: No such file",
    );
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    assert_complains_with(
        127,
        record(disk.device()).args(["--", "no-such-command"]),
        "no-such-command: command not found",
    );
    // The file is found, but the kernel cannot execute it.
    let text = dir.path().join("text");
    fs::write(&text, "no program").unwrap();
    assert_complains_with(
        126,
        record(disk.device()).arg("--").arg(&text),
        "permission denied",
    );
    fs::set_permissions(&text, Permissions::from_mode(0o755)).unwrap();
    assert_complains_with(
        126,
        record(disk.device())
            .arg("--no-snapshot")
            .arg("--")
            .arg(&text),
        "Exec format error",
    );
    for (option, value, says) in [
        ("-u", "no-such-user", "no-such-user: no such user"),
        ("--files", "[", "--files ["),
    ] {
        let said = record(disk.device())
            .args([option, value, "--", "true"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "usage");
        assert!(text.contains(says), "{text}");
    }
    assert!(!out.exists(), "nothing is left behind");
    let usage = code_of(record(disk.device()).args(["-w", "-3"]));
    assert_eq!(usage, Some(2), "usage");
}

fn wrong_names_and_a_missing_dash() {
    let device = Path::new("/dev/loop0");
    for name in ["x.tar.gz", "x.tar.zst", "x"] {
        let output = record(device, Path::new(name)).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("a bundle is NAME.most, a folder, or NAME.most.tar.zst"),
            "{text}"
        );
        assert_eq!(output.status.code(), Some(2), "usage");
    }
    assert_complains_with(
        2,
        record(device, Path::new("x.most")).args(["sh", "-c", "true"]),
        "sh: the command comes after --",
    );
}

fn a_path_names_its_device() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = disk.mount_point().join("f");
    fs::write(&file, "x").unwrap();
    for (name, path) in [("mount.most", &disk.mount_point()), ("file.most", &file)] {
        let out = dir.path().join(name);
        let mut command = record(path, &out);
        let text =
            succeeds(command.args(["--label", "first try", "--", "sh", "-c", &dd(&file)])).err;
        let is_on = format!(
            "{} is on {}, which is traced",
            path.display(),
            disk.device().display()
        );
        assert!(text.contains(&is_on), "{text}");
        let manifest = manifest(&out);
        assert_eq!(Path::new(&manifest.device.path), disk.device());
        assert!(manifest.counts["process_entries"] >= 8);
        assert_eq!(manifest.label.as_deref(), Some("first try"));
        assert_eq!(manifest.sources.files, "all");
        let filesystem = manifest.filesystem.unwrap();
        let features = filesystem.features.unwrap();
        assert!(features.contains(&"has_journal".to_owned()), "{features:?}");
        assert!(filesystem.mount_options.unwrap().contains("rw"));
    }
}

fn apps_are_kept_with_the_recording() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("packages.list");
    fs::write(&list, "no list\n").unwrap();
    let record = |out: &Path| {
        let mut command = record(disk.device(), out);
        command.arg("--packages").arg(&list);
        command.args(["--segment", "1h", "--", "true"]);
        command
    };
    let out = dir.path().join("run.most");
    assert_complains(&mut record(&out), "packages.list: no package in it");
    assert!(!dir.path().join("run.0001.most").exists());
    fs::write(&list, "com.example.a 10001 0 /data/user/0/com.example.a\n").unwrap();
    succeeds(&mut record(&out));
    let bundle = Bundle::open(&dir.path().join("run.0001.most")).unwrap();
    let kept = bundle.packages().unwrap().unwrap();
    assert_eq!(kept.text(), b"com.example.a 10001\n");
    assert!(bundle.shortfalls().is_empty());
    assert!(bundle.manifest().files.contains_key(layout::PACKAGES));
}

fn a_whole_disk_names_its_partitions() {
    let disk = LoopExt4::new(&LoopOptions {
        partitioned: true,
        ..LoopOptions::default()
    })
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let wanted = format!(
        "no filesystem recognised on the whole disk (its partitions: {}p1, {} ext4 at {})",
        disk.disk().display(),
        disk.device().display(),
        disk.mount_point().display()
    );
    let text = succeeds(record(disk.disk(), dir.path().join("t.most")).args(["--", "true"])).err;
    assert!(text.contains(&wanted), "{text}");
}

/// While a command runs, nothing of ours is on the terminal: a redrawn line would erase what it printed.
fn the_terminal_is_the_commands() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let shown = |name: &str, options: &str| {
        let line = format!(
            "{} record -d {} -o {} --no-snapshot {options} -- sh -c 'printf begin; sleep 1; printf end'",
            env!("CARGO_BIN_EXE_mostrace"),
            disk.device().display(),
            dir.path().join(name).display(),
        );
        let mut script = Command::new("script");
        let output = script
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::null())
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    let auto = shown("auto.most", "");
    assert!(
        auto.contains("beginend") && auto.contains("process, "),
        "{auto:?}"
    );
    assert!(!auto.contains('\u{1b}'), "{auto:?}");
    let always = shown("always.most", "--progress always");
    assert!(
        always.contains('\u{1b}') && always.contains(" lost; Ctrl-C ends"),
        "{always:?}"
    );
    assert_eq!(shown("quiet.most", "--quiet"), "beginend");
}

fn a_device_without_filesystem() {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    tool::run(tool::command("wipefs").arg("-aq").arg(disk.device()));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let other = dir.path().join("other.most");
    let text = succeeds(record(disk.device(), &other).args(["--", "true"])).err;
    assert!(
        text.contains("no snapshot: ") && text.contains("no filesystem recognised"),
        "{text}"
    );
    let idle = dir.path().join("idle.most");
    let text = succeeds(record(disk.device(), &idle).args(["--no-snapshot", "--", "true"])).err;
    assert!(text.contains("was seen: was this the device?"), "{text}");
    let raw = dd(disk.device());
    succeeds(record(disk.device(), &out).args(["--no-snapshot", "--", "sh", "-c", &raw]));
}

/// Runs in a mount namespace in which the kernel's BTF is hidden.
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
    let probes = &["--entries", "bpf", "--", "true"];
    assert_complains(&mut hidden(probes), "no BTF");
    succeeds(&mut hidden(&["--", "true"]));
    let out = dir.path().join("t.most");
    let recorded = manifest(&out);
    assert_eq!(recorded.sources.entries, "tracefs");
    assert!(
        recorded
            .passed_over
            .iter()
            .any(|why| why.contains("no BTF")),
        "{:?}",
        recorded.passed_over
    );
    fs::remove_dir_all(&out).unwrap();
    // A file replaces the kernel's BTF.
    let file = disk.mount_point().join("f");
    let btf = dir.path().join("vmlinux.btf");
    fs::copy("/sys/kernel/btf/vmlinux", &btf).unwrap();
    let by = |btf: &Path| {
        let options = ["--source", "bpf", "--entries", "bpf", "--btf"];
        let command = [btf.to_str().unwrap(), "--", "sh", "-c", &dd(&file)];
        hidden(&[&options[..], &command].concat())
    };
    assert_complains(&mut by(&file), "f: No such file");
    assert_complains(&mut by(&disk.image()), "disk.img: no BTF");
    // Whatever is recorded with, it is an error, and not passed over.
    let mut with_any = record(disk.device(), &out);
    let said = say(with_any.args(["--btf", "/etc/passwd", "--", "true"])).ended(1);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    said.complains("/etc/passwd: no BTF");
    assert!(!out.exists());
    succeeds(&mut by(&btf));
    assert_eq!(direct_entries(&out), 8);
    fs::remove_dir_all(&out).unwrap();
    succeeds(&mut hidden(&["--entries", "none", "--", "true"]));
}

/// Each ring is mapped once, because everything mapped counts as the recorder's memory; filled several times over, its
/// records are still complete.
fn rings_are_as_small_as_asked_and_lose_nothing() {
    const WRITES: usize = 3000;
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let maps = dir.path().join("maps");
    let writes = dd(&disk.mount_point().join("f")).replace("count=8", &format!("count={WRITES}"));
    let script = format!("cp /proc/$PPID/maps {}; {writes}", maps.display());
    let options = ["--source", "bpf", "--entries", "bpf", "--ring-size", "64K"];
    succeeds(
        record(disk.device(), &out)
            .args(options)
            .args(["--", "sh", "-c", &script]),
    );
    let mapped: usize = fs::read_to_string(&maps)
        .unwrap()
        .lines()
        .filter(|line| line.ends_with("bpf-map"))
        .map(|line| {
            let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            usize::from_str_radix(to, 16).unwrap() - usize::from_str_radix(from, 16).unwrap()
        })
        .filter(|bytes| *bytes >= 1 << 16)
        .sum();
    let page = rustix::param::page_size();
    // Entries and block events share one.
    let rings = 1 + usize::from(manifest(&out).sources.causes == "bpf");
    assert_eq!(
        mapped,
        rings * ((1 << 16) + page),
        "{}",
        fs::read_to_string(&maps).unwrap()
    );
    nothing_lost(&manifest(&out).losses);
    assert_eq!(direct_entries(&out), WRITES);
}

/// Lets the recorder and what follows in a script share one CPU, on which there is no time to spare until `kill $hog`.
const NO_TIME_TO_SPARE: &str = "taskset -acp 0 $PPID >/dev/null; taskset -cp 0 $$ >/dev/null; while kill -0 $$ 2>/dev/null; do :; done & hog=$!";

/// What has no room in memory waits in a file without a name, and afterwards the bundle has all of it.
fn what_waits_for_spare_time_comes_too() {
    const WRITES: usize = 10_000;
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (out, seen) = (dir.path().join("t.most"), dir.path().join("seen"));
    let writes = dd(&disk.mount_point().join("f")).replace("count=8", &format!("count={WRITES}"));
    let script = format!(
        "{NO_TIME_TO_SPARE}; {writes}; ls -l /proc/$PPID/fd {} >{}; kill $hog",
        out.display(),
        seen.display()
    );
    let options = ["--source", "bpf", "--entries", "bpf", "--ring-size", "64K"];
    succeeds(
        record(disk.device(), &out)
            .args(options)
            .args(["--", "sh", "-c", &script]),
    );
    let seen = fs::read_to_string(seen).unwrap();
    let (deleted, others): (Vec<&str>, _) = seen
        .lines()
        .filter(|line| line.contains("backlog"))
        .partition(|line| line.ends_with("/backlog (deleted)"));
    assert!(!deleted.is_empty() && others.is_empty(), "{seen}");
    let made = manifest(&out);
    nothing_lost(&made.losses);
    assert_eq!(direct_entries(&out), WRITES);
    assert!(
        made.counts["events"] >= 3 * WRITES as u64,
        "{:?}",
        made.counts
    );
    if made.sources.causes == "bpf" {
        assert!(
            made.counts["call_entries"] >= WRITES as u64,
            "{:?}",
            made.counts
        );
    }
}

fn doctor_says_what_auto_would_take() {
    let text = tool::text(program().arg("doctor"));
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("auto takes: events from "), "{text}");
    let first = text.lines().next().unwrap();
    assert!(first.contains(" can be recorded here"), "{text}");
    // A user learns that only root can tell, in order and without a library's messages.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let copy = dir.path().join("mostrace");
    fs::copy(env!("CARGO_BIN_EXE_mostrace"), &copy).unwrap();
    tool::run(tool::command("chmod").args(["-R", "a+rx"]).arg(dir.path()));
    let said = succeeds(
        Command::new(&copy)
            .uid(65534)
            .args(["doctor", "-d", "/tmp"]),
    );
    assert!(said.out.starts_with("Only root can record"), "{}", said.out);
    assert!(
        said.out.ends_with("auto takes: only root can tell\n"),
        "{}",
        said.out
    );
    assert_eq!(said.err, "");
}
