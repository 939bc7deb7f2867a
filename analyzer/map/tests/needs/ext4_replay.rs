// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of ext4 that were copied while it was mounted and written: the map shows what e2fsck and the kernel make of a copy.

use crate::ext4::images;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use images::{mke2fs, run, tool};
use mostrace_map::class::Kind;
use mostrace_map::fs::{Image, Joined, State, build_by};
use mostrace_map::{Extent, Map};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use test_support::{Need, Suite, Test};

const NEEDS: [Need; 3] = [
    Need::Loop,
    Need::Tool("mke2fs", "e2fsprogs"),
    Need::Tool("e2fsck", "e2fsprogs"),
];

/// Copies of each kind; there are twelve kinds.
const COPIES: usize = 2;

pub fn suite() -> Suite {
    let kinds = [
        ("ext4_1k", "-t ext4 -b 1024", ""),
        ("ext4_4k", "-t ext4 -b 4096", ""),
        ("ext3", "-t ext3 -b 1024", ""),
        ("data_journal", "-t ext4 -b 1024", "data=journal"),
        ("wrapped", "-t ext4 -b 1024 -J size=1", "data=journal"),
        (
            "no_checksums",
            "-t ext4 -b 1024 -O ^metadata_csum,^64bit",
            "",
        ),
        (
            "transaction_checksums",
            "-t ext4 -b 1024 -O ^metadata_csum,^64bit",
            "journal_checksum",
        ),
        ("orphan_file", "-t ext4 -b 1024 -O orphan_file", ""),
        ("inline_data", "-t ext4 -b 1024 -O inline_data", ""),
        ("bigalloc", "-t ext4 -b 1024 -O bigalloc -C 4096", ""),
        (
            "fast_commit_1k",
            "-t ext4 -b 1024 -O fast_commit -J size=4",
            "",
        ),
        (
            "fast_commit_4k",
            "-t ext4 -b 4096 -O fast_commit -J size=8",
            "",
        ),
    ];
    let mut all: Vec<Test> = kinds
        .into_iter()
        .map(|(name, options, mount)| Test::new(name, &NEEDS, move || of(name, options, mount)))
        .collect();
    let debugfs = [&NEEDS[1..], &[Need::Tool("debugfs", "e2fsprogs")]].concat();
    let cut = what_a_cut_of_an_orphan_frees_is_free;
    all.push(Test::new("cut_orphan", &debugfs, cut));
    // Of these, the last change is in the journal alone.
    let unsynced = [&NEEDS[..], &[Need::NoSync]].concat();
    let mut push = |name, body: fn()| all.push(Test::new(name, &unsynced, body));
    push("as_is", what_lies_on_the_disk_is_shown_if_asked);
    push("flag_clear", a_log_that_nobody_asks_to_replay_is_told);
    push("torn", a_transaction_without_its_commit_is_not_replayed);
    push("damaged", damaged_logs_are_replayed_or_refused);
    push("external_journal", a_journal_on_another_device_is_replayed);
    test_support::at_once(all)
}

/// A filesystem that is written while it lives.
struct Written {
    image: PathBuf,
    mount: images::Mount,
    _dir: tempfile::TempDir,
}

impl Written {
    fn new(options: &str, mount: &str) -> Written {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let dir = dir.expect("scratch folder");
        let image = dir.path().join("image");
        mke2fs(&image, options, 24, None);
        let at = dir.path().join("mnt");
        fs::create_dir(&at).expect("mount point");
        let how = ["loop", mount].join(",");
        run(tool("mount")
            .args(["-o", how.trim_end_matches(',')])
            .arg(&image)
            .arg(&at));
        Written {
            image,
            mount: images::Mount { dir: at },
            _dir: dir,
        }
    }

    /// Copies the image at one moment, between two calls of the tasks that write: what two reads show alike was so between them.
    fn copy(&self, to: &Path, gate: &RwLock<()>) {
        let _closed = gate.write().expect("gate");
        for _ in 0..100 {
            let first = fs::read(&self.image).expect("image");
            if first == fs::read(&self.image).expect("image") {
                return fs::write(to, first).expect("copy");
            }
        }
        panic!("the image was never at rest for a moment");
    }
}

