// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace record` as a user runs it: errors, exit codes, and what a killed recorder leaves behind. The tests run one at a
//! time, because each makes its own load.

use crate::run;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use mostrace_bundle::entry::Origin;
use mostrace_bundle::{Bundle, Entry, Manifest, layout};
use run::{program, record, say, succeeds};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, nothing_lost, one_by_one, tests, tool, wait};

const FIO: Need = Need::Tool("fio", "fio");
const SFDISK: Need = Need::Tool("sfdisk", "fdisk");
const SCRIPT: Need = Need::Tool("script", "bsdutils");
const PERL: Need = Need::Tool("perl", "perl-base");
/// The user ID of nobody on Debian.
const NOBODY: u32 = 65534;

pub fn suite() -> Suite {
    one_by_one(tests![
        doctor_says_what_auto_would_take,
        wrong_devices_and_commands needs [Need::Loop],
        wrong_names_and_a_missing_dash,
        links_are_not_followed needs [Need::Loop, Need::Btf],
        a_bundle_is_its_owners_alone needs [Need::Loop, Need::Btf],
        tools_are_the_systems_own needs [Need::Loop, Need::Btf],
        what_a_killed_recorder_left_goes needs [Need::Loop, Need::Btf],
        a_command_of_another_user needs [Need::Loop, Need::Btf],
        of_the_recorders_another_user_gets_little needs [Need::Loop, Need::Btf],
        another_user_has_not_the_recorders_terminal needs [Need::Loop, Need::Btf, SCRIPT, PERL],
        an_interrupt_reaches_another_users_command needs [Need::Loop, Need::Btf, PERL],
        who_called_sudo_is_told_by_numbers needs [Need::Loop, Need::Btf],
        what_a_command_leaves_running_is_waited_for needs [Need::Loop, Need::Btf],
        what_is_waited_for_has_no_more_time_than_the_recording needs [Need::Loop, Need::Btf],
        a_path_names_its_device needs [Need::Loop, Need::Btf],
        apps_are_kept_with_the_recording needs [Need::Loop, Need::Btf],
        a_whole_disk_names_its_partitions needs [Need::Loop, SFDISK],
        the_terminal_is_the_commands needs [Need::Loop, Need::Btf, SCRIPT],
        without_root needs [Need::Loop],
        a_device_without_filesystem needs [Need::Loop, Need::Btf],
        a_kernel_without_btf needs [Need::Loop, Need::Btf],
        rings_are_as_small_as_asked_and_lose_nothing needs [Need::Loop, Need::Btf],
        the_exit_status_of_the_command_passes_through needs [Need::Loop, Need::Btf],
        until_interrupted needs [Need::Loop, Need::Btf],
        a_command_that_does_not_end_is_asked_to needs [Need::Loop, Need::Btf],
        deferred_records_come_at_the_end needs [Need::Loop, Need::Btf],
        disk_full_while_recording needs [Need::Loop, Need::Btf, FIO],
        disk_full_while_records_wait needs [Need::Loop, Need::Btf, FIO],
        killed_while_recording needs [Need::Loop, Need::Btf],
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

/// If somebody else has planted a link, nothing is written to its target.
fn links_are_not_followed() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("file"), "precious").unwrap();
    for target in ["folder", "file", "nothing"] {
        for (name, link) in [
            ("a.most", "a.most"),
            ("b.most.tar.zst", "b.most.tar.zst"),
            ("c.most.tar.zst", "c.most"),
        ] {
            symlink(at(target), at(link)).unwrap();
            assert_complains(
                record(disk.device(), at(name)).args(["--", "true"]),
                "exists already",
            );
            fs::remove_file(at(link)).unwrap();
        }
    }
    // The archive's name is still free while recording.
    let archive = at("d.most.tar.zst");
    let script = format!("ln -s {} {}", at("nothing").display(), archive.display());
    assert_complains(
        record(disk.device(), &archive).args(["-q", "--no-snapshot", "--", "sh", "-c", &script]),
        "d.most.tar.zst: File exists",
    );
    assert!(
        at("d.most/manifest.json").exists(),
        "what was recorded stays"
    );
    assert!(!at("nothing").exists());
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "precious");
    assert_eq!(fs::read_dir(at("folder")).unwrap().count(), 0);
}

