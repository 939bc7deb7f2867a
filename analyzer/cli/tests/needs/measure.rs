// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace measure` as a user runs it: limits, users, filesystems, and what it leaves behind. The tests run one at a time,
//! because each makes its own load.

use crate::run;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use mostrace_bundle::Bundle;
use run::{program, say, succeeds};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests, tool, wait};

const LIVE: [Need; 2] = [Need::Loop, Need::Btf];
/// Several runs are compared.
const COMPARED: [Need; 3] = [Need::Loop, Need::Btf, Need::NoSync];
/// A duration that no other sleep uses.
const SECONDS: u32 = 98_765;
/// The user ID of nobody on Debian.
const NOBODY: &str = "65534";

pub fn suite() -> Suite {
    one_by_one(tests![
        limits_that_are_kept_and_passed needs LIVE,
        notes_are_said_once needs LIVE,
        a_baseline_is_an_earlier_recording needs COMPARED,
        several_runs_say_how_much_they_differ needs COMPARED,
        what_failed_or_wrote_nothing_is_not_ok needs LIVE,
        several_workloads_are_added_up needs LIVE,
        the_command_runs_where_it_is_called needs LIVE,
        a_folder_that_cannot_be_copied_is_one_line needs LIVE,
        what_it_made_itself_is_not_copied needs COMPARED,
        the_command_runs_in_the_filesystem_as_who_called_sudo needs LIVE,
        who_called_sudo_is_never_root needs LIVE,
        what_is_measured_is_not_for_others needs LIVE,
        on_a_filesystem_that_is_there needs LIVE,
        a_filesystem_is_made_as_asked_for needs LIVE,
        requests_are_as_large_as_asked_for_or_as_the_kernel_has_it needs LIVE,
        what_is_made_before_is_not_measured needs LIVE,
        the_exit_status_of_the_command_passes_through needs LIVE,
        an_interrupted_one_says_so needs LIVE,
        the_action_measures_with_the_program_of_a_release needs LIVE,
        a_path_with_spaces_is_one_word_of_the_action needs [],
        a_folder_whose_name_is_no_text_is_measured needs LIVE,
        nothing_is_left_of_a_killed_one needs LIVE,
        what_cannot_be_measured_is_one_line needs LIVE,
    ])
}

/// Runs CMD in the root folder of the fresh filesystem.
fn measure(arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg("measure");
    let elsewhere = ["--in", "--guest"];
    if !arguments.iter().any(|word| elsewhere.contains(word)) {
        command.arg("--empty");
    }
    command.args(arguments);
    command
}

/// Writes 1 MiB, so that at least that much reaches the device.
const MIB: [&str; 4] = ["--", "sh", "-c", "head -c 1048576 /dev/zero >f; sync f"];

fn limits_that_are_kept_and_passed() {
    let over = say(measure(&["--max-write-bytes", "1048576"]).args(MIB)).ended(3);
    let (_, sum) = over.out.split_once("\nOVER  ").unwrap();
    assert!(
        sum.contains(" MB written, at most 1.0 MB\n") && sum.ends_with("1.0 MB  of it to /f\n"),
        "{sum}"
    );
    let kept = succeeds(measure(&["--max-write-bytes", "3000000"]).args(MIB));
    kept.prints("ok   bytes written: ");
    // The application may print anything.
    let dir = tempfile::tempdir().unwrap();
    let junit = dir.path().join("junit.xml");
    let options = ["--max-write-bytes", "1M", "--junit"];
    say(measure(&options).arg(&junit).args(MIB)).ended(3);
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(
        xml.contains("tests=\"1\" failures=\"1\"")
            && xml.contains("classname=\"sh -c head -c 1048576 /dev/zero &gt;f; sync f\""),
        "{xml}"
    );
    // The command's output is not mixed with the results.
    let loud = ["--", "sh", "-c", "echo loud; echo x >f; sync f"];
    let json = say(measure(&["--json", "--max-write-bytes", "1"]).args(loud)).ended(3);
    let said: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let limit = &said["limits"][0];
    assert_eq!(
        (limit["kept"].as_bool(), limit["most"].as_f64()),
        (Some(false), Some(1.0))
    );
    assert_eq!(
        limit["value"].as_f64(),
        said["runs"][0]["tree"]["device_bytes"].as_f64()
    );
    json.complains("loud");
    let quiet = say(measure(&["-q", "--max-write-bytes", "5M"]).args(MIB));
    assert_eq!(
        (quiet.status, quiet.out.as_str()),
        (Some(0), ""),
        "{}",
        quiet.err
    );
    let full = say(measure(&["--full"]).args(MIB));
    assert!(
        full.out.contains("└─ device") && !full.out.contains("next: "),
        "{}",
        full.out
    );
    // A limit per transaction fails if the command reports none.
    let untold = say(measure(&["--max-flushes-per-transaction", "1000"]).args(MIB)).ended(3);
    untold.prints("the trace does not tell");
}

