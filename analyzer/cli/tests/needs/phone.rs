// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace phone` with a stand-in for adb: a script that runs here, in a folder of its own, what adb would run on the
//! phone. The recorder is this build's, the device a loop device.

use crate::run;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mostrace_bundle::Bundle;
use run::{Said, program, say};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests, tool, wait};

const XFS_IO: Need = Need::Tool("xfs_io", "xfsprogs");

pub fn suite() -> Suite {
    one_by_one(tests![
        without_root_nothing_is_pushed,
        what_has_the_name_of_a_part_is_not_written_to,
        an_answer_without_end_is_refused,
        the_bundle_has_the_promised_length,
        a_recording_comes_back needs [Need::Loop, Need::Btf],
        an_interrupt_ends_the_phones_side needs [Need::Loop, Need::Btf],
        a_phone_that_goes_away_loses_nothing needs [Need::Loop, Need::Btf],
        an_unlocked_tree_names_encrypted_files needs [Need::Loop, Need::Btf, Need::Encryption, XFS_IO],
        what_is_not_of_the_filesystem_is_no_tree_of_it needs [Need::Loop, Need::Btf],
    ])
}

/// Commands that it runs have the folder as `/data/local/tmp`.
const ADB: &str = r#"#!/bin/sh
phone=$(dirname "$0")
verb=$1
shift
there() { printf '%s' "$1" | sed "s,/data/local/tmp,$phone,g"; }
case $verb in
get-serialno) echo 0123456789 ;;
push) cp "$1" "$(there "$2")" ;;
shell | exec-out) PATH=$phone/bin:$PATH exec sh -c "$(there "$1")" ;;
esac
"#;

struct Stand {
    dir: tempfile::TempDir,
}

impl Stand {
    /// Makes a stand-in where `id -u` prints `uid` and there is no su.
    fn new(uid: &str) -> Stand {
        let dir = tempfile::tempdir().unwrap();
        let program = |path: &Path, text: &str| {
            fs::write(path, text).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        };
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        program(&dir.path().join("adb"), ADB);
        program(&bin.join("id"), &format!("#!/bin/sh\necho {uid}\n"));
        program(&bin.join("su"), "#!/bin/sh\nexit 1\n");
        Stand { dir }
    }

    fn phone(&self, args: &[&str]) -> Command {
        let mut command = program();
        command
            .arg("phone")
            .arg("--adb")
            .arg(self.dir.path().join("adb"));
        command.args(["--recorder", env!("CARGO_BIN_EXE_mostrace")]);
        command.args(args).current_dir(self.dir.path());
        command
    }

    /// Records; the recorder's own options follow.
    fn record(&self, device: &Path, out: &str) -> Command {
        self.phone(&["record", "-d", device.to_str().unwrap(), "-o", out, "--"])
    }

    fn pull(&self, out: &str) -> Said {
        say(&mut self.phone(&["pull", "-o", out]))
    }

    fn on_phone(&self, name: &str) -> PathBuf {
        self.dir.path().join("mostrace").join(name)
    }

    fn wait_until_it_records(&self) {
        let is_bundle = |path: PathBuf| path.extension().is_some_and(|e| e == "most");
        wait::until("the recording begins", || {
            let mut all = fs::read_dir(self.on_phone("")).into_iter().flatten();
            all.any(|entry| entry.is_ok_and(|entry| is_bundle(entry.path())))
        });
    }

    fn check_bundle(&self, name: &str, label: &str) {
        let bundle = Bundle::open(&self.dir.path().join(name)).unwrap();
        let manifest = bundle.manifest();
        assert_eq!(manifest.label.as_deref(), Some(label));
        assert_eq!(manifest.state, mostrace_bundle::manifest::State::Complete);
        assert!(
            !self.on_phone("").exists(),
            "everything goes from the phone"
        );
    }
}

fn without_root_nothing_is_pushed() {
    let stand = Stand::new("2000");
    let out = say(&mut stand.phone(&["doctor"])).ended(1);
    out.complains("the phone gives no root");
    assert!(!stand.on_phone("mostrace").exists());
}

