// SPDX-License-Identifier: MIT OR Apache-2.0
//! A script that runs on an ext4 of its own, and what a recording has of it.

use std::path::Path;

use mostrace_bundle::entry::{RawCall, RawDirtied, RawDirtier, RawFile, RawHandle, RawProcess};
use mostrace_bundle::{Bundle, Entry, Manifest, layout};
use mostrace_capture::{Causes, Options, record};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::nothing_lost;

pub struct Recording {
    pub manifest: Manifest,
    pub process: Vec<RawProcess>,
    pub files: Vec<RawFile>,
    pub dirtiers: Vec<RawDirtier>,
    pub handles: Vec<RawHandle>,
    pub dirtied: Vec<RawDirtied>,
    pub calls: Vec<RawCall>,
}

/// Makes a disk on which ext4's own thread has nothing left to write.
pub fn disk(mount_options: &str, size_mib: u64, mkfs: &[&str]) -> LoopExt4 {
    let lazy = ["-E", "lazy_itable_init=0,lazy_journal_init=0"];
    let mkfs = lazy.iter().chain(mkfs).map(|&arg| arg.to_owned());
    let options = LoopOptions {
        mount_options: mount_options.into(),
        mkfs: mkfs.collect(),
        size_mib,
        ..LoopOptions::default()
    };
    LoopExt4::new(&options).unwrap()
}

/// Records a script of the shell, from which nothing may be lost.
pub fn recording(device: &Path, causes: Causes, script: &str) -> Recording {
    let got = recording_with_losses(device, causes, script);
    nothing_lost(&got.manifest.losses);
    got
}

pub fn recording_with_losses(device: &Path, causes: Causes, script: &str) -> Recording {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let options = Options {
        device: device.to_owned(),
        output: output.clone(),
        causes,
        sync: true,
        no_snapshot: true,
        argv: ["sh", "-ec", script].map(Into::into).to_vec(),
        ..Options::default()
    };
    let outcome = record(&options).unwrap();
    assert_eq!(outcome.exit_status, 0, "the script failed: {script}");
    let mut got = Recording {
        manifest: outcome.manifest,
        process: Vec::new(),
        files: Vec::new(),
        dirtiers: Vec::new(),
        handles: Vec::new(),
        dirtied: Vec::new(),
        calls: Vec::new(),
    };
    let bundle = Bundle::open(&output).unwrap();
    for name in layout::TABLES.into_iter().chain(layout::CAUSES) {
        for entry in bundle.table(name, false).unwrap().into_iter().flatten() {
            match entry.unwrap() {
                Entry::Process(p) => got.process.push(p),
                Entry::File(f) => got.files.push(f.raw),
                Entry::Dirtier(d) => got.dirtiers.push(d),
                Entry::Handle(h) => got.handles.push(h),
                Entry::Dirtied(d) => got.dirtied.push(d),
                Entry::Call(c) => got.calls.push(c),
                Entry::Freed(_)
                | Entry::F2fs(_)
                | Entry::Fork(_)
                | Entry::Served(_)
                | Entry::Cgroup(..)
                | Entry::Comm(_)
                | Entry::Stack(..)
                | Entry::Operation(_) => {}
            }
        }
    }
    got
}
