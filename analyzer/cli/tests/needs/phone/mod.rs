// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace phone` with a [stand-in](stand) for adb. The recorder is this build's, the device a loop device.

mod apart;
mod stand;
mod ways;

use crate::run;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use mostrace_bundle::Bundle;
use run::{Said, say};
use stand::Stand;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, at_once, tests, tool};

use apart::{
    a_ledger_goes_on_without_the_desktop, a_process_that_dies_is_told,
    a_recording_ends_at_its_limit, a_recording_goes_on_without_the_desktop,
    what_cannot_start_leaves_nothing,
};
use ways::{
    a_bundle_is_one_file, a_prompt_that_nobody_answers_is_given_up,
    an_app_starts_cold_when_the_recording_has_begun, an_app_that_does_not_exist_is_refused,
    an_apps_part_is_told_apart, each_way_to_root_is_named, the_pages_commands_are_understood,
    without_adb_there_is_one_line, without_root_nothing_is_pushed,
};

const SETPRIV: Need = Need::Tool("setpriv", "util-linux");
const XFS_IO: Need = Need::Tool("xfs_io", "xfsprogs");

pub fn suite() -> Suite {
    at_once(tests![
        each_way_to_root_is_named,
        without_root_nothing_is_pushed,
        a_prompt_that_nobody_answers_is_given_up,
        without_adb_there_is_one_line,
        a_bundle_is_one_file,
        an_app_that_does_not_exist_is_refused,
        the_pages_commands_are_understood,
        what_has_the_name_of_a_part_is_not_written_to,
        an_answer_without_end_is_refused,
        the_bundle_has_the_promised_length,
        what_cannot_start_leaves_nothing needs [Need::Loop, Need::Btf],
        a_recording_comes_back needs [Need::Loop, Need::Btf],
        its_own_writes_are_small_and_named needs [Need::Loop, Need::Btf],
        an_app_starts_cold_when_the_recording_has_begun needs [Need::Loop, Need::Btf],
        an_apps_part_is_told_apart needs [Need::Loop, Need::Btf, SETPRIV],
        an_interrupt_ends_the_phones_side needs [Need::Loop, Need::Btf],
        a_phone_that_goes_away_loses_nothing needs [Need::Loop, Need::Btf],
        a_recording_goes_on_without_the_desktop needs [Need::Loop, Need::Btf],
        a_recording_ends_at_its_limit needs [Need::Loop, Need::Btf],
        a_process_that_dies_is_told needs [Need::Loop, Need::Btf],
        a_ledger_goes_on_without_the_desktop needs [Need::Loop, Need::Btf],
        an_unlocked_tree_names_encrypted_files needs [Need::Loop, Need::Btf, Need::Encryption, XFS_IO],
        what_is_not_of_the_filesystem_is_no_tree_of_it needs [Need::Loop, Need::Btf],
    ])
}

/// There is nothing to pull, but the file for it is created before.
fn what_has_the_name_of_a_part_is_not_written_to() {
    let stand = Stand::root();
    fs::write(stand.at("victim"), "precious").unwrap();
    symlink(stand.at("victim"), stand.at("x.most.tar.zst.part")).unwrap();
    stand.pull("x.most.tar.zst").ended(1);
    assert_eq!(fs::read_to_string(stand.at("victim")).unwrap(), "precious");
    stand.check_empty();
    symlink(stand.at("nothing"), stand.at("y.most.tar.zst")).unwrap();
    let out = stand.pull("y.most.tar.zst").err;
    assert!(out.contains("exists, and is not overwritten"), "{out}");
}

/// The phone's side of `pull`: how long the bundle is said to be, what comes, and the status.
fn pull_of(length: &str, bundle: &str) -> (Stand, Said) {
    let stand = Stand::root();
    let adb = format!(
        "#!/bin/sh\ncase $1 in\nshell) case $2 in 'id -u') echo 0 ;; *wc*) printf '%s\\n' ended attached {length} run.most.tar.zst ;; \
         esac ;;\nexec-out) {bundle} ;;\nesac\n"
    );
    fs::write(stand.at("adb"), adb).unwrap();
    let said = stand.pull("x.most.tar.zst");
    (stand, said)
}

