// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes of what a filesystem writes for no call on a file: mounting, unmounting, lazy initialisation, the cleanup of
//! orphans. First bundles that are made by hand, then recordings of ext4 on a loop device.
//!
//! The tests run one at a time, because each makes its own load.

use crate::judged;
use crate::run;
use crate::scene;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use judged::{Share, shares};
use mostrace_bundle::entry::{CallKind, Flags, Jbd2, NONE, Origin, handle_flags};
use mostrace_map::class::{Class, Kind};
use mostrace_trace::attribute::Op;
use mostrace_trace::causes::Known;
use run::{record, succeeds};
use scene::{CREATE, HandleOf, JBD2, READ, SQLITE, SYNC, Scene, Thread, WRITE};
use test_support::{Need, Suite, one_by_one, tests};

const PROBES: [Need; 2] = [Need::Loop, Need::Btf];

pub fn suite() -> Suite {
    one_by_one(tests![
        what_mount_and_umount_submit_is_theirs,
        what_a_task_submits_elsewhere_is_nobodys,
        what_mount_made_dirty_is_its_own,
        lazy_initialisation_is_its_threads,
        other_work_of_a_kernel_thread_is_nobodys,
        orphans_are_cleaned_up_by_the_mount_of_their_filesystem,
        a_transaction_whose_first_handle_was_seen_is_whole,
        the_superblock_ahead_of_a_commit_is_the_transactions,
        a_filesystem_is_mounted_used_and_unmounted needs PROBES,
        groups_are_initialised_lazily needs PROBES,
        orphans_are_cleaned_up needs PROBES,
        the_journals_timer_names_nobody_else needs PROBES,
    ])
}

const MOUNT: Thread = Thread::new(301, 301, "mount");
const LAZY: Thread = Thread::new(70, 70, "ext4lazyinit");
/// A block at home, far from the journal.
const HOME: u64 = 64;

/// Adds the write of a block of metadata by a thread.
fn write_home(s: &mut Scene, thread: Thread, flags: Flags) {
    s.owned(WRITE | SYNC, HOME, 4096, thread, Origin::BDEV);
    s.flag_process(flags);
}

/// Adds the write of jbd2's superblock by a thread.
fn write_superblock(s: &mut Scene, thread: Thread, flags: Flags) {
    s.request(WRITE | SYNC, 1992, 4096, thread);
    s.journal(1992, 4096, thread, Origin::JOURNAL, Jbd2::SUPERBLOCK, NONE);
    s.flag_process(flags);
}

/// Returns comm, operation and certainty of each share of what was written.
fn written(s: &Scene) -> Vec<String> {
    let tmp = tempfile::tempdir().unwrap();
    let shares = shares(&s.save(tmp.path()));
    let written = shares.iter().filter(|share| share.op == Op::Write);
    written.map(Share::words).collect()
}

fn what_mount_and_umount_submit_is_theirs() {
    let mut s = Scene::begun();
    write_home(&mut s, MOUNT, Flags::MOUNTS);
    write_superblock(&mut s, MOUNT, Flags::MOUNTS);
    write_home(&mut s, MOUNT, Flags::UNMOUNTS);
    write_superblock(&mut s, MOUNT, Flags::UNMOUNTS);
    assert_eq!(
        written(&s),
        [
            // Others may have changed it without the journal.
            "mount mount first",
            "mount mount exact",
            "mount umount first",
            "mount umount exact",
        ]
    );
}

fn what_a_task_submits_elsewhere_is_nobodys() {
    let mut s = Scene::begun();
    write_home(&mut s, MOUNT, Flags::default());
    write_superblock(&mut s, MOUNT, Flags::default());
    // The bits mean something else for other tasks' threads.
    write_home(&mut s, JBD2, Flags::KERNEL_THREAD);
    assert_eq!(written(&s), [" - unknown"; 3]);
}

/// A block of the device's page cache that is replayed from the journal, or that a program wrote.
fn what_mount_made_dirty_is_its_own() {
    for (flags, expected) in [
        (Flags::MOUNTS, "mount mount first"),
        (Flags::UNMOUNTS, "mount umount first"),
        (Flags::default(), "mount other first"),
    ] {
        let mut s = Scene::begun();
        s.owned(WRITE | SYNC, HOME, 4096, MOUNT, Origin::BDEV);
        s.dirtier(HOME, 4096, MOUNT);
        s.flag_dirtier(flags);
        assert_eq!(written(&s), [expected]);
    }
}

/// A handle of the thread that initialises groups, and what is written for it.
fn lazy_initialisation_is_its_threads() {
    let mut s = Scene::begun();
    let init = HandleOf {
        thread: LAZY,
        function: "ext4_init_inode_table",
        inode: 0,
        call: CallKind::Other,
        ..CREATE
    };
    s.handle(init, &[HOME]);
    s.flag_handle(handle_flags::KERNEL);
    s.commit(2000, &[HOME]);
    // The zeros of an inode table.
    write_home(&mut s, LAZY, Flags::KERNEL_THREAD);
    write_home(&mut s, LAZY, Flags::KERNEL_THREAD);
    assert_eq!(
        written(&s),
        [
            "ext4lazyinit lazy_init exact",
            "ext4lazyinit lazy_init exact",
            "ext4lazyinit lazy_init exact",
            "ext4lazyinit lazy_init exact",
            "ext4lazyinit lazy_init first",
        ]
    );
}