/// The answer has the recording's notes, or the standard error where there is no answer.
fn notes_are_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let forms: [(&str, &[&str]); 4] = [
        ("brief", &[]),
        ("full", &["--full"]),
        ("json", &["--json"]),
        ("quiet", &["-q"]),
    ];
    for (name, options) in forms {
        let output = dir.path().join(name).with_extension("most");
        let said = succeeds(measure(options).arg("-o").arg(&output).args(MIB));
        let bundle = Bundle::open(&output).unwrap();
        for note in &bundle.manifest().notes {
            let times = said.out.matches(note).count() + said.err.matches(note).count();
            assert_eq!(times, 1, "{name}: {note}: {} {}", said.out, said.err);
        }
    }
}

fn a_baseline_is_an_earlier_recording() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("old.most");
    let workload = |transactions: &str| {
        let program = env!("CARGO_BIN_EXE_mostrace");
        let words = [
            "--",
            program,
            "workload",
            "sqlite",
            "--transactions",
            transactions,
        ];
        words.map(str::to_owned)
    };
    succeeds(measure(&["-o"]).arg(&old).args(workload("60")));
    let options = ["--tolerance", "25%", "--baseline"];
    succeeds(measure(&options).arg(&old).args(workload("90")));
    let other = say(program().arg("check").arg(&old).args(options).arg(&old));
    assert_eq!(
        (other.status, other.out.matches("ok ").count()),
        (Some(0), 2),
        "{}",
        other.out
    );
    // The baseline of another program proves nothing.
    let copied = say(measure(&["--baseline"]).arg(&old).args(MIB));
    let said: Vec<&str> = copied.err.lines().collect();
    let why = format!(
        "mostrace: {}: this baseline is of mostrace, and the runs to compare are of sh",
        old.display()
    );
    assert_eq!((copied.status, said), (Some(1), vec![&*why]));
    let options = ["--max-amplification", "20", "--format", "github"];
    let over = say(program().arg("check").arg(&old).args(options)).ended(3);
    assert!(
        over.out
            .starts_with("::error title=mostrace::bytes written per byte stored: ")
    );
    let none = say(program().arg("check").arg(&old));
    assert_eq!(
        (none.status, none.err.as_str()),
        (Some(2), "mostrace: no limit is given\n")
    );
}