/// Writes, renames, links, cuts and deletes files; each time the gate must be open.
fn write(root: &Path, seed: u64, ended: &AtomicBool, gate: &RwLock<()>) {
    let mut random = seed;
    let mut next = move |below: u64| {
        // A linear congruential generator with Knuth's constants; its high bits are the better ones.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut dirs = vec![root.join(format!("of_{seed}"))];
    fs::create_dir(&dirs[0]).expect("directory");
    let mut held = Vec::new();
    let mut n = 0;
    while !ended.load(Relaxed) {
        n += 1;
        if next(8) == 0 {
            std::thread::sleep(Duration::from_millis(next(20)));
        }
        let _open = gate.read().expect("gate");
        let dir = dirs[next(dirs.len() as u64) as usize].clone();
        let other = dirs[next(dirs.len() as u64) as usize].join(format!("{n}"));
        let entries = fs::read_dir(&dir)
            .expect("directory")
            .map(|e| e.expect("entry").path());
        let files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
        let some = (!files.is_empty()).then(|| files[next(files.len() as u64) as usize].clone());
        let open = |path: &Path| {
            File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
        };
        // The filesystem may be full for a moment, so nothing here must succeed.
        let _ = match (next(12), some) {
            (0..3, _) | (_, None) => {
                open(&dir.join(format!("{n}_{}", "x".repeat(next(30) as usize)))).and_then(|file| {
                    file.write_all_at(&vec![7; next(40_000) as usize], next(3) * 50_000)?;
                    file.sync_all()
                })
            }
            (3, Some(path)) => open(&path).and_then(|file| {
                file.write_all_at(&vec![8; next(60_000) as usize], next(200_000))?;
                file.sync_all()
            }),
            (4, Some(path)) => fs::remove_file(path),
            (5, Some(path)) => fs::rename(path, other),
            (6, Some(path)) => fs::hard_link(path, other),
            (7, _) if dirs.len() < 20 => {
                dirs.push(dir.join(format!("d{n}")));
                fs::create_dir(dirs.last().expect("a directory"))
            }
            (8, Some(path)) => open(&path).and_then(|file| {
                file.set_len(next(100_000))?;
                file.sync_all()
            }),
            (9, _) => std::os::unix::fs::symlink("t".repeat(next(3) as usize * 150 + 5), other),
            (_, Some(path)) => open(&path).and_then(|file| {
                held.push(file);
                held.drain(..held.len().saturating_sub(4));
                fs::remove_file(path)
            }),
        };
        if files.len() > 40 {
            files
                .iter()
                .take(30)
                .for_each(|path| drop(fs::remove_file(path)));
        }
    }
}

/// Takes copies while two tasks write.
fn copies(options: &str, mount: &str, dir: &Path) -> Vec<PathBuf> {
    let written = Written::new(options, mount);
    let (ended, gate) = (AtomicBool::new(false), RwLock::new(()));
    std::thread::scope(|scope| {
        for seed in [1, 2] {
            let (root, ended, gate) = (&written.mount.dir, &ended, &gate);
            scope.spawn(move || write(root, seed, ended, gate));
        }
        let copy = |nth| {
            std::thread::sleep(Duration::from_millis(700));
            let to = dir.join(format!("copy_{nth}"));
            written.copy(&to, &gate);
            to
        };
        let all = (0..COPIES).map(copy).collect();
        ended.store(true, Relaxed);
        all
    })
}

fn map(image: &Path, state: State) -> Map {
    let image = Image::open(image).expect("image");
    build_by(state, &image, 0, &|_| {}).expect("map")
}

/// An extent with the path of its inode.
type Line = (Extent, Option<Vec<u8>>);

fn lines(map: &Map) -> Vec<Line> {
    let line = |extent: &Extent| (*extent, map.path(extent.inode));
    map.extents().iter().map(line).collect()
}

/// Checks copies of one kind of filesystem.
fn of(name: &str, options: &str, mount: &str) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let dir = dir.expect("scratch folder");
    let mut replayed = 0;
    for copy in copies(options, mount, dir.path()) {
        let ours = map(&copy, State::NextMount);
        let told = ours.notices().join("\n");
        replayed +=
            usize::from(told.contains(" was replayed, ") || told.contains("commits were replayed"));
        let kernels = dir.path().join("kernels");
        fs::copy(&copy, &kernels).expect("copy");
        let at = dir.path().join("mnt");
        fs::create_dir_all(&at).expect("mount point");
        let how = ["loop", mount].join(",");
        let mounted = tool("mount")
            .args(["-o", how.trim_end_matches(',')])
            .args([&kernels, &at])
            .status();
        if mounted.expect("mount").success() {
            run(tool("umount").arg(&at));
            same(
                name,
                "the kernel",
                &ours,
                &map(&kernels, State::AsIs),
                options.contains("fast_commit"),
            );
        } else {
            // Linux 6.18 refuses some of its own fast commits (`ext4_fc_replay_inode`).
            assert!(
                options.contains("fast_commit"),
                "{name}: not mounted: {told}"
            );
        }
        // e2fsck 1.47 drops the whole journal if there are fast commits: "Invalid argument while recovering journal".
        if !options.contains("fast_commit") {
            let checked = dir.path().join("checked");
            fs::copy(&copy, &checked).expect("copy");
            let out = tool("e2fsck")
                .arg("-fp")
                .arg(&checked)
                .output()
                .expect("e2fsck");
            assert!(matches!(out.status.code(), Some(0 | 1)), "{name}: {out:?}");
            same(name, "e2fsck", &ours, &map(&checked, State::AsIs), false);
        }
    }
    assert!(replayed > 0, "{name}: no copy had a journal to replay");
}