/// A handle of an unknown function by a kernel thread, and a program that is called like the kernel's thread.
fn other_work_of_a_kernel_thread_is_nobodys() {
    let mut s = Scene::begun();
    let other = HandleOf {
        thread: LAZY,
        function: "ext4_something_new",
        call: CallKind::Other,
        ..CREATE
    };
    s.handle(other, &[HOME]);
    s.flag_handle(handle_flags::KERNEL);
    s.commit(2000, &[HOME]);
    let program = Thread {
        pid: 302,
        tgid: 302,
        ..LAZY
    };
    s.owned(WRITE | SYNC, 128, 4096, program, Origin::BDEV);
    assert_eq!(written(&s), [" - unknown"; 4]);
}

fn orphans_are_cleaned_up_by_the_mount_of_their_filesystem() {
    for (call, expected) in [
        (CallKind::FillSuper, "mount orphan_cleanup exact"),
        // An overlay's mount removes files of the filesystem below it.
        (CallKind::Mount, "mount unlink exact"),
    ] {
        let mut s = Scene::begun();
        let evict = HandleOf {
            thread: MOUNT,
            function: "ext4_evict_inode",
            call,
            ..CREATE
        };
        s.handle(evict, &[HOME]);
        s.commit(2000, &[HOME]);
        assert_eq!(written(&s), [expected; 3]);
    }
}

fn a_transaction_whose_first_handle_was_seen_is_whole() {
    for (flags, expected) in [
        (handle_flags::OPENS, ["sqlite3 create exact"; 3]),
        (
            Flags::default(),
            [" - unknown", "sqlite3 create first", " - unknown"],
        ),
    ] {
        let mut s = Scene::new();
        s.handle(CREATE, &[HOME]);
        s.flag_handle(flags);
        s.commit(2000, &[HOME]);
        assert_eq!(written(&s), expected, "{flags:?}");
    }
}

/// jbd2 writes its superblock ahead of the first commit in an empty journal.
fn the_superblock_ahead_of_a_commit_is_the_transactions() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[HOME]);
    write_superblock(&mut s, JBD2, Flags::KERNEL_THREAD);
    // Another task takes part later, before the transaction is locked.
    (0..30).for_each(|_| s.request(READ, 8000, 4096, SQLITE));
    let other = HandleOf {
        thread: Thread {
            comm: "other",
            ..MOUNT
        },
        ..CREATE
    };
    s.handle(other, &[HOME + 8]);
    s.commit(2000, &[HOME, HOME + 8]);
    assert_eq!(
        written(&s),
        [
            "sqlite3 create proportional",
            "sqlite3 create proportional",
            "other create proportional",
            "sqlite3 create exact",
            "other create exact",
            "sqlite3 create proportional",
            "other create proportional",
        ]
    );
    // No handle had begun by then.
    let mut s = Scene::begun();
    s.tid = 1;
    write_superblock(&mut s, JBD2, Flags::KERNEL_THREAD);
    assert_eq!(written(&s), [" - unknown"]);
}

/// A loop device over an image, and a place to mount it; both go when it is dropped.
struct Disk {
    folder: tempfile::TempDir,
    device: PathBuf,
}

impl Disk {
    /// Attaches the image `disk` in `folder`.
    fn attach(folder: tempfile::TempDir) -> Disk {
        let device = sh("losetup -f --show disk", folder.path());
        Disk {
            device: device.trim().into(),
            folder,
        }
    }

    fn new(mkfs: &str) -> Disk {
        let folder = tempfile::tempdir().unwrap();
        let make = format!("mkdir mnt; truncate -s 128M disk; mke2fs -q -t ext4 {mkfs} disk; sync");
        sh(&make, folder.path());
        Disk::attach(folder)
    }

    /// Records `script`, which runs beside the image with `$D` for the device; returns what was caused by whom.
    fn record(&self, script: &str) -> Vec<Share> {
        let bundle = self.folder.path().join("run.most");
        let mut record = record(&self.device, &bundle);
        record.args(["-q", "--", "sh", "-ec", script]);
        succeeds(
            record
                .env("D", &self.device)
                .current_dir(self.folder.path()),
        );
        let shares = shares(&bundle);
        tell(script, &shares);
        shares
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let down = format!("umount -q mnt || :; losetup -d {}", self.device.display());
        sh(&down, self.folder.path());
    }
}

fn sh(script: &str, folder: &Path) -> String {
    let mut command = Command::new("sh");
    succeeds(command.args(["-ec", script]).current_dir(folder)).out
}