/// The name is taken only by a whole bundle; of another nothing stays.
fn the_bundle_has_the_promised_length() {
    for (length, bundle, why) in [
        ("5", "printf 1234", "only 4 of 5 bytes arrived"),
        ("5", "yes", "more than the 5 bytes of the bundle arrived"),
        ("5", "printf 12345; exit 3", "adb exec-out: exit status: 3"),
    ] {
        let (stand, said) = pull_of(length, bundle);
        said.ended(1).complains(why);
        assert!(!stand.at("x.most.tar.zst").exists(), "{why}");
        stand.check_empty();
    }
    let (stand, said) = pull_of("5", "printf 12345");
    said.ended(0);
    let bundle = fs::read_to_string(stand.at("x.most.tar.zst"));
    assert_eq!(bundle.unwrap(), "12345");
}

fn an_answer_without_end_is_refused() {
    let stand = Stand::root();
    for answer in ["yes", "yes >&2"] {
        fs::write(stand.at("adb"), format!("#!/bin/sh\n{answer}\n")).unwrap();
        let said = stand.pull("x.most.tar.zst").ended(1);
        assert!(said.err.len() < 1000, "{}", said.err.len());
    }
}

fn a_recording_comes_back() {
    let stand = Stand::root();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let doctor = stand.say(&["doctor", "-d", mount.to_str().unwrap()]);
    doctor.ended(0).prints("auto takes:");
    let database = mount.join("it's a test.db");
    let workload = format!(
        "{}/mostrace/mostrace workload sqlite --transactions 3 \"$0\"; sleep 1.5; echo its words >&2; exit 7",
        stand.dir.path().display()
    );
    let mut record = stand.record(&mount, "a.most.tar.zst");
    record.args(["--", "sh", "-c", &workload]);
    let said = say(record.arg(&database)).ended(7);
    assert!(database.exists());
    for words in [
        "pushing ",
        "recording ",
        "its words",
        "0 lost",
        "next: mostrace analyze a.most.tar.zst",
    ] {
        said.complains(words);
    }
    let advice = said.err.lines().filter(|line| line.contains("next:"));
    assert_eq!(advice.count(), 1, "{}", said.err);
    assert!(!said.err.contains("progress:"), "{}", said.err);
    stand.check_bundle("a.most.tar.zst", "phone Pixel 7");
    let again = stand.pull("a.most.tar.zst").err;
    assert!(again.contains("exists, and is not overwritten"), "{again}");
}

/// The recorder's place is on the disk that it records, as on a phone. Of its writes only those of finished segments are in the
/// trace, and a note names the process.
fn its_own_writes_are_small_and_named() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let of = |name: &str, more: &[&str]| {
        let out = mount.join(format!("{name}.most.tar.zst"));
        let mut record = run::record(disk.device(), &out);
        record.args(more).args([
            "--sync",
            "--",
            "sh",
            "-c",
            "\"$0\" workload sqlite --transactions 200 \"$1\"; sync",
        ]);
        record
            .arg(env!("CARGO_BIN_EXE_mostrace"))
            .arg(mount.join(format!("{name}.db")));
        tool::run(&mut record);
        let found = match more {
            [] => out,
            _ => mostrace_bundle::segments::segment(&out, 1),
        };
        let manifest = Bundle::open(&found).unwrap().manifest().clone();
        let by = ["query", found.to_str().unwrap(), "--format", "csv"];
        let sql = "SELECT SUM(CASE WHEN comm = 'mostrace' AND path LIKE '%.most%' OR dirty_comm = 'mostrace' AND path LIKE '%.most%' THEN bytes \
                   ELSE 0 END) AS own, SUM(bytes) AS total FROM events WHERE op = 'write'";
        let rows = run::mostrace(&[&by[..], &[sql]].concat());
        let row = rows.lines().nth(1).unwrap().to_owned();
        let (own, total) = row.split_once(',').unwrap();
        (
            own.parse::<u64>().unwrap_or(0),
            total.parse::<u64>().unwrap(),
            manifest.notes.join("\n"),
        )
    };
    let (own, total, notes) = of("disk", &[]);
    assert!(own * 100 > total, "{own} of {total}");
    assert!(
        notes.contains("the bundle is on the traced disk: its own writes"),
        "{notes}"
    );
    let (own, total, notes) = of("memory", &["--segment", "1h", "--memory"]);
    assert!(own * 100 < total, "{own} of {total}");
    assert!(
        notes.contains("finished segments go to the traced disk"),
        "{notes}"
    );
    assert!(notes.contains(", by process "), "{notes}");
}

