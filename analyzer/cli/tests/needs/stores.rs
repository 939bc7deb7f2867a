// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores other than SQLite: their files have roles, and those who write for others are named in their place. The tests run
//! one at a time, because each makes its own load.

use crate::run;

use std::path::{Path, PathBuf};

use mostrace_bundle::Bundle;
use mostrace_tables::analysis::{Analysis, Options};
use mostrace_tables::tables::tree;
use mostrace_trace::live::{Line, Views, follow};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests, tool};

pub fn suite() -> Suite {
    one_by_one(tests![
        gits_files_have_their_roles needs [Need::Loop, Need::Btf, Need::NoSync, Need::Tool("git", "git")],
        a_loop_devices_worker_is_its_device needs [Need::Loop, Need::Btf],
    ])
}

/// Records a shell's command on the disk, in a folder beside it.
fn record(disk: &LoopExt4, dir: &Path, script: &str) -> PathBuf {
    let output = dir.join("x.most");
    let mut command = run::record(disk.device(), &output);
    command.args(["--", "sh", "-ec", script]);
    run::succeeds(command.current_dir(disk.mount_point()));
    output
}

fn gits_files_have_their_roles() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=.
        git init -q repo; cd repo
        for n in 1 2 3 4 5; do seq $n 20000 >file$n; git add .; git commit -qm $n; done
        sync -f .; git gc -q";
    let bundle = record(&disk, dir.path(), script);
    let name = bundle.to_str().unwrap();
    let answer = run::mostrace(&["analyze", name]);
    assert!(answer.contains(" %  git's loose objects\n"), "{answer}");
    let said = run::mostrace(&["analyze", name, "--by", "role,path", "--format", "csv"]);
    // These are git's own figures.
    let git = |args: &[&str]| {
        let repo = disk.mount_point().join("repo");
        tool::text(tool::command("git").arg("-C").arg(repo).args(args))
    };
    let packs = git(&["verify-pack", "-s", &pack(&disk)]);
    assert!(!packs.is_empty());
    let line = |role: &str, path: &str| {
        let is_it = |line: &&str| line.starts_with(&format!("{role},{path}"));
        assert!(
            said.lines().any(|line| is_it(&line)),
            "{role} {path}: {said}"
        );
    };
    line("git_object", "/repo/.git/objects/");
    line("git_pack", "/repo/.git/objects/pack/");
    line("git_pack_index", "/repo/.git/objects/pack/");
    line("git_log", "/repo/.git/logs/");
    line("git_ref", "/repo/.git/");
    line("git_index", "/repo/.git/index");
    line("other", "/repo/file1");
}

/// Returns the index of the only pack.
fn pack(disk: &LoopExt4) -> String {
    let folder = disk.mount_point().join("repo/.git/objects/pack");
    let mut files = std::fs::read_dir(folder).unwrap();
    let index = files.find_map(|file| {
        let path = file.unwrap().path();
        path.extension()?.eq("idx").then_some(path)
    });
    index.unwrap().to_str().unwrap().to_owned()
}

/// A loop device on a file, which is detached at the end.
struct Attached(String);

impl Attached {
    fn new(image: &Path) -> Attached {
        let device = tool::text(
            tool::command("losetup")
                .args(["--find", "--show"])
                .arg(image),
        );
        Attached(device.trim().to_owned())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        tool::run(tool::command("losetup").arg("--detach").arg(&self.0));
    }
}

fn a_loop_devices_worker_is_its_device() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let image = disk.mount_point().join("back.img");
    let file = std::fs::File::create(&image).unwrap();
    file.set_len(16 << 20).unwrap();
    let upper = Attached::new(&image);
    let device = &upper.0;
    let script = format!("dd if=/dev/urandom of={device} bs=1M count=8 conv=fsync status=none");
    let bundle = record(&disk, dir.path(), &script);

    let who = format!("{} (submitter)", device.trim_start_matches("/dev/"));
    let sentence = run::mostrace(&["analyze", bundle.to_str().unwrap()]);
    assert!(
        sentence.lines().next().unwrap().contains(&who),
        "{sentence}"
    );
    assert!(sentence.contains("─ /back.img"), "{sentence}");

    let options = Options {
        causes: Some(mostrace_trace::causes::Sharing::Equal),
        ..Options::default()
    };
    let analysis = Analysis::open(&bundle, &options).unwrap();
    let databases = &analysis.databases;
    let tree = tree::of(&analysis.facts, databases, "ext4", None).unwrap();
    let written = tree.total.write_bytes;
    assert!(written >= 8 << 20);
    assert_eq!(tree.leaves(), written);
    let owner = &tree.owners[0];
    assert_eq!(owner.name(), format!("{who} for /back.img"));
    assert!(owner.device.bytes >= 8 << 20);

    let mut views = Vec::new();
    let bundle = Bundle::open(&bundle).map_err(Into::into);
    follow([bundle], &mut Views::new(|view| views.push(view))).unwrap();
    let view = views.last().unwrap();
    let is_first = |lines: &[Line], name: &str| {
        assert_eq!(lines[0].name, name);
        let all: u64 = lines.iter().map(|line| line.all.bytes()).sum();
        assert_eq!(all, written);
    };
    is_first(&view.processes, &who);
    is_first(&view.files, "/back.img");
}