fn a_bundle_is_its_owners_alone() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let of = |path: &Path| {
        let meta = fs::symlink_metadata(path).unwrap();
        (meta.mode() & 0o7777, meta.uid(), meta.gid())
    };
    let own = of(dir.path());
    for (sudo, uid, gid) in [(false, own.1, own.2), (true, NOBODY, 65533)] {
        for name in ["a.most", "a.most.tar.zst"] {
            let out = dir.path().join(name);
            let mut command = record(disk.device(), &out);
            command.env_remove("SUDO_UID").env_remove("SUDO_GID");
            if sudo {
                command.env("SUDO_UID", uid.to_string());
                command.env("SUDO_GID", gid.to_string());
            }
            let script = dd(&disk.mount_point().join("f"));
            succeeds(command.args(["--", "sh", "-c", &script]));
            if out.is_file() {
                assert_eq!(of(&out), (0o600, uid, gid));
                fs::remove_file(out).unwrap();
                continue;
            }
            assert_eq!(of(&out), (0o700, uid, gid));
            let files: Vec<_> = fs::read_dir(&out)
                .unwrap()
                .map(|e| e.unwrap().path())
                .collect();
            assert!(files.len() >= 6, "{files:?}");
            for file in files {
                assert_eq!(of(&file), (0o600, uid, gid), "{}", file.display());
            }
            fs::remove_dir_all(out).unwrap();
        }
    }
}

/// The caller's PATH is used only for the command.
fn tools_are_the_systems_own() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("was-run");
    let hostile = dir.path().join("bin");
    fs::create_dir(&hostile).unwrap();
    for tool in [
        "sh", "blktrace", "e2image", "dumpe2fs", "debugfs", "mount", "modprobe", "sleep",
    ] {
        let path = hostile.join(tool);
        fs::write(
            &path,
            format!("#!/bin/sh\necho {tool} >>{}\n", marker.display()),
        )
        .unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let out = dir.path().join("t.most");
    succeeds(
        record(disk.device(), &out)
            .env("PATH", &hostile)
            .args(["--", "/bin/true"]),
    );
    succeeds(program().arg("analyze").arg(&out).env("PATH", &hostile));
    assert!(!marker.exists(), "{}", fs::read_to_string(marker).unwrap());
    assert!(manifest(&out).snapshot.is_some());
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

fn a_command_of_another_user() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = open_folder();
    let said = dir.path().join("said");
    let payload = r#"{"workload": "w", "payload_bytes": 7, "file_bytes": 8, "transactions": 1,
        "elapsed_ns": 2, "settings": {}}"#;
    let script = format!(
        "echo $(id -u) $(id -g) $(id -G) $USER $HOME >{}; echo '{payload}' >$MOSTRACE_PAYLOAD",
        said.display()
    );
    let out = dir.path().join("t.most");
    succeeds(record(disk.device(), &out).args(["-u", "nobody", "--", "sh", "-ec", &script]));
    let id = |option: &str| {
        let id = tool::text(tool::command("id").args([option, "nobody"]));
        id.trim().to_owned()
    };
    let expected = [id("-u"), id("-g"), id("-G"), "nobody".into()].join(" ");
    let said = fs::read_to_string(said).unwrap();
    assert!(
        said.starts_with(&expected) && !said.contains("/root"),
        "{said}, not {expected}"
    );
    assert_eq!(manifest(&out).payload.unwrap().payload_bytes, 7);
}

/// Makes a folder that everybody may write to.
fn open_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    dir
}