/// Compares two maps, block by block. Blocks that a mount allocates for directories and trees while it replays fast commits are
/// where the kernel put them; they are free in ours, which says so.
fn same(name: &str, by: &str, ours: &Map, theirs: &Map, may_allocate: bool) {
    let (ours, theirs) = (lines(ours), lines(theirs));
    if !may_allocate {
        let differ = ours.iter().zip(&theirs).find(|(a, b)| a != b);
        assert_eq!(differ, None, "{name} by {by}");
        assert_eq!(ours.len(), theirs.len(), "{name} by {by}");
        return;
    }
    let blocks = |lines: &[Line]| -> HashMap<u64, (Kind, u64, Option<u64>)> {
        let of = |(extent, _): &Line| {
            let e = *extent;
            let at = move |n| e.file_offset.map(|offset| offset + n * 512);
            (0..e.sectors).map(move |n| (e.sector + n, (e.kind, e.inode, at(n))))
        };
        lines.iter().flat_map(of).collect()
    };
    let (ours, theirs) = (blocks(&ours), blocks(&theirs));
    assert_eq!(ours.len(), theirs.len(), "{name} by {by}");
    for (sector, owner) in &ours {
        let other = &theirs[sector];
        let is_made =
            owner.0 == Kind::Free && matches!(other.0, Kind::Directory | Kind::ExtentTree);
        assert!(
            owner == other || is_made,
            "{name} by {by}: sector {sector}: {owner:?}, {other:?}"
        );
    }
}

/// Returns a copy with a file that is in the journal alone.
fn with_photo(dir: &Path, options: &str) -> PathBuf {
    let written = Written::new(options, "");
    let photo = written.mount.dir.join("photo.jpg");
    fs::write(&photo, [9; 20_000]).expect("photo");
    File::open(&photo)
        .and_then(|file| file.sync_all())
        .expect("fsync");
    let copy = dir.join("copy");
    written.copy(&copy, &RwLock::new(()));
    copy
}

fn sectors_of(map: &Map, path: &[u8]) -> u64 {
    let is_its = |e: &&Extent| map.path(e.inode).as_deref() == Some(path);
    map.extents().iter().filter(is_its).map(|e| e.sectors).sum()
}

fn what_lies_on_the_disk_is_shown_if_asked() {
    let dir = tempfile::tempdir().expect("scratch folder");
    let copy = with_photo(dir.path(), "-t ext4 -b 1024");
    let (next, as_is) = (map(&copy, State::NextMount), map(&copy, State::AsIs));
    assert_eq!(sectors_of(&next, b"/photo.jpg"), 40);
    assert_eq!(sectors_of(&as_is, b"/photo.jpg"), 0);
    assert_eq!(
        as_is.notices(),
        ["the journal is not replayed: the map shows what lies on the disk"]
    );
    // debugfs sees what lies on the disk alone.
    let image = Image::open(&copy).expect("image");
    let by = mostrace_map::fs::ext4::By::Debugfs;
    let refused = build_by(by, &image, 0, &|_| {}).expect_err("refused");
    assert!(
        refused.to_string().contains("debugfs does not replay it"),
        "{refused}"
    );
    // Several readers joined are replayed as a file is.
    let bytes = fs::read(&copy).expect("copy");
    let joined = Joined::default().with(bytes.len() as u64, bytes);
    let joined = Image::new(&copy, joined.bytes(), joined);
    let joined = build_by(State::NextMount, &joined, 0, &|_| {}).expect("map");
    assert_eq!(joined.extents(), next.extents());
}