/// Prints the bytes that were written by cause; of each class all bytes, and those with an unknown cause.
fn tell(script: &str, shares: &[Share]) {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut of: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for share in shares.iter().filter(|share| share.op == Op::Write) {
        let class = share.class().map_or("-", Class::as_str);
        let kind = share.kind.map_or("-", Kind::as_str);
        *sums
            .entry(format!("{class} {kind} {}", share.words()))
            .or_default() += u64::from(share.bytes);
        let [all, unknown] = of.entry(class).or_default();
        *all += u64::from(share.bytes);
        *unknown += u64::from(share.bytes) * u64::from(share.known == Known::Unknown);
    }
    println!("{script}\n{of:?}");
    sums.iter()
        .for_each(|(what, bytes)| println!("{bytes:9} {what}"));
}

fn of_class(shares: &[Share], class: Class) -> impl Iterator<Item = &Share> {
    shares
        .iter()
        .filter(move |share| share.op == Op::Write && share.class() == Some(class))
}

/// Asserts that the cause of every block of metadata and of the journal is known.
fn assert_all_known(shares: &[Share]) {
    for class in [Class::Metadata, Class::Journal] {
        let unknown = of_class(shares, class).filter(|share| share.known == Known::Unknown);
        assert_eq!(unknown.map(|share| share.bytes).sum::<u32>(), 0);
        assert!(of_class(shares, class).count() > 0);
    }
}

/// Returns the bytes of a program's operation.
fn bytes_of(shares: &[Share], comm: &str, operation: &str) -> u32 {
    let its = shares
        .iter()
        .filter(|share| share.comm == comm && share.operation == operation);
    its.map(|share| share.bytes).sum()
}

fn a_filesystem_is_mounted_used_and_unmounted() {
    let disk = Disk::new("-E lazy_itable_init=0,lazy_journal_init=0");
    let shares = disk.record(
        "mount $D mnt; for i in 1 2 3; do mkdir mnt/d$i; echo x >mnt/d$i/f; sync; done; umount mnt",
    );
    assert_all_known(&shares);
    assert!(bytes_of(&shares, "mount", "mount") >= 1024);
    assert!(bytes_of(&shares, "umount", "umount") >= 2048);
    assert!(bytes_of(&shares, "mkdir", "mkdir") > 0);
    let mut flushes = shares.iter().filter(|share| share.op == Op::Flush);
    assert!(flushes.any(|share| share.words() == "umount umount exact"));
    assert_eq!(bytes_of(&shares, "mkdir", "mount"), 0);
}

/// The thread begins within 5 s of the mount (`EXT4_DEF_LI_MAX_START_DELAY`). There are 16 groups.
fn groups_are_initialised_lazily() {
    let disk = Disk::new("-E nodiscard,lazy_itable_init=1,lazy_journal_init=1");
    let shares = disk.record(
        "mount -o init_itable=0 $D mnt; for i in 1 2 3; do mkdir mnt/d$i; sync; done
        until [ $(dumpe2fs $D 2>&1 | grep -c ITABLE_ZEROED) = 16 ]; do sleep 0.1; done; umount mnt",
    );
    assert_all_known(&shares);
    assert!(bytes_of(&shares, "ext4lazyinit", "lazy_init") > 0);
}

/// The image is that of a filesystem in use, with an open file that has no name.
fn orphans_are_cleaned_up() {
    let used = Disk::new("-E lazy_itable_init=0,lazy_journal_init=0");
    sh(
        &format!(
            "mount {} mnt; (exec 3>mnt/gone; dd if=/dev/zero bs=64k count=50 >&3 2>/dev/null; rm mnt/gone; sync;
             mkdir copy; cp --sparse=always {0} copy/disk)",
            used.device.display()
        ),
        used.folder.path(),
    );
    let folder = tempfile::tempdir().unwrap();
    let from = used.folder.path().join("copy/disk");
    sh(
        &format!("mkdir mnt; mv {} disk; sync", from.display()),
        folder.path(),
    );
    let disk = Disk::attach(folder);
    let shares = disk.record("mount $D mnt; sync; umount mnt");
    assert_all_known(&shares);
    assert!(bytes_of(&shares, "mount", "orphan_cleanup") > 0);
    // The journal is replayed.
    assert!(bytes_of(&shares, "mount", "mount") > 4096);
    assert_eq!(bytes_of(&shares, "mount", "other"), 0);
    assert_eq!(bytes_of(&shares, "mount", "unlink"), 0);
}

/// The journal's timer commits what a program changed; nobody is named but the program.
fn the_journals_timer_names_nobody_else() {
    let disk = Disk::new("-E lazy_itable_init=0,lazy_journal_init=0");
    let mount = format!("mount -o commit=1 {} mnt", disk.device.display());
    sh(&mount, disk.folder.path());
    let shares = disk.record(
        "info=/proc/fs/jbd2/${D#/dev/}-8/info; before=$(head -n1 $info); mkdir mnt/d
        while [ \"$(head -n1 $info)\" = \"$before\" ]; do sleep 0.1; done",
    );
    let journal: Vec<&Share> = of_class(&shares, Class::Journal).collect();
    assert!(journal.iter().any(|share| share.kind == Some(Kind::Commit)));
    let others = journal.iter().filter(|share| share.comm != "mkdir");
    let others: Vec<String> = others.map(|share| share.words()).collect();
    assert!(others.is_empty(), "{others:?}");
}