/// Each run is on a fresh filesystem: it does not find what the previous run left.
fn several_runs_say_how_much_they_differ() {
    let dir = tempfile::tempdir().unwrap();
    let script = |mib: &str| {
        let script = format!("test ! -e f && head -c {mib}M /dev/zero >f && sync f");
        ["--".into(), "sh".into(), "-ec".into(), script]
    };
    let runs = |name: &str| [1, 2, 3].map(|run| dir.path().join(format!("{name}-{run}.most")));
    let main = succeeds(
        measure(&["--runs", "3", "-o"])
            .arg(dir.path().join("main.most"))
            .args(script("1")),
    );
    let first = main.out.lines().next().unwrap();
    assert!(
        first.starts_with("bytes written: ") && first.contains(", the median of 3 runs from "),
        "{first}"
    );
    main.prints("\nThe median run:\n");
    let bytes = |path| {
        let check = ["check", "--max-write-bytes", "1", "--json"];
        let said = say(program().args(check).arg(path)).out;
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        said["limits"][0]["value"].as_f64().unwrap()
    };
    let mut each: Vec<f64> = runs("main").iter().map(bytes).collect();
    each.sort_by(f64::total_cmp);
    let [least, most] = [each[0], each[2]].map(|bytes| format!("{:.1} MB", bytes / 1e6));
    assert!(
        first.contains(&format!("from {least} to {most}")),
        "{each:?}, {first}"
    );
    // The spread of these runs is the tolerance for the same command.
    let same = say(measure(&["--runs", "3", "--baseline"])
        .args(runs("main"))
        .args(script("1")));
    same.prints(": by so much runs differ");
    let more = say(measure(&["--runs", "3", "-o"])
        .arg(dir.path().join("more.most"))
        .arg("--baseline")
        .args(runs("main"))
        .args(script("3")))
    .ended(3);
    let check = |options: &[&str]| {
        let mut check = program();
        check.arg("check").args(runs("more")).arg("--baseline");
        say(check.args(runs("main")).args(options))
    };
    let over = check(&[]).ended(3);
    assert!(
        over.out
            .starts_with("OVER bytes written, to the baseline: ")
            && more.out.contains(over.out.lines().next().unwrap()),
        "{}{}",
        over.out,
        more.out
    );
    check(&["--tolerance", "1000%"]).ended(0);
    // With one run on each side, the spread is unknown.
    let [one, ..] = runs("main");
    let one = succeeds(program().arg("check").arg(&one).arg("--baseline").arg(&one));
    one.prints("one run of each does not tell");
}

fn what_failed_or_wrote_nothing_is_not_ok() {
    let dir = tempfile::tempdir().unwrap();
    let record = |name: &str, script: &str| {
        let output = dir.path().join(name);
        let options = ["-o", output.to_str().unwrap(), "--", "sh", "-c", script];
        (say(&mut measure(&options)), output)
    };
    let write = "head -c 1048576 /dev/zero >f; sync f";
    let (wrote, good) = record("good.most", write);
    assert_eq!(wrote.status, Some(0), "{}", wrote.err);
    let (ended, failed) = record("failed.most", &format!("{write}; exit 7"));
    assert_eq!(ended.status, Some(7), "{}", ended.err);
    let (idle, nothing) = record("nothing.most", "true");
    assert_eq!(idle.status, Some(0), "{}", idle.err);
    let check = |bundle: &Path, baseline: &Path| {
        let mut check = program();
        check
            .arg("check")
            .arg(bundle)
            .arg("--baseline")
            .arg(baseline);
        say(check.args(["--tolerance", "50%"]))
    };
    assert_eq!(check(&good, &good).status, Some(0));
    let said = check(&failed, &good).ended(3);
    let line = "FAIL the command ended with 7, so that nothing can be said of it\n";
    assert!(said.out.starts_with(line), "{}", said.out);
    let said = check(&nothing, &good).ended(3);
    let line = "FAIL bytes written: 0, where the baseline has ";
    assert!(said.out.starts_with(line), "{}", said.out);
    assert_eq!(check(&nothing, &nothing).status, Some(0));
    let said = check(&good, &failed).ended(1);
    let line = "failed.most: its command ended with 7, so it cannot be a baseline\n";
    assert!(said.err.ends_with(line), "{}", said.err);
    // The first run that fails is the last.
    let runs = ["--runs", "3", "--", "sh", "-c", "exit 7"];
    let runs = say(&mut measure(&runs)).ended(7);
    assert_eq!(
        runs.err.matches("sh ended with 7").count(),
        1,
        "{}",
        runs.err
    );
}

fn several_workloads_are_added_up() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("o.most");
    let program = env!("CARGO_BIN_EXE_mostrace");
    let sqlite = |n: u64| format!("{program} workload sqlite --transactions {n} {n}.db");
    let script = format!("{} & {}; wait", sqlite(20), sqlite(30));
    succeeds(
        measure(&["-o"])
            .arg(&output)
            .args(["--", "sh", "-c", &script]),
    );
    let manifest = Bundle::open(&output).unwrap().manifest().clone();
    let payload = manifest.payload.unwrap();
    assert_eq!(
        (payload.transactions, payload.workload.as_str()),
        (50, "sqlite")
    );
    assert_eq!(payload.payload_bytes, 50 * 108);
}

