// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filesystems without a map: what is named on each, and which device a folder of theirs is on. The tests run one at a time,
//! because each makes its own load.

use crate::run;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::Bundle;
use run::{json, record, say, succeeds};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions, unmount};
use test_support::{Need, Suite, one_by_one, tests};

const XFSPROGS: Need = Need::Tool("mkfs.xfs", "xfsprogs");
const BTRFSPROGS: Need = Need::Tool("mkfs.btrfs", "btrfs-progs");
/// The bytes that `WORK` writes to the file `big`.
const BIG: i64 = 50 * 65536;
const WORK: &str = "dd if=/dev/urandom of=big bs=64k count=50 conv=fsync status=none; \
    mkdir folder; for i in $(seq 20); do echo $i > folder/$i; done; sync -f .";

pub fn suite() -> Suite {
    one_by_one(tests![
        the_data_of_xfs_is_named needs [Need::Loop, Need::Btf, Need::Filesystem("xfs"), XFSPROGS],
        of_btrfs_data_and_trees_are_told_apart
            needs [Need::Loop, Need::Btf, Need::Filesystem("btrfs"), BTRFSPROGS],
        an_overlay_is_on_the_disk_of_what_it_writes_to
            needs [Need::Loop, Need::Btf, Need::Filesystem("overlay")],
        what_lies_in_memory_has_no_disk needs [Need::Loop],
    ])
}

/// A filesystem in a file; when it is dropped, it is unmounted and its loop device detached.
struct Mounted {
    folder: tempfile::TempDir,
}

impl Mounted {
    fn new(mkfs: &str) -> Mounted {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        File::create(&image).unwrap().set_len(600 << 20).unwrap();
        succeeds(Command::new(mkfs).args(["-q", "-f"]).arg(&image));
        let mounted = Mounted { folder };
        fs::create_dir(mounted.point()).unwrap();
        let mut mount = Command::new("mount");
        succeeds(mount.args(["-o", "loop"]).arg(&image).arg(mounted.point()));
        mounted
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("m")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It may not be mounted.
        let _ = unmount(&self.point());
    }
}

/// Records `WORK` in the folder, on the disk that it is on; returns the recorder's messages.
fn recorded(place: &Path, out: &Path) -> String {
    let script = format!("cd {}; {WORK}", place.display());
    let said = succeeds(record(place, out).args(["--", "sh", "-c", &script]));
    said.complains("the kernel's counters agree");
    said.err
}

/// Returns bytes written, by the values of a column.
fn written(bundle: &Path, by: &str) -> BTreeMap<String, i64> {
    written_where(bundle, by, "bytes > 0")
}

