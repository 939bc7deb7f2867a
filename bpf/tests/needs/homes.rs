// SPDX-License-Identifier: MIT OR Apache-2.0
//! The homes of jbd2's copies on loop-mounted ext4, compared with debugfs' logdump.
//!
//! The tests run one at a time: signal handlers belong to the process.

use crate::captured;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use captured::capture;
use mostrace_bundle::entry::{Home, Jbd2, NONE, RawProcess};
use mostrace_capture::Choice;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const PROBES: [Need; 2] = [Need::Loop, Need::Btf];

pub fn suite() -> Suite {
    one_by_one(tests![
        journalled_copies_know_their_home needs PROBES,
        homes_of_an_external_journal needs PROBES,
    ])
}

/// The home block of a copy in an external journal lies on the filesystem's device, not on the journal's.
fn homes_of_an_external_journal() {
    let dir = tempfile::tempdir().unwrap();
    let sh = |script: &str| {
        let out = Command::new("sh")
            .args(["-ec", script])
            .current_dir(dir.path())
            .output();
        let out = out.unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{script}: {said}");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    sh("mkdir mnt; truncate -s 16M journal; truncate -s 64M disk");
    let journal = sh("losetup -f --show journal");
    let disk = sh("losetup -f --show disk");
    sh(&format!("mke2fs -q -O journal_dev -b 4096 {journal}"));
    sh(&format!(
        "mke2fs -q -t ext4 -b 4096 -J device={journal} {disk}; mount {disk} mnt"
    ));
    let mount = dir.path().join("mnt");
    let script = format!(
        "cd {}; for i in 1 2 3 4; do echo $i > f$i; sync f$i; done",
        mount.display()
    );
    let device = PathBuf::from(&journal);
    let done = std::panic::catch_unwind(|| capture(&device, Choice::Bpf, &script));
    sh(&format!("umount mnt; losetup -d {disk} {journal}"));
    let got = done.unwrap();
    let root = sh("debugfs -R 'blocks <2>' disk 2>/dev/null");
    let root: u64 = root.split_whitespace().next().unwrap().parse().unwrap();
    let copies = got.process.iter().filter(|p| p.jbd2 == Jbd2::METADATA_COPY);
    let homes: Vec<_> = copies.map(|p| (p.home, p.home_sector.get())).collect();
    assert!(
        homes.iter().all(|(home, _)| *home == Home::FILESYSTEM),
        "{homes:?}"
    );
    assert!(
        homes.contains(&(Home::FILESYSTEM, root * 8)),
        "{root}: {homes:?}"
    );
}

/// Returns the home block of every logged copy by (transaction, journal block), from `debugfs logdump -a`.
fn logdump(image: &Path) -> HashMap<(u32, u64), u64> {
    let out = Command::new("debugfs")
        .args(["-R", "logdump -aO"])
        .arg(image)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut found = HashMap::new();
    let mut tid = 0;
    for line in text.lines().map(str::trim_start) {
        let n: Vec<u64> = line
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|t| t.parse().ok())
            .collect();
        if line.starts_with("Found expected sequence") {
            tid = u32::try_from(n[0]).unwrap();
        } else if line.starts_with("FS block") {
            // FS block 276 logged at journal block 2 (flags 0x0)
            found.insert((tid, n[1]), n[0]);
        }
    }
    found
}

/// The home block in each live entry must be the one in the journal on the disk.
fn journalled_copies_know_their_home() {
    for (mode, blocks) in [
        ("data=ordered", "4096"),
        ("data=ordered", "1024"),
        ("data=journal", "4096"),
    ] {
        let mut disk = LoopExt4::new(&LoopOptions {
            mkfs: ["-b", blocks, "-J", "size=8"].map(str::to_owned).to_vec(),
            mount_options: mode.into(),
            ..LoopOptions::default()
        })
        .unwrap();
        let per_block = blocks.parse::<u64>().unwrap() / 512;
        let script = format!(
            "cd {}; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i > f$i; mkdir d$i; sync f$i; done",
            disk.mount_point().display()
        );
        let got = capture(disk.device(), Choice::Bpf, &script);
        got.assert_nothing_lost();
        disk.unmount().unwrap();
        let truth = logdump(&disk.image());
        let journal = journal_blocks(&disk.image(), per_block);
        let copies: Vec<&RawProcess> = got
            .process
            .iter()
            .filter(|p| p.jbd2 == Jbd2::METADATA_COPY || p.jbd2 == Jbd2::DATA_COPY)
            .collect();
        let mut checked = 0;
        for copy in &copies {
            let at = journal[&copy.head.sector.get()];
            if let Some(home) = truth.get(&(copy.tid.get(), at)) {
                assert_eq!(
                    copy.home_sector.get(),
                    home * per_block,
                    "{mode}, journal block {at}"
                );
                checked += 1;
            }
        }
        assert!(
            checked >= 30,
            "logdump knows only {checked} of {} copies",
            copies.len()
        );
        assert_eq!(
            checked,
            copies.len(),
            "{mode}: every copy stands in the journal"
        );
        // A commit record waits for the flush ahead of it and is inserted by kblockd. Its submitter, remembered since
        // Q, must still be jbd2's thread, as for the blocks before it.
        let committers: HashSet<u32> = got
            .process
            .iter()
            .filter(|p| p.jbd2 == Jbd2::DESCRIPTOR || p.jbd2 == Jbd2::COMMIT)
            .map(|p| p.pid.get())
            .collect();
        assert_eq!(committers.len(), 1, "{mode}: one thread commits");
        let kinds: HashSet<u8> = got.process.iter().map(|p| p.jbd2.0).collect();
        assert!(kinds.contains(&Jbd2::DESCRIPTOR.0) && kinds.contains(&Jbd2::COMMIT.0));
        assert_eq!(kinds.contains(&Jbd2::DATA_COPY.0), mode == "data=journal");
        assert!(
            got.process
                .iter()
                .all(|p| p.jbd2 != Jbd2::NONE || p.home_sector.get() == NONE)
        );
    }
}

/// Returns the number in the journal by a journal block's first sector, from debugfs.
fn journal_blocks(image: &Path, per_block: u64) -> HashMap<u64, u64> {
    let out = Command::new("debugfs")
        .args(["-R", "blocks <8>"])
        .arg(image)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    (0..)
        .zip(text.split_whitespace().map(|b| b.parse::<u64>().unwrap()))
        .map(|(i, block)| (block * per_block, i))
        .collect()
}