/// A copy of the folder is mounted over it: its contents are found, what is written is measured, and the folder does not
/// change.
fn the_command_runs_where_it_is_called() {
    let outer = tempfile::tempdir().unwrap();
    fs::set_permissions(outer.path(), Permissions::from_mode(0o755)).unwrap();
    let here = outer.path().join("it's mine");
    fs::create_dir_all(here.join("src")).unwrap();
    fs::write(here.join("src/input"), "12345").unwrap();
    let app = "#!/bin/sh\nset -e\npwd\nid -u\ncat src/input >output\nrm src/input\nsync output\n";
    fs::write(here.join("app"), app).unwrap();
    fs::set_permissions(here.join("app"), Permissions::from_mode(0o755)).unwrap();
    for path in [here.clone(), here.join("src"), here.join("src/input")] {
        chown(&path, Some(65534), Some(65534)).unwrap();
    }
    let run = |options: &[&str]| {
        let mut measure = program();
        measure.current_dir(&here).arg("measure").args(options);
        measure.args(["--before", "test -e app", "--", "./app"]);
        say(measure.env("SUDO_UID", NOBODY).env("SUDO_GID", NOBODY))
    };
    let said = run(&["-o", "run.most"]).ended(0);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[..2], [here.to_str().unwrap(), NOBODY]);
    said.prints("/it's mine/output");
    let names = || {
        let names = fs::read_dir(&here).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["app", "run.most", "src"]);
    assert_eq!(fs::read_to_string(here.join("src/input")).unwrap(), "12345");
    assert_eq!(fs::metadata(here.join("run.most")).unwrap().uid(), 65534);
    assert!(!Bundle::open(&here.join("run.most")).unwrap().is_cut());
    // Each of several runs finds the folder unchanged.
    run(&["--runs", "2"]).ended(0);
    let said = run(&["-o", "run.most"]).ended(1);
    let line = format!("mostrace: {}/run.most: exists already", here.display());
    assert!(said.err.starts_with(&line), "{}", said.err);
}

/// Each measurement leaves a recording in the folder, and the next one finds the same files and writes the same bytes.
fn what_it_made_itself_is_not_copied() {
    let here = tempfile::tempdir().unwrap();
    let at = |name: &str| here.path().join(name);
    fs::create_dir_all(at("src/deep")).unwrap();
    fs::create_dir_all(at("only")).unwrap();
    fs::write(at("src/deep/input"), vec![7; 100_000]).unwrap();
    // A name says nothing.
    fs::write(at("mine.most"), "12345").unwrap();
    let run = |out: &str| {
        let mut measure = program();
        let script =
            "find . -type f | sort; find . -type d | sort; head -c 300000 /dev/zero >f; sync f";
        measure
            .current_dir(here.path())
            .args(["measure", "--size", "64M", "-o", out]);
        let said = say(measure.args(["--", "sh", "-c", script])).ended(0);
        let bundle = Bundle::open(&at(out)).unwrap();
        let copied = bundle.manifest().command.as_ref().unwrap().copied.unwrap();
        let listed: Vec<String> = said
            .out
            .lines()
            .take_while(|l| l.starts_with('.'))
            .map(str::to_owned)
            .collect();
        let sql = "SELECT sum(bytes) AS n FROM events WHERE op = 'write'";
        let out = at(out);
        let written = run::json(&["query", out.to_str().unwrap(), sql, "--json"]);
        (said.err, (copied.files, copied.bytes), listed, written)
    };
    let first = run("a.most");
    first
        .0
        .lines()
        .find(|l| l.contains("2 files, "))
        .expect("what was copied");
    assert!(!first.0.contains("without"), "{}", first.0);
    assert_eq!(first.1, (2, 100_005));
    let lists = [
        "./mine.most",
        "./src/deep/input",
        ".",
        "./only",
        "./src",
        "./src/deep",
    ];
    assert_eq!(first.2, lists);
    mostrace_bundle::archive::pack(&at("a.most"), &at("only/packed")).unwrap();
    succeeds(
        program()
            .current_dir(here.path())
            .args(["report", "a.most", "-o", "page"]),
    );
    for out in ["b.most", "only/c.most"] {
        let next = run(out);
        assert_eq!((&next.1, &next.2), (&first.1, &first.2), "{out}");
        assert_eq!(next.3, first.3, "{out}");
        assert!(next.0.contains("which mostrace made"), "{}", next.0);
    }
}

