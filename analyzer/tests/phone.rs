// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace phone` against a stand-in for adb: a script that runs what adb would run on the phone, here, in a folder of its
//! own. The recorder is this build's, the device a loop device's.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use mostrace_bundle::Bundle;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, run_one_by_one, tests, wait};

fn main() -> ExitCode {
    run_one_by_one(tests![
        without_root_nothing_is_pushed,
        a_recording_comes_back needs [Need::Loop, Need::Btf],
        an_interrupt_ends_the_phones_side needs [Need::Loop, Need::Btf],
        a_phone_that_goes_away_loses_nothing needs [Need::Loop, Need::Btf],
    ])
}

/// What runs there has `/data/local/tmp` in the folder.
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
    /// `id -u` says `uid`, and there is no su.
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_mostrace"));
        command
            .arg("phone")
            .arg("--adb")
            .arg(self.dir.path().join("adb"));
        command.args(["--recorder", env!("CARGO_BIN_EXE_mostrace")]);
        command.args(args).current_dir(self.dir.path());
        command
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

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn without_root_nothing_is_pushed() {
    let stand = Stand::new("2000");
    let out = stand.phone(&["doctor"]).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(
        said(&out).contains("the phone gives no root"),
        "{}",
        said(&out)
    );
    assert!(!stand.on_phone("mostrace").exists());
}

fn a_recording_comes_back() {
    let stand = Stand::new("0");
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let doctor = stand
        .phone(&["doctor", "-d", mount.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&doctor.stdout).contains("auto takes:"),
        "{}",
        said(&doctor)
    );
    let database = mount.join("it's a test.db");
    let workload = format!(
        "{}/mostrace/mostrace workload sqlite --transactions 3 \"$0\"",
        stand.dir.path().display()
    );
    let out = stand
        .phone(&[
            "record",
            "-d",
            mount.to_str().unwrap(),
            "-o",
            "a.most.tar.zst",
            "--",
        ])
        .args(["--quiet", "--", "sh", "-c", &workload])
        .arg(&database)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", said(&out));
    assert!(database.exists());
    stand.check_bundle("a.most.tar.zst", "phone 0123456789");
    let again = stand
        .phone(&["pull", "-o", "a.most.tar.zst"])
        .output()
        .unwrap();
    assert!(
        said(&again).contains("exists, and is not written over"),
        "{}",
        said(&again)
    );
}

fn an_interrupt_ends_the_phones_side() {
    let stand = Stand::new("0");
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let mut desktop = stand
        .phone(&[
            "record",
            "-d",
            mount.to_str().unwrap(),
            "-o",
            "b.most.tar.zst",
            "--",
        ])
        .args(["--label", "mine"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    stand.wait_until_it_records();
    let interrupt = Command::new("kill")
        .args(["-INT", &desktop.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    assert!(desktop.wait().unwrap().success());
    stand.check_bundle("b.most.tar.zst", "mine");
}

fn a_phone_that_goes_away_loses_nothing() {
    let stand = Stand::new("0");
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let mut desktop = stand
        .phone(&[
            "record",
            "-d",
            mount.to_str().unwrap(),
            "-o",
            "c.most.tar.zst",
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = || fs::read_to_string(stand.on_phone("pid")).unwrap_or_default();
    stand.wait_until_it_records();
    // The desktop's side ends without a word, and adbd hangs up.
    desktop.kill().unwrap();
    desktop.wait().unwrap();
    let hang_up = Command::new("kill").args(["-HUP", pid().trim()]).status();
    assert!(hang_up.unwrap().success());
    let out = stand
        .phone(&["pull", "-o", "d.most.tar.zst"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", said(&out));
    stand.check_bundle("d.most.tar.zst", "phone 0123456789");
}
