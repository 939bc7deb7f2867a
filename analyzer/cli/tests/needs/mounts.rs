// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which filesystem a device has is decided by the kernel's table of mounts: what a path leads to may be another one, and a mount that
//! has nothing to do with the device may not answer.

use crate::run;

use std::path::Path;
use std::process::Command;

use mostrace_bundle::Bundle;
use mostrace_bundle::manifest::Manifest;
use run::{program, record, say, succeeds};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const LIVE: [Need; 2] = [Need::Loop, Need::Btf];

pub fn suite() -> Suite {
    one_by_one(tests![
        a_filesystem_on_top_of_another_is_the_devices needs LIVE,
        a_filesystem_below_another_is_the_devices needs LIVE,
        a_mount_that_does_not_answer_is_not_touched needs LIVE,
    ])
}

fn disk() -> LoopExt4 {
    LoopExt4::new(&LoopOptions::default()).unwrap()
}

/// Mounts that go when they are dropped.
struct Mount<'p>(&'p Path);

impl<'p> Mount<'p> {
    fn new(words: &[&str], point: &'p Path) -> Mount<'p> {
        let mounted = Command::new("mount").args(words).arg(point).status();
        assert!(mounted.unwrap().success(), "{words:?}");
        Mount(point)
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let gone = Command::new("umount").arg(self.0).status();
        assert!(gone.unwrap().success(), "{}", self.0.display());
    }
}

/// Records something on the device; returns what the manifest says.
fn recorded(device: &Path) -> Manifest {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("x.most");
    succeeds(record(device, &bundle).args(["--sync", "--", "true"]));
    Bundle::open(&bundle).unwrap().manifest().clone()
}

/// As systemd mounts on demand: autofs, here tmpfs, and the filesystem over it.
fn a_filesystem_on_top_of_another_is_the_devices() {
    let mut disk = disk();
    disk.unmount().unwrap();
    let place = tempfile::tempdir().unwrap();
    let _below = Mount::new(&["-t", "tmpfs", "below"], place.path());
    let device = disk.device().to_str().unwrap();
    let _above = Mount::new(&[device], place.path());
    let found = recorded(disk.device()).filesystem.unwrap();
    assert_eq!(found.kind, "ext4");
    assert_eq!(found.mount_point.as_deref(), place.path().to_str());
    let by_folder = recorded(place.path()).filesystem.unwrap();
    assert_eq!(by_folder.kind, "ext4");
}

fn a_filesystem_below_another_is_the_devices() {
    let disk = disk();
    let place = disk.mount_point();
    let _above = Mount::new(&["-t", "tmpfs", "above"], &place);
    let manifest = recorded(disk.device());
    let found = manifest.filesystem.unwrap();
    assert_eq!((found.kind.as_str(), found.mount_point), ("ext4", None));
    let covered = |note: &String| note.starts_with("other mounts cover the ext4");
    assert!(manifest.notes.iter().any(covered), "{:?}", manifest.notes);
    say(program().args(["doctor", "-d"]).arg(disk.device()))
        .out
        .lines()
        .find(|line| line.contains("ext4 (mounted, but other mounts cover it)"))
        .unwrap();
}

/// Mounts a FUSE whose daemon never answers, in a namespace of its own, and runs a command there. It goes with the command.
const HUNG: &str = r#"
exec 9<>/dev/fuse
mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0,allow_other dead "$1"
shift
exec "$@"
"#;

fn a_mount_that_does_not_answer_is_not_touched() {
    if !Path::new("/dev/fuse").exists() {
        println!("not checked: this kernel has no FUSE");
        return;
    }
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let (hung, out) = (dir.path().join("hung"), dir.path().join("x.most"));
    std::fs::create_dir(&hung).unwrap();
    let [device, out] = [disk.device(), &out].map(|path| path.to_str().unwrap());
    for words in [
        vec!["doctor", "-d", device],
        vec!["record", "-d", device, "-o", out, "--", "true"],
        vec!["measure", "--fs", "ext4", "--", "true"],
    ] {
        // A process that waits for the daemon can be killed: that is how it would end here.
        let mut apart = Command::new("timeout");
        apart.args(["-s", "KILL", "300", "unshare", "--mount"]);
        apart.args(["--propagation", "private", "sh", "-euc", HUNG, "sh"]);
        apart.arg(&hung).arg(env!("CARGO_BIN_EXE_mostrace"));
        succeeds(apart.args(&words));
    }
}