fn a_folder_that_cannot_be_copied_is_one_line() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("large"), vec![1; 20 << 20]).unwrap();
    let run = |folder: &Path, temporary: &Path| {
        let mut measure = program();
        measure.env("TMPDIR", temporary);
        let options = ["measure", "--size", "32M", "--", "true"];
        say(measure.current_dir(folder).args(options))
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let large = run(here.path(), elsewhere.path());
    assert_eq!((large.status, large.err.lines().count()), (Some(1), 1));
    large.complains(" holds more than 16 MiB: a copy of it, in which CMD would run");
    let hidden = run(elsewhere.path(), elsewhere.path());
    assert_eq!((hidden.status, hidden.err.lines().count()), (Some(1), 1));
    hidden.complains(", which holds the folder of temporary files; ");
}

fn the_command_runs_in_the_filesystem_as_who_called_sudo() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("o.most");
    let script = "id -u; : >mine; : >\"$PWD/too\"; stat -c %u mine .; df . | tail -n 1";
    let said = succeeds(
        measure(&["-o"])
            .arg(&output)
            .args(["--", "sh", "-ec", script])
            .env("SUDO_UID", NOBODY)
            .env("SUDO_GID", NOBODY),
    );
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[..3], [NOBODY; 3]);
    assert!(lines[3].starts_with("/dev/loop"), "{}", lines[3]);
    let manifest = Bundle::open(&output).unwrap().manifest().clone();
    assert!(lines[3].starts_with(&format!("/dev/{} ", manifest.device.name)));
}

/// A user whom the machine does not know has a number anyway.
fn who_called_sudo_is_never_root() {
    let script = "id -u; id -g; id -G; echo $USER $HOME; stat -c '%u %g' .";
    let called = |uid: &str| {
        let mut command = measure(&["--before", "id -u >&2; test $(id -u) = 99999"]);
        command.args(["--", "sh", "-ec", script]);
        command.env("SUDO_UID", uid).env("SUDO_GID", "99998");
        say(&mut command)
    };
    let said = called("99999").ended(0);
    let lines: Vec<&str> = said.out.lines().take(5).collect();
    assert_eq!(lines, ["99999", "99998", "99998", "99999 /", "99999 99998"]);
    for uid in ["", "me", "-1"] {
        let said = called(uid);
        let wanted = format!(
            "mostrace: SUDO_UID is `{uid}`, and no number: who called sudo is not known (unset SUDO_UID and SUDO_GID to be root)\n"
        );
        assert_eq!(
            (said.status, said.out.as_str(), said.err),
            (Some(1), "", wanted)
        );
    }
}