/// The kernel discards the log of a filesystem whose flag is clear.
fn a_log_that_nobody_asks_to_replay_is_told() {
    /// The byte of `s_feature_incompat` with needs_recovery, which is its bit 2.
    const FLAG: usize = 1024 + 0x60;
    let dir = tempfile::tempdir().expect("scratch folder");
    // Without checksums, the superblock can be changed.
    let copy = with_photo(dir.path(), "-t ext4 -b 1024 -O ^metadata_csum");
    let mut bytes = fs::read(&copy).expect("copy");
    assert_eq!(bytes[FLAG] & 4, 4);
    bytes[FLAG] &= !4;
    fs::write(&copy, &bytes).expect("copy");
    let ours = map(&copy, State::NextMount);
    let is_told = |line: &String| line.contains("needs_recovery is clear");
    assert!(ours.notices().iter().any(is_told), "{:?}", ours.notices());
    assert_eq!(sectors_of(&ours, b"/photo.jpg"), 0);
    let mount = images::Mount::new(&copy, &dir.path().join("mnt"));
    assert!(!mount.dir.join("photo.jpg").exists());
    drop(mount);
    // It is clean now.
    let clean = map(&copy, State::NextMount);
    assert!(
        !clean.notices().iter().any(is_told),
        "{:?}",
        clean.notices()
    );
}

/// Damages one block of the log after the other and compares with e2fsck: a bad commit block ends the log, as on power loss.
fn a_transaction_without_its_commit_is_not_replayed() {
    let dir = tempfile::tempdir().expect("scratch folder");
    let copy = with_photo(dir.path(), "-t ext4 -b 1024");
    let bytes = fs::read(&copy).expect("copy");
    let commit = |at: &usize| bytes[*at..].starts_with(&[0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 2]);
    let commits: Vec<usize> = (0..bytes.len()).step_by(1024).filter(commit).collect();
    assert!(!commits.is_empty());
    for at in commits {
        let torn = dir.path().join("torn");
        let mut bytes = bytes.clone();
        bytes[at + 100] ^= 1;
        fs::write(&torn, &bytes).expect("torn");
        let ours = map(&torn, State::NextMount);
        run_e2fsck(&torn);
        same("torn", "e2fsck", &ours, &map(&torn, State::AsIs), false);
        assert_eq!(sectors_of(&ours, b"/photo.jpg"), 0);
    }
}

/// Files are cut to any number of blocks, so that the cut is in an extent or in a tree block, or between them; whole blocks of the
/// tree go, too. e2fsck ends the cut, as a mount does.
fn what_a_cut_of_an_orphan_frees_is_free() {
    const BLOCK: u64 = 1024;
    let dir = tempfile::tempdir().expect("scratch folder");
    let contents = dir.path().join("contents");
    fs::create_dir(&contents).expect("folder");
    // Holes divide the file into more extents than an inode holds.
    let file = File::create(contents.join("cut")).expect("file");
    for at in (0..300).filter(|at| at % 7 < 4) {
        file.write_all_at(&[7; BLOCK as usize], at * BLOCK)
            .expect("block");
    }
    let whole = dir.path().join("whole");
    let image = dir.path().join("image");
    for options in ["-t ext4 -b 1024", "-t ext4 -b 1024 -O ^extents,^64bit"] {
        mke2fs(&whole, options, 16, Some(&contents));
        let bytes = fs::read(&whole).expect("image");
        for kept in [0, 1, 2, 4, 5, 12, 13, 150, 267, 268, 269, 298] {
            fs::write(&image, &bytes).expect("image");
            let asks = format!(
                "set_inode_field cut size {}\nset_inode_field cut dtime 0\nset_super_value last_orphan 12\n",
                kept * BLOCK
            );
            let script = dir.path().join("script");
            fs::write(&script, asks).expect("script");
            run(tool("debugfs").arg("-w").arg("-f").arg(&script).arg(&image));
            let ours = map(&image, State::NextMount);
            assert_eq!(ours.path(12).as_deref(), Some(&b"/cut"[..]));
            run_e2fsck(&image);
            same(options, "e2fsck", &ours, &map(&image, State::AsIs), false);
        }
    }
}

/// A mount leaves the trees of extents as they are.
fn run_e2fsck(image: &Path) {
    let out = tool("e2fsck")
        .args(["-fy", "-E", "no_optimize_extents"])
        .arg(image)
        .output()
        .expect("e2fsck");
    assert!(matches!(out.status.code(), Some(0 | 1)), "{out:?}");
}