/// The command gets the environment that sudo keeps, and only the three standard files.
fn of_the_recorders_another_user_gets_little() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = open_folder();
    let secret = dir.path().join("secret");
    fs::write(&secret, "precious").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let said = dir.path().join("said");
    let script = format!("env >{0}; cat <&9 >>{0} 2>&1 || :", said.display());
    let path = std::env::var("PATH").unwrap() + ":/of/the/caller";
    let recorded = |name: &str, user: &str| {
        let mut held = Command::new("sh");
        held.args(["-c", "exec \"$@\" 9<\"$0\""]).arg(&secret);
        held.args([env!("CARGO_BIN_EXE_mostrace"), "record", "-q", "-d"]);
        held.arg(disk.device()).arg("-o").arg(dir.path().join(name));
        held.args(["-u", user, "--", "sh", "-c", &script])
            .env("OF_ROOT", "precious")
            .env("LC_TIME", "C")
            .env("TERM", "vt100")
            .env("PATH", &path);
        succeeds(&mut held);
        let text = fs::read_to_string(&said).unwrap();
        fs::remove_file(&said).unwrap();
        text
    };
    let text = recorded("theirs.most", "nobody");
    assert!(!text.contains("precious"), "{text}");
    let kept = [
        "LC_TIME=C",
        "TERM=vt100",
        "USER=nobody",
        "SHELL=",
        "MOSTRACE_PAYLOAD=",
    ];
    for line in kept
        .map(str::to_owned)
        .into_iter()
        .chain([format!("PATH={path}")])
    {
        assert!(text.contains(&line), "{line}: {text}");
    }
    // Root's own command runs as nobody else.
    let text = recorded("own.most", "root");
    assert_eq!(text.matches("precious").count(), 2, "{text}");
}

/// Sets `dev.tty.legacy_tiocsti` while it lives, if the kernel has it.
struct Typing(Option<String>);

const TYPING: &str = "/proc/sys/dev/tty/legacy_tiocsti";

impl Typing {
    fn on() -> Typing {
        let before = fs::read_to_string(TYPING).ok();
        if before.is_some() {
            // A kernel that does not allow it has TIOCSTI disabled anyway.
            let _ = fs::write(TYPING, "1");
        }
        Typing(before)
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = fs::write(TYPING, before);
        }
    }
}

/// Whatever it types into the terminal would be run by the shell there.
fn another_user_has_not_the_recorders_terminal() {
    const TIOCSTI: &str = "$| = 1; my $c = 'x'; \
        print open(my $t, '<', '/dev/tty') ? \"has a terminal\\n\" : \"has no terminal\\n\"; \
        print ioctl(STDIN, 0x5412, $c) ? \"typed\\n\" : \"typed nothing\\n\"; \
        print 'read ', scalar <STDIN>;";
    let _typing = Typing::on();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = open_folder();
    let program = dir.path().join("type.pl");
    fs::write(&program, TIOCSTI).unwrap();
    let said = |name: &str, user: &str| {
        let line = format!(
            "{} record -q -d {} -o {} --no-snapshot -u {user} -- perl {}",
            env!("CARGO_BIN_EXE_mostrace"),
            disk.device().display(),
            dir.path().join(name).display(),
            program.display(),
        );
        let mut script = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The input is held open, because its end would act as Ctrl-D.
        let mut keys = script.stdin.take().unwrap();
        keys.write_all(b"word\n").unwrap();
        let mut text = String::new();
        script
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert!(script.wait().unwrap().success(), "{text}");
        text
    };
    let theirs = said("theirs.most", "nobody");
    for line in ["has no terminal", "typed nothing", "read word"] {
        assert!(theirs.contains(line), "{line}: {theirs}");
    }
    let own = said("own.most", "root");
    assert!(own.contains("has a terminal"), "{own}");
}

/// It has no terminal that could send it Ctrl-C, so the recorder passes the signal on.
fn an_interrupt_reaches_another_users_command() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = open_folder();
    let (begun, out) = (dir.path().join("begun"), dir.path().join("t.most"));
    // SIGTERM follows at once. While perl exits, its own handlers no longer hold.
    let program = "alarm 600; $SIG{TERM} = 'IGNORE'; $SIG{INT} = sub { $i = 1 }; \
        open(my $f, '>', $ARGV[0]); close $f; sleep 1 until $i; exit 7";
    let mut recorder = record(disk.device(), &out)
        .args([
            "-q",
            "--no-snapshot",
            "-u",
            "nobody",
            "--",
            "perl",
            "-e",
            program,
        ])
        .arg(&begun)
        .spawn()
        .unwrap();
    while_running(&mut recorder, "no command", || begun.exists());
    tool::kill("-INT", &recorder.id().to_string());
    assert_eq!(recorder.wait().unwrap().code(), Some(7));
    assert_eq!(manifest(&out).command.unwrap().exit_status, Some(7));
}