/// A script for the user nobody. It looks for an image as long as the folder exists and has no file `stop`.
const LOOK: &str = "while [ -d \"$0\" ] && [ ! -e \"$0/stop\" ]; do
    for folder in \"$0\"/mostrace-temporary-*; do
        [ -d \"$folder\" ] && [ -z \"$seen\" ] && seen=1 && echo seen
        if true <\"$folder/disk.img\"; then echo read; fi
        if true >>\"$folder/disk.img\"; then echo written; fi
    done
done 2>/dev/null";

fn what_is_measured_is_not_for_others() {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let nobody = NOBODY.parse().unwrap();
    let looking = Command::new("sh")
        .args(["-c", LOOK])
        .arg(dir.path())
        .uid(nobody)
        .gid(nobody)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let measured = ["022", "0", "0"].map(|umask| {
        let script = "while read -r _ _ _ _ at given _; do
            if [ \"$at\" = \"$PWD\" ]; then echo $given; fi; done </proc/self/mountinfo";
        let line = format!("umask {umask}; exec \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, "sh", env!("CARGO_BIN_EXE_mostrace"), "measure"]);
        shell.args(["--size", "64M", "--", "sh", "-c", script]);
        shell.env("TMPDIR", dir.path());
        shell.env("SUDO_UID", NOBODY).env("SUDO_GID", NOBODY);
        say(&mut shell)
    });
    fs::write(dir.path().join("stop"), "").unwrap();
    let found = looking.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "seen\n");
    for said in measured {
        assert_eq!(said.status, Some(0), "{}", said.err);
        let given: Vec<&str> = said.out.lines().next().unwrap().split(',').collect();
        let is_given = |option| given.contains(&option);
        assert!(is_given("nosuid") && is_given("nodev"), "{given:?}");
    }
    // mkfs and mount take paths, and nobody owns this folder.
    chown(dir.path(), Some(nobody), None).unwrap();
    let said = say(measure(&["--", "true"]).env("TMPDIR", dir.path()));
    let wanted = format!(
        "mostrace: {}: others can put something else in the place of what is made there; ",
        dir.path().display()
    );
    assert!(
        said.status == Some(1) && said.err.starts_with(&wanted),
        "{}",
        said.err
    );
}

fn on_a_filesystem_that_is_there() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let folder = disk.mount_point().join("folder");
    fs::create_dir(&folder).unwrap();
    succeeds(
        measure(&["--max-write-bytes", "3000000", "--in"])
            .arg(&folder)
            .args(MIB),
    );
    assert_eq!(fs::metadata(folder.join("f")).unwrap().len(), 1 << 20);
    // The answer is of what the command caused; what others wrote meanwhile comes after it.
    let stranger = disk.mount_point().join("stranger");
    let gone = disk.mount_point().join("gone");
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8; do head -c 1048576 /dev/zero >{0}.$i; sync {0}.$i; sleep 0.2; done; touch {1}",
        stranger.display(),
        gone.display(),
    );
    let wait = format!(
        "head -c 65536 /dev/zero >own; sync own; while [ ! -e {} ]; do sleep 0.1; done",
        gone.display()
    );
    let mut other = Command::new("bash")
        .args([
            "-c",
            &format!(
                "while [ ! -e {}/own ]; do sleep 0.1; done; exec -a other sh -c '{script}'",
                folder.display()
            ),
        ])
        .spawn()
        .unwrap();
    let said = say(measure(&["--in"])
        .arg(&folder)
        .args(["--", "sh", "-c", &wait]));
    assert!(other.wait().unwrap().success());
    let said = said.ended(0);
    let (ours, theirs) = said.out.split_once("\nothers wrote ").unwrap();
    assert!(
        ours.contains("/folder/own") && !ours.contains("stranger"),
        "{}",
        said.out
    );
    assert!(
        theirs.contains("not counted") && theirs.contains("stranger"),
        "{}",
        said.out
    );
}

fn a_filesystem_is_made_as_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("o.most");
    let options = [
        "--mkfs",
        "-b 1024 -O ^has_journal",
        "--size",
        "48M",
        "--mount-options",
        "noatime",
    ];
    succeeds(measure(&options).arg("-o").arg(&output).args(MIB));
    let manifest = Bundle::open(&output).unwrap().manifest().clone();
    assert_eq!(manifest.device.sectors, 48 << 11);
    let filesystem = manifest.filesystem.unwrap();
    assert!(filesystem.mount_options.unwrap().contains("noatime"));
    assert!(
        !filesystem
            .features
            .unwrap()
            .contains(&"has_journal".to_owned())
    );
}

/// The loop device may have settings from its previous user.
fn requests_are_as_large_as_asked_for_or_as_the_kernel_has_it() {
    let limit = |options: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("o.most");
        succeeds(measure(options).arg("-o").arg(&output).args(MIB));
        let device = Bundle::open(&output).unwrap().manifest().device.clone();
        device.max_sectors_kb
    };
    let own = limit(&[]);
    assert!(own >= 512, "{own}");
    assert_eq!(limit(&["--max-sectors-kb", "4"]), 4);
    assert_eq!(limit(&[]), own);
    say(measure(&["--max-sectors-kb", "1"]).args(MIB)).ended(2);
}

fn what_is_made_before_is_not_measured() {
    let before = "head -c 8388608 /dev/zero >'a b'; id -u >who";
    let script = "test -s 'a b'; cat who; head -c 1048576 /dev/zero >f; sync f";
    let said = succeeds(
        measure(&["--max-write-bytes", "3000000", "--before", before])
            .args(["--", "sh", "-ec", script])
            .env("SUDO_UID", NOBODY)
            .env("SUDO_GID", NOBODY),
    );
    assert_eq!(said.out.lines().next(), Some(NOBODY));
}