/// There is nothing to pull, but the file for it is created before.
fn what_has_the_name_of_a_part_is_not_written_to() {
    let stand = Stand::new("0");
    let at = |name: &str| stand.dir.path().join(name);
    fs::write(at("victim"), "precious").unwrap();
    symlink(at("victim"), at("x.most.tar.zst.part")).unwrap();
    stand.pull("x.most.tar.zst").ended(1);
    assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
    let part = fs::symlink_metadata(at("x.most.tar.zst.part")).unwrap();
    assert!(part.is_file());
    symlink(at("nothing"), at("y.most.tar.zst")).unwrap();
    let out = stand.pull("y.most.tar.zst").err;
    assert!(out.contains("exists, and is not overwritten"), "{out}");
}

/// The phone's side of `pull`: how long the bundle is said to be, what comes, and the status.
fn pull_of(length: &str, bundle: &str) -> (Stand, Said) {
    let stand = Stand::new("0");
    let adb = format!(
        "#!/bin/sh\ncase $1 in\nshell) case $2 in 'id -u') echo 0 ;; *wc*) echo {length} ;; esac ;;\nexec-out) {bundle} ;;\nesac\n"
    );
    fs::write(stand.dir.path().join("adb"), adb).unwrap();
    let said = stand.pull("x.most.tar.zst");
    (stand, said)
}

/// The name is taken only by a whole bundle, and no more than one byte too many is written.
fn the_bundle_has_the_promised_length() {
    for (length, bundle, why) in [
        ("5", "printf 1234", "only 4 of 5 bytes arrived"),
        ("5", "yes", "more than the 5 bytes of the bundle arrived"),
        ("5", "printf 12345; exit 3", "adb exec-out: exit status: 3"),
    ] {
        let (stand, said) = pull_of(length, bundle);
        said.ended(1).complains(why);
        let at = |name: &str| stand.dir.path().join(name);
        assert!(!at("x.most.tar.zst").exists(), "{why}");
        let part = fs::metadata(at("x.most.tar.zst.part")).unwrap();
        assert!(part.len() <= 6, "{why}: {}", part.len());
    }
    let (stand, said) = pull_of("5", "printf 12345");
    said.ended(0);
    let bundle = fs::read_to_string(stand.dir.path().join("x.most.tar.zst"));
    assert_eq!(bundle.unwrap(), "12345");
}

fn an_answer_without_end_is_refused() {
    let stand = Stand::new("0");
    for answer in ["yes", "yes >&2"] {
        fs::write(
            stand.dir.path().join("adb"),
            format!("#!/bin/sh\n{answer}\n"),
        )
        .unwrap();
        let said = stand.pull("x.most.tar.zst").ended(1);
        assert!(said.err.len() < 1000, "{}", said.err.len());
    }
}

fn a_recording_comes_back() {
    let stand = Stand::new("0");
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let doctor = say(&mut stand.phone(&["doctor", "-d", mount.to_str().unwrap()]));
    doctor.prints("auto takes:");
    let database = mount.join("it's a test.db");
    let workload = format!(
        "{}/mostrace/mostrace workload sqlite --transactions 3 \"$0\"",
        stand.dir.path().display()
    );
    let mut record = stand.record(&mount, "a.most.tar.zst");
    record.args(["--quiet", "--", "sh", "-c", &workload]);
    tool::run(record.arg(&database));
    assert!(database.exists());
    stand.check_bundle("a.most.tar.zst", "phone 0123456789");
    let again = stand.pull("a.most.tar.zst").err;
    assert!(again.contains("exists, and is not overwritten"), "{again}");
}

fn an_interrupt_ends_the_phones_side() {
    let stand = Stand::new("0");
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
    let stand = Stand::new("0");
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let mut desktop = stand
        .record(&mount, "c.most.tar.zst")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = || fs::read_to_string(stand.on_phone("pid")).unwrap_or_default();
    stand.wait_until_it_records();
    // The desktop's side ends abruptly, and adbd hangs up.
    desktop.kill().unwrap();
    desktop.wait().unwrap();
    tool::kill("-HUP", pid().trim());
    stand.pull("d.most.tar.zst").ended(0);
    stand.check_bundle("d.most.tar.zst", "phone 0123456789");
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