fn an_interrupt_ends_the_phones_side() {
    let stand = Stand::root();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let mut desktop = stand
        .record(&mount, "b.most.tar.zst")
        .args(["--label", "mine"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    stand.wait_until_it_records();
    tool::kill("-INT", &desktop.id().to_string());
    assert!(desktop.wait().unwrap().success());
    stand.check_bundle("b.most.tar.zst", "mine");
}

fn a_phone_that_goes_away_loses_nothing() {
    let stand = Stand::root();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let mut desktop = stand
        .record(&mount, "c.most.tar.zst")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    stand.wait_until_it_records();
    // The desktop's side ends abruptly, and adbd hangs up.
    desktop.kill().unwrap();
    desktop.wait().unwrap();
    stand.kill("-HUP");
    stand.pull("d.most.tar.zst").ended(0);
    stand.check_bundle("d.most.tar.zst", "phone Pixel 7");
}

/// Shell functions: `unlock` gives the filesystem the folder's key, `lock` removes it.
const KEY: &str = "set -e; cd \"$1\"; shift
    unlock() { xfs_io -c add_enckey . <../key >../added; key=$(awk '{ print $NF }' ../added); }
    lock() { xfs_io -c \"rm_enckey $key\" . >/dev/null; }
    ";

/// Runs a script on the mounted filesystem; `$0` is this build's program.
fn on(mount: &Path, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{KEY}{script}")]);
    command.arg(env!("CARGO_BIN_EXE_mostrace")).arg(mount);
    command
}

/// Returns path and provenance of the regular files that were written.
fn written(bundle: &Path) -> Vec<(String, String)> {
    let by = ["analyze", "--json", "--by", "path,provenance", "--where"];
    let some = [
        "op = 'write' AND kind = 'regular'",
        bundle.to_str().unwrap(),
    ];
    let out = run::bytes(&[&by[..], &some].concat());
    let rows: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or("-").to_owned();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| (text(row, "path"), text(row, "provenance")))
        .collect()
}

/// Without entries, all names are the snapshot's, which are ciphertext; the mounted tree has the real ones while it is
/// unlocked.
fn an_unlocked_tree_names_encrypted_files() {
    let disk = LoopExt4::new(&LoopOptions {
        mkfs: vec!["-O".into(), "encrypt".into()],
        ..LoopOptions::default()
    })
    .unwrap();
    let mount = disk.mount_point();
    let ready = "head -c 64 /dev/urandom >../key; unlock; mkdir enc; xfs_io -c \"set_encpolicy -v 2 $key\" enc
        mkdir -p enc/dir; echo secret >enc/dir/secret.db; mkfifo enc/pipe; ln -s /etc enc/link; sync -f .; lock";
    assert!(on(&mount, ready).status().unwrap().success());
    let out = |name: &str| mount.join("..").join(format!("{name}.most"));
    let write = "dd if=/dev/zero of=enc/dir/secret.db bs=4k count=2 conv=notrunc,fsync 2>/dev/null";
    let record = |name: &str, around: &str, inside: &str, names: &str| {
        let device = disk.device().display();
        let out = out(name).display().to_string();
        let script = format!(
            "{around}; \"$0\" record -d {device} -o \"{out}\" --entries none --segment 1h {names} -- sh -c \"$1\" \"$0\" ."
        );
        let mut command = on(&mount, &script);
        tool::run(command.arg(format!("{KEY}{inside}")));
        let bundle = mount.join("..").join(format!("{name}.0001.most"));
        let notes = Bundle::open(&bundle).unwrap().manifest().notes.join("\n");
        (written(&bundle), notes)
    };
    let secret = |provenance: &str| ("/enc/dir/secret.db".to_owned(), provenance.to_owned());

    let (found, notes) = record("tree", "unlock", write, "--names enc");
    assert_eq!(found, [secret("tree")]);
    assert!(!notes.contains("--names"), "{notes}");

    let (found, _) = record("none", "unlock", write, "");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].0.starts_with("/enc/<encrypted:") && found[0].1 == "encrypted",
        "{found:?}"
    );

    // The folder is locked before and after, so its names are not the real ones.
    let inside = format!("unlock; {write}; lock");
    let (found, notes) = record("locked", "unlock; lock", &inside, "--names .");
    assert_eq!(found[0].1, "encrypted", "{found:?}");
    assert!(
        notes.contains("1 folders below --names are locked"),
        "{notes}"
    );
}

fn what_is_not_of_the_filesystem_is_no_tree_of_it() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = disk.mount_point().join("file");
    fs::write(&file, "x").unwrap();
    for (names, says) in [
        (dir.path(), "not on the filesystem that is recorded"),
        (&file, "no folder"),
        (Path::new("/no/such"), "No such file"),
    ] {
        let out = dir.path().join("t.most");
        let mut record = run::record(disk.device(), &out);
        let ran = say(record.arg("--names").arg(names).args(["--", "true"])).ended(1);
        ran.complains(says);
        assert!(!out.exists());
    }
}