/// The filesystem and its journal's device as one image, as a recording has them.
fn joined(disk: &Path, journal: &Path, state: State) -> Map {
    let read = |path: &Path| fs::read(path).expect("image");
    let (first, second) = (read(disk), read(journal));
    let joined = Joined::default()
        .with(first.len() as u64, first)
        .with(second.len() as u64, second);
    let image = Image::new(disk, joined.bytes(), joined);
    build_by(state, &image, 0, &|_| {}).expect("map")
}

fn a_journal_on_another_device_is_replayed() {
    let dir = tempfile::tempdir().expect("scratch folder");
    let at = |name: &str| dir.path().join(name);
    let (disk, journal) = (at("disk"), at("journal"));
    mke2fs(&journal, "-O journal_dev -b 1024", 8, None);
    let device = run(tool("losetup").args(["-f", "--show"]).arg(&journal));
    let device = String::from_utf8_lossy(&device).trim().to_owned();
    mke2fs(
        &disk,
        &format!("-t ext4 -b 1024 -J device={device}"),
        16,
        None,
    );
    let mount = images::Mount::new(&disk, &at("mnt"));
    let photo = mount.dir.join("photo.jpg");
    fs::write(&photo, [9; 20_000]).expect("photo");
    File::open(&photo)
        .and_then(|file| file.sync_all())
        .expect("fsync");
    let (disk_copy, journal_copy) = (at("disk_copy"), at("journal_copy"));
    fs::copy(&disk, &disk_copy).expect("copy");
    fs::copy(&journal, &journal_copy).expect("copy");
    drop(mount);
    run(tool("losetup").arg("-d").arg(&device));
    let ours = joined(&disk_copy, &journal_copy, State::NextMount);
    assert_eq!(sectors_of(&ours, b"/photo.jpg"), 40, "{:?}", ours.notices());
    // Alone, the filesystem says that it has no journal to replay.
    let alone = map(&disk_copy, State::NextMount);
    assert_eq!(sectors_of(&alone, b"/photo.jpg"), 0);
    let told = alone.notices().join("\n");
    assert!(
        told.contains("its journal cannot be replayed here"),
        "{told}"
    );
    let checked = tool("e2fsck")
        .args(["-fy", "-j"])
        .args([&journal_copy, &disk_copy])
        .output();
    let out = checked.expect("e2fsck");
    assert!(matches!(out.status.code(), Some(0 | 1)), "{out:?}");
    let theirs = joined(&disk_copy, &journal_copy, State::AsIs);
    same("external", "e2fsck", &ours, &theirs, false);
}

/// Changes bytes of the log, with checksums and without: there is a map that covers the filesystem, or an error.
fn damaged_logs_are_replayed_or_refused() {
    for options in [
        "-t ext4 -b 1024",
        "-t ext4 -b 1024 -O ^metadata_csum,^64bit",
        "-t ext4 -b 1024 -O fast_commit,^metadata_csum -J size=4",
    ] {
        let dir = tempfile::tempdir().expect("scratch folder");
        let copy = with_photo(dir.path(), options);
        let bytes = fs::read(&copy).expect("copy");
        let is_head = |at: &usize| bytes[*at..].starts_with(&[0xc0, 0x3b, 0x39, 0x98]);
        let is_fast = |at: &usize| bytes[*at..].starts_with(&[9, 0, 8, 0]);
        let blocks = (0..bytes.len()).step_by(1024);
        let heads: Vec<usize> = blocks.filter(|at| is_head(at) || is_fast(at)).collect();
        let change = prop::collection::vec((0..heads.len(), 0usize..200, any::<u8>()), 1..6);
        let config = test_support::property::config(file!(), 60);
        let ran = TestRunner::new(config).run(&change, |changes| {
            let mut bytes = bytes.clone();
            for (nth, at, byte) in changes {
                bytes[heads[nth] + at] = byte;
            }
            let image = Image::new(Path::new("damaged"), bytes.len() as u64, bytes);
            if let Ok(map) = build_by(State::NextMount, &image, 0, &|_| {}) {
                let sectors: u64 = map.extents().iter().map(|extent| extent.sectors).sum();
                prop_assert_eq!(sectors, 24 << 11);
            }
            Ok(())
        });
        ran.expect("a map or an error");
    }
}