/// Returns bytes written by the rows that pass a condition.
fn written_where(bundle: &Path, by: &str, condition: &str) -> BTreeMap<String, i64> {
    let path = bundle.to_str().unwrap();
    let writes = format!("op = 'write' AND {condition}");
    let rows = json(&["analyze", path, "--by", by, "--where", &writes, "--json"]);
    let row = |row: &Value| {
        let label = row[by].as_str().unwrap_or("-").to_owned();
        (label, row["write_bytes"].as_i64().unwrap())
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

fn sum(written: &BTreeMap<String, i64>) -> i64 {
    written.values().sum()
}

/// Every byte has a class, and those of `big` are its own; whoever submits them, `dd` has caused them.
fn assert_named(bundle: &Path, class: &str) {
    let (files, classes) = (written(bundle, "file"), written(bundle, "class"));
    assert_eq!(files["/big"], BIG, "{files:?}");
    assert_eq!(sum(&classes), sum(&files));
    assert!(classes["data"] >= BIG && classes[class] > 0, "{classes:?}");
    let causes = written_where(
        bundle,
        "cause_process",
        "class = 'data' AND cause_known = 'exact'",
    );
    let by_dd = causes.iter().filter(|(name, _)| name.starts_with("dd:"));
    assert_eq!(
        by_dd.map(|(_, bytes)| bytes).sum::<i64>(),
        BIG,
        "{causes:?}"
    );
}

fn the_data_of_xfs_is_named() {
    let disk = Mounted::new("mkfs.xfs");
    let out = disk.folder.path().join("run.most");
    let said = recorded(&disk.point(), &out);
    let note = "no snapshot: the probes name the files of xfs's data; xfs's log and its metadata are not told apart";
    assert!(said.contains(note), "{said}");
    assert_named(&out, "unknown");
    // btrfs keeps files as short as these in its trees.
    let files = written(&out, "file");
    let of_folder = files.keys().filter(|name| name.starts_with("/folder/"));
    assert_eq!(of_folder.count(), 20, "{files:?}");
}

fn of_btrfs_data_and_trees_are_told_apart() {
    let disk = Mounted::new("mkfs.btrfs");
    let out = disk.folder.path().join("run.most");
    let said = recorded(&disk.point(), &out);
    assert!(said.contains(" is on /dev/loop"), "{said}");
    assert!(said.contains("know the blocks of its trees"), "{said}");
    let manifest = Bundle::open(&out).unwrap().manifest().clone();
    assert!(
        manifest.device.name.starts_with("loop"),
        "{:?}",
        manifest.device
    );
    let filesystem = manifest.filesystem.unwrap();
    assert_eq!(filesystem.kind, "btrfs");
    assert_eq!(filesystem.mount_point.as_deref(), disk.point().to_str());
    assert_named(&out, "metadata");
    // Others than the task that dirtied a tree's block first may have changed it too.
    let trees = written_where(&out, "cause_known", "kind = 'btree'");
    assert!(
        trees
            .keys()
            .all(|known| ["first", "unknown"].contains(&known.as_str())),
        "{trees:?}"
    );
    assert!(trees["first"] > 0, "{trees:?}");
    let kinds = written(&out, "kind");
    assert!(kinds["btree"] > 0, "{kinds:?}");
    // A superblock is written through the device's page cache.
    let unknown = written(&out, "class").get("unknown").copied().unwrap_or(0);
    assert!(unknown <= 16 * 4096, "{kinds:?}");
    // Without a mount, the first bytes identify the filesystem.
    let device = PathBuf::from(&manifest.device.path);
    let idle = disk.folder.path().join("idle.most");
    succeeds(record(&device, &idle).args(["--", "true"]));
    let found = Bundle::open(&idle).unwrap().manifest().filesystem.clone();
    assert_eq!(found.unwrap().kind, "btrfs");
}

fn an_overlay_is_on_the_disk_of_what_it_writes_to() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| disk.mount_point().join(name);
    for name in ["lower", "upper", "work"] {
        fs::create_dir(at(name)).unwrap();
    }
    let overlay = Mounted { folder };
    fs::create_dir(overlay.point()).unwrap();
    let [lower, upper, work] =
        ["lower", "upper", "work"].map(|name| at(name).display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    succeeds(
        Command::new("mount")
            .args(["-t", "overlay", "overlay", "-o", &options])
            .arg(overlay.point()),
    );
    let out = overlay.folder.path().join("run.most");
    let said = recorded(&overlay.point(), &out);
    assert!(
        said.contains(&format!("is on {}", disk.device().display())),
        "{said}"
    );
    let files = written(&out, "file");
    assert_eq!(files["/upper/big"], BIG, "{files:?}");
    let classes = written(&out, "class");
    assert_eq!(classes.get("unknown"), None, "{classes:?}");
}

fn what_lies_in_memory_has_no_disk() {
    let said =
        say(record(Path::new("/dev/shm"), Path::new("/nowhere/x.most")).args(["--", "true"]));
    assert_eq!(said.status, Some(1), "{}", said.err);
    let why = "/dev/shm: on tmpfs, which has no block device of its own";
    said.complains(why);
}