fn the_exit_status_of_the_command_passes_through() {
    let said =
        say(measure(&["--max-write-bytes", "0"]).args(["--", "sh", "-c", "echo a >f; exit 7"]));
    assert_eq!(said.status, Some(7), "{}", said.err);
    said.complains("sh ended with 7");
}

/// The command exits properly when it is interrupted: its exit status is not the one that it would have had.
fn an_interrupted_one_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let begun = dir.path().join("begun");
    let script = format!(
        "trap 'exit 0' INT TERM; echo a >f; sync f; : >{}; while :; do sleep 0.1; done",
        begun.display()
    );
    let measured = measure(&["--runs", "3", "--", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait::until("the command begins", || begun.exists());
    tool::kill("-INT", &measured.id().to_string());
    let said = measured.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(130), "{err}");
    assert!(
        err.contains("interrupted: what follows covers the time until then"),
        "{err}"
    );
}

/// For a user without root the action calls sudo, here a stand-in that prints its words. A file of the workspace with a name as the end
/// of a folder in PATH must not run, nor take the place of an option.
fn a_path_with_spaces_is_one_word_of_the_action() {
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/action.sh");
    let here = tempfile::tempdir().unwrap();
    let bin = here.path().join("my bin");
    fs::create_dir(&bin).unwrap();
    for (name, prints) in [("sudo", "printf '%s|' \"$@\""), ("id", "echo 1000")] {
        let program = bin.join(name);
        fs::write(&program, format!("#!/bin/sh\n{prints}\n")).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    let command = command.arg(&action).current_dir(here.path());
    let command = command.env("PATH", &path).env("BINARY", "mostrace");
    let said = say(command.envs([("OPTIONS", "--runs 2 *"), ("RUN", "make it")])).ended(0);
    let expected =
        format!("env|PATH={path}|mostrace|measure|--format|github|--runs|2|*|--|sh|-ec|make it|");
    assert_eq!(said.out, expected);
}

fn a_folder_whose_name_is_no_text_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(OsStr::from_bytes(b"it's \xff"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("app"), "data").unwrap();
    let mut command = program();
    let command = command.args(["measure", "--", "cat", "app"]);
    succeeds(command.current_dir(&folder)).prints("data");
}

/// Runs the action as a CI runner would: with an installed program, and with one that it fetches, which must have the checksum that
/// is given or be attested.
fn the_action_measures_with_the_program_of_a_release() {
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/action.sh");
    let here = tempfile::tempdir().unwrap();
    let run = |path: &str, variables: &[(&str, &str)]| {
        let mut command = Command::new("sh");
        command
            .arg(&action)
            .current_dir(here.path())
            .env("PATH", path);
        say(command.envs(variables.iter().copied()))
    };
    let path = std::env::var("PATH").unwrap();
    let over = run(
        &path,
        &[
            ("BINARY", env!("CARGO_BIN_EXE_mostrace")),
            ("OPTIONS", "--max-write-bytes 1"),
            ("RUN", "echo a >'a b'\nsync 'a b'"),
        ],
    )
    .ended(3);
    over.prints("::error title=mostrace::bytes written: ");

    // These are a release's files, a curl that serves them, and a gh that attests them if a file says so.
    let (program, release) = ("mostrace-0.9", here.path().join("release"));
    let script = format!(
        "set -e\nmkdir -p release {program}/bin bin\n\
         printf '#!/bin/sh\\nprintf \"%%s|\" \"$@\"\\n' >{program}/bin/mostrace\n\
         chmod +x {program}/bin/mostrace\n\
         tar --zstd -cf release/{program}-$(uname -m)-linux-gnu.tar.zst {program}\n\
         cat >bin/gh <<'E'\n#!/bin/sh\n[ \"$1 $2\" = 'attestation verify' ] && grep -q . \"$3\" && [ -e {}/attested ]\nE\n\
         cat >bin/curl <<'E'\n#!/bin/sh\ncase \"$*\" in *latest) echo https://x/releases/tag/v0.9; exit ;; esac\n\
         for url in \"$@\"; do :; done\ncp {}/\"${{url##*/}}\" .\nE\nchmod +x bin/curl bin/gh\n",
        release.display(),
        release.display()
    );
    let made = Command::new("sh")
        .args(["-c", &script])
        .current_dir(here.path())
        .status();
    assert!(made.unwrap().success());
    let path = format!("{}/bin:{path}", here.path().display());
    let fetched = |sha256: &str| {
        let variables = [
            ("REPOSITORY", "somebody/mostrace"),
            ("RUN", "./my test"),
            ("OUTPUT", "now.most"),
            ("OPTIONS", "--runs 2"),
            ("SHA256", sha256),
        ];
        run(&path, &variables)
    };
    let runs = |sha256: &str| {
        fetched(sha256)
            .ended(0)
            .prints("measure|--format|github|--runs|2|-o|now.most|--|sh|-ec|./my test|");
    };
    let files = fs::read_dir(&release).unwrap();
    let archive = files.map(|file| file.unwrap().path()).next().unwrap();
    let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let sum = sum.split_whitespace().next().unwrap();
    runs(sum);
    assert_ne!(fetched(&"0".repeat(64)).status, Some(0));
    assert_ne!(fetched("").status, Some(0));
    fs::write(release.join("attested"), "").unwrap();
    runs("");
}

/// Returns the names in sysfs of the loop devices that have a file.
fn attached() -> Vec<String> {
    let all = fs::read_dir("/sys/block").unwrap();
    let has_file = |name: &String| Path::new("/sys/block").join(name).join("loop").exists();
    let names = all.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(has_file).collect();
    names.sort();
    names
}

fn nothing_is_left_of_a_killed_one() {
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let begun = dir.path().join("begun");
    let script = format!(
        "df . | tail -n 1 >{0}.part; mv {0}.part {0}; exec sleep {SECONDS}",
        begun.display()
    );
    let mut measured = measure(&["--", "sh", "-c", &script])
        .env("TMPDIR", &temporary)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait::until("the command begins", || {
        begun.exists() || measured.try_wait().unwrap().is_some()
    });
    let line = fs::read_to_string(&begun).unwrap();
    let name = line
        .split(' ')
        .next()
        .unwrap()
        .trim_start_matches("/dev/")
        .to_owned();
    assert!(attached().contains(&name), "{line}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(
        !mounts.contains(&format!("/dev/{name} ")),
        "others see it: {mounts}"
    );
    measured.kill().unwrap();
    measured.wait().unwrap();
    // The namespace ends with the last process in it: the command's.
    let of_command = format!("sleep {SECONDS}");
    let ended = Command::new("pkill")
        .args(["-f", "-x", &of_command])
        .status();
    assert!(ended.unwrap().success());
    wait::until("the loop device lets go", || !attached().contains(&name));
    succeeds(measure(&["--", "true"]).env("TMPDIR", &temporary));
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn what_cannot_be_measured_is_one_line() {
    for (arguments, says) in [
        (
            &["--", "no-such-command"][..],
            "no-such-command: command not found",
        ),
        (&["--mkfs", "-b 77", "--", "true"], "mke2fs: "),
        (
            &["--before", "echo no >&2; exit 3", "--", "true"],
            "`echo no >&2; exit 3` ended with exit status: 3: no",
        ),
        (
            &["--mount-options", "no_such_option", "--", "true"],
            "mount: ",
        ),
        (
            &["--in", "/proc", "--", "true"],
            "/proc: on proc, which has no block device",
        ),
        (
            &["--guest", "6.12", "--", "/proc/self/status"],
            "/proc/self/status: is a script, and a guest has no interpreter for it",
        ),
        (
            &["--guest", "6.12", "--", "no-such-command"],
            "no-such-command: no such program",
        ),
    ] {
        let before = attached();
        let said = say(&mut measure(arguments));
        let is_wrong = said.status.is_some_and(|s| s == 1 || s == 127);
        assert!(
            is_wrong && said.out.is_empty(),
            "{arguments:?}: {:?}",
            said.status
        );
        assert!(
            said.err.starts_with(&format!("mostrace: {says}")),
            "{arguments:?}: {}",
            said.err
        );
        assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {}", said.err);
        wait::until("no loop device is left", || attached() == before);
    }
}