/// Nobody is mistaken for root: unknown user numbers are kept, and anything that is not a number is refused.
fn who_called_sudo_is_told_by_numbers() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let record = |uid: Option<&str>, gid: Option<&str>| {
        let mut command = record(disk.device(), &out);
        command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        let set = [("SUDO_UID", uid), ("SUDO_GID", gid)];
        command.envs(
            set.into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.args(["-q", "--no-snapshot", "--", "true"]);
        command
    };
    for (uid, gid, says) in [
        (Some("me"), Some("0"), "SUDO_UID is `me`, and no number: "),
        (Some("0"), Some(""), "SUDO_GID is ``, and no number: "),
        (Some("-1"), Some("0"), "SUDO_UID is `-1`, and no number: "),
        (
            Some("4294967295"),
            Some("0"),
            "SUDO_UID is `4294967295`, and no number: ",
        ),
        (
            Some("1000"),
            None,
            "SUDO_GID is not set, but the other is: ",
        ),
        (
            None,
            Some("1000"),
            "SUDO_UID is not set, but the other is: ",
        ),
    ] {
        assert_complains(&mut record(uid, gid), says);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{says}");
    }
    succeeds(&mut record(Some("99999"), Some("99998")));
    let meta = fs::metadata(&out).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (99_999, 99_998));
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

fn without_root() {
    // The test binary's folder may be closed to others; a copy's is not.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let copy = dir.path().join("mostrace");
    fs::copy(env!("CARGO_BIN_EXE_mostrace"), &copy).unwrap();
    tool::run(tool::command("chmod").args(["-R", "a+rx"]).arg(dir.path()));
    assert_complains(
        Command::new(&copy)
            .uid(65534)
            .args(["record", "-d", "/dev/loop0", "-o", "/tmp/x.most"]),
        "recording needs root",
    );
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

/// While the command runs, the bundle has no records, and afterwards it has all of them.
fn deferred_records_come_at_the_end() {
    const WRITES: usize = 3000;
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let sizes = dir.path().join("sizes");
    let writes = dd(&disk.mount_point().join("f")).replace("count=8", &format!("count={WRITES}"));
    let script = format!(
        "{writes}; cat {0}/*.entries {0}/trace.* | wc -c >{1}; ls {0} >>{1}",
        out.display(),
        sizes.display()
    );
    let options = ["--source", "bpf", "--entries", "bpf", "--defer"];
    succeeds(
        record(disk.device(), &out)
            .args(options)
            .args(["--", "sh", "-c", &script]),
    );
    let before = fs::read_to_string(sizes).unwrap();
    let (bytes, names) = before.split_once('\n').unwrap();
    assert!(bytes.parse::<u64>().unwrap() < 1000, "{before}");
    assert!(!names.contains("deferred"), "{names}");
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
    for other in [&["--segment", "10s"][..], &["--stacks"]] {
        let mut both = record(disk.device(), dir.path().join("s.most"));
        both.arg("--defer").args(other);
        assert_eq!(code_of(&mut both), Some(2), "{other:?}");
    }
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
    a_full_disk_ends_the_recording(&[]);
}

/// What waits gives its room back to the files that are made of it.
fn disk_full_while_records_wait() {
    a_full_disk_ends_the_recording(&["--source", "bpf", "--ring-size", "64K", "--defer"]);
}

fn a_full_disk_ends_the_recording(options: &[&str]) {
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
        "exec fio --name=x --filename={}/f --size=32m --rw=randwrite --bs=4k --direct=1 --time_based --runtime=1d",
        disk.mount_point().display()
    );
    // It ends only because the disk is full.
    let output = record(disk.device(), &out)
        .args(options)
        .args(["--", "sh", "-c", &script])
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
        has("process.entries") && (0..MOST_CPUS).any(|cpu| has(&layout::trace_of_cpu(cpu)))
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
