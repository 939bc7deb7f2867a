// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: bundles made by hand, whose causes are known.

mod changes;
mod forced;

use crate::scene;

use std::collections::BTreeMap;
use std::io;

use mostrace_bundle::entry::{CallKind, Jbd2, NONE, Origin, call_flags};
use mostrace_map::class::Kind;
use mostrace_trace::attribute::{FileId, Op, Process, Row};
use mostrace_trace::causes::{CauseId, Known, Share, Sharing, Verdict};
use mostrace_trace::origins::{Base, Origins};
use mostrace_trace::pipeline::{Fold, Step};
use mostrace_trace::reading::{Options, Reading, read};
use mostrace_trace::recording::Recording;
use scene::{
    CREATE, CallOf, DEVICE, FLUSHER, FSYNC, HandleOf, JBD2, KWORKER, OTHER, READ, SQLITE, SYNC,
    Scene, Thread, UNLINK, WRITE, saved,
};

/// A row with its verdict, and with its shares, the largest one first.
struct Judged {
    row: Row,
    verdict: Verdict,
    shares: Vec<Share>,
}

/// Keeps all rows.
#[derive(Default)]
struct All(Vec<Judged>);

impl Fold for All {
    fn begin(&mut self, _: Base) {}

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        let verdicts = step.verdicts.expect("causes are wanted");
        for (row, (verdict, shares)) in step.rows.iter().zip(verdicts.iter()) {
            self.0.push(Judged {
                row: *row,
                verdict: *verdict,
                shares: shares.to_vec(),
            });
        }
        Ok(())
    }
}

/// A scene as it was read: its rows, and what they refer to.
struct Told {
    rows: Vec<Judged>,
    reading: Reading,
}

fn told_with(scene: &Scene, sharing: Sharing) -> Told {
    let (_tmp, path) = saved(scene);
    let options = Options {
        causes: Some(sharing),
        ..Options::default()
    };
    let recordings = Recording::open_all(&[path.into()], false).unwrap();
    let mut all = All::default();
    let reading = read(recordings, &options, &|_| {}, &mut all).unwrap();
    Told {
        rows: all.0,
        reading,
    }
}

fn told(scene: &Scene) -> Told {
    told_with(scene, Sharing::Equal)
}

impl Told {
    /// Returns the process, operation and inode of a cause; "-" for what is unknown.
    fn words(&self, cause: CauseId) -> [String; 3] {
        let Origins { names, causes, .. } = &self.reading.origins;
        let cause = causes[cause.0 as usize];
        let file = (cause.file != FileId::NONE).then(|| &names.files[cause.file.0 as usize]);
        let inode = file.and_then(|file| file.inode);
        [
            comm(&names.processes[cause.process.0 as usize]),
            cause
                .operation
                .map_or("-", |operation| operation.as_str())
                .to_owned(),
            inode.map_or("-".to_owned(), |inode| inode.to_string()),
        ]
    }

    /// Returns bytes by what the words of each share's cause, and its certainty, are made to.
    fn bytes_by(
        &self,
        is_wanted: impl Fn(&Row) -> bool,
        name: impl Fn([String; 3], Known) -> String,
    ) -> BTreeMap<String, u64> {
        let mut by = BTreeMap::new();
        for judged in self.rows.iter().filter(|judged| is_wanted(&judged.row)) {
            for share in &judged.shares {
                let name = name(self.words(share.cause), share.known);
                *by.entry(name).or_default() += u64::from(share.bytes);
            }
        }
        by.retain(|_, bytes| *bytes > 0);
        by
    }
}

fn comm(process: &Process) -> String {
    let comm = process.comm.as_deref();
    comm.map_or("-".into(), |comm| {
        String::from_utf8_lossy(comm).into_owned()
    })
}

/// Returns kind, cause's comm, operation, inode, certainty and number of causers of the rows that were written.
fn written(scene: &Scene) -> Vec<String> {
    let told = told(scene);
    let line = |judged: &Judged| {
        let [comm, operation, inode] = told.words(judged.shares[0].cause);
        let kind = judged.row.kind.map_or("-", Kind::as_str);
        let Verdict { known, causers, .. } = judged.verdict;
        format!(
            "{kind} {comm} {operation} {inode} {} {causers}",
            known.as_str()
        )
    };
    let rows = told.rows.iter();
    rows.filter(|judged| judged.row.op == Op::Write)
        .map(line)
        .collect()
}

/// Returns bytes by the task of the cause.
fn by_comm([comm, ..]: [String; 3], _: Known) -> String {
    comm
}

fn of<const N: usize>(by: [(&str, u64); N]) -> BTreeMap<String, u64> {
    by.map(|(name, bytes)| (name.to_owned(), bytes)).into()
}

#[test]
fn a_copy_is_its_handles_and_a_descriptor_everybodys_in_proportion() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8, 16, 24]);
    let unlink = HandleOf {
        inode: 13,
        ..UNLINK.by(OTHER)
    };
    s.handle(unlink, &[32]);
    s.commit(2000, &[8, 16, 24, 32, 40]);
    assert_eq!(
        written(&s),
        [
            "descriptor sqlite3 create 12 proportional 2",
            "metadata_copy sqlite3 create 12 exact 1",
            "metadata_copy sqlite3 create 12 exact 1",
            "metadata_copy sqlite3 create 12 exact 1",
            "metadata_copy other unlink 13 exact 1",
            // No handle was seen to dirty this one.
            "metadata_copy - - - unknown 0",
            "commit sqlite3 create 12 proportional 2",
        ]
    );
    let expected = [
        ("-", 4096),
        ("other", 4096 + 2 * 1024),
        ("sqlite3", 3 * 4096 + 2 * 3072),
    ];
    assert_eq!(told(&s).bytes_by(|_| true, by_comm), of(expected));
}

/// A part's own sectors at home are nobody's block, and before its last part a commit has not ended its transaction.
#[test]
fn a_copy_and_a_commit_in_parts_are_judged_as_one_block() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    for (sector, jbd2, home) in [(2000, Jbd2::METADATA_COPY, 8), (2008, Jbd2::COMMIT, NONE)] {
        s.halved(WRITE | SYNC, sector, 4096, JBD2);
        s.journal(sector, 4096, JBD2, Origin::JOURNAL, jbd2, home);
    }
    let copy = "metadata_copy sqlite3 create 12 exact 1";
    let commit = "commit sqlite3 create 12 exact 1";
    assert_eq!(written(&s), [copy, copy, commit, commit]);
}

/// With data=journal, contents are changed through the journal, and before 6.3 nobody makes their pages dirty: what is written home
/// has the causes of its copies.
#[test]
fn contents_that_the_journal_writes_home_are_of_those_who_changed_them() {
    let mut s = Scene::begun();
    let commit = |s: &mut Scene, copy| {
        s.handle(CREATE, &[1000]);
        for (sector, jbd2, home) in [(2000, copy, 1000), (2008, Jbd2::COMMIT, NONE)] {
            s.request(WRITE | SYNC, sector, 4096, JBD2);
            s.journal(sector, 4096, JBD2, Origin::JOURNAL, jbd2, home);
        }
        s.tid += 1;
        for _ in 0..2 {
            s.owned(WRITE, 1000, 4096, KWORKER, Origin::FILE);
            s.file(1000, 4096, 12, 0, b"a.db");
        }
    };
    commit(&mut s, Jbd2::DATA_COPY);
    commit(&mut s, Jbd2::METADATA_COPY);
    assert_eq!(
        written(&s),
        [
            "data_copy sqlite3 write 12 exact 1",
            "commit sqlite3 create 12 exact 1",
            "regular sqlite3 write 12 exact 1",
            "regular - - - unknown 0",
            "metadata_copy sqlite3 create 12 exact 1",
            "commit sqlite3 create 12 exact 1",
            "regular - - - unknown 0",
            "regular - - - unknown 0",
        ]
    );
}

/// Two journals number their transactions alike, and their blocks do not name the journal: a copy is known by its home, other
/// blocks by the copies near them.
#[test]
fn the_blocks_of_two_journals_are_told_apart() {
    let elsewhere = HandleOf {
        s_dev: DEVICE + 1,
        ..CREATE.by(OTHER)
    };
    let mut s = Scene::begun();
    s.tid -= 1;
    s.handle(elsewhere, &[]);
    s.tid += 1;
    for homes in [[8, 1 << 20], [16, 2 << 20]] {
        s.handle(CREATE, &homes[..1]);
        s.handle(elsewhere, &homes[1..]);
        s.commit(2000, &homes[..1]);
        s.tid -= 1;
        s.commit(5 << 20, &homes[1..]);
    }
    assert_eq!(
        written(&s),
        [
            "descriptor - - - unknown 0",
            "metadata_copy sqlite3 create 12 exact 1",
            "commit sqlite3 create 12 exact 1",
            "descriptor - - - unknown 0",
            "metadata_copy other create 12 exact 1",
            "commit other create 12 exact 1",
            "descriptor sqlite3 create 12 exact 1",
            "metadata_copy sqlite3 create 12 exact 1",
            "commit sqlite3 create 12 exact 1",
            "descriptor other create 12 exact 1",
            "metadata_copy other create 12 exact 1",
            "commit other create 12 exact 1",
        ]
    );
}

#[test]
fn of_a_transaction_that_may_have_begun_before_the_recording_only_what_was_seen_is_known() {
    let mut s = Scene::new();
    s.handle(CREATE, &[8]);
    s.commit(2000, &[8]);
    assert_eq!(
        written(&s),
        [
            "descriptor - - - unknown 0",
            "metadata_copy sqlite3 create 12 first 1",
            "commit - - - unknown 0",
        ]
    );
}

#[test]
fn a_flusher_allocates_for_who_wrote_the_pages() {
    let mut s = Scene::begun();
    s.handle(FLUSHER, &[8]);
    s.owned(WRITE, 800, 4096, KWORKER, Origin::FILE);
    s.file(800, 4096, 12, 0, b"a.db");
    s.dirtier(800, 4096, OTHER);
    s.commit(2000, &[8]);
    assert_eq!(
        written(&s),
        [
            "regular other write 12 first 1",
            "descriptor other allocate 12 exact 1",
            "metadata_copy other allocate 12 exact 1",
            "commit other allocate 12 exact 1",
        ]
    );
    // The flusher is not the cause of pages whose cause is unknown.
    let mut s = Scene::begun();
    s.handle(FLUSHER, &[8]);
    s.commit(2000, &[8]);
    assert_eq!(written(&s)[1], "metadata_copy - - - unknown 0");
}

#[test]
fn an_eviction_is_whose_unlink_it_was() {
    let mut s = Scene::begun();
    s.call(CallOf {
        kind: CallKind::Unlink,
        ..FSYNC.by(OTHER)
    });
    let evict = HandleOf {
        function: "ext4_evict_inode",
        call: CallKind::Close,
        ..CREATE
    };
    s.handle(evict, &[8]);
    s.handle(HandleOf { inode: 13, ..evict }, &[16]);
    s.handle(
        HandleOf {
            inode: 14,
            ..evict.by(KWORKER)
        },
        &[24],
    );
    s.commit(2000, &[8, 16, 24]);
    assert_eq!(
        written(&s)[1..4],
        [
            "metadata_copy other unlink 12 exact 1",
            "metadata_copy - - - unknown 0",
            "metadata_copy - - - unknown 0",
        ]
    );
}

#[test]
fn of_handles_that_overlapped_it_is_one_of_a_set() {
    let overlapping = HandleOf {
        overlaps: true,
        lasted_us: 5000,
        ..CREATE
    };
    let others = overlapping.by(OTHER);
    let mut s = Scene::begun();
    s.handle(overlapping, &[8]);
    s.handle(others, &[16]);
    // This handle was the first to modify nothing, so it cannot be meant.
    let third = Thread::new(301, 301, "third");
    s.handle(overlapping.by(third), &[]);
    s.commit(2000, &[8, 16]);
    assert_eq!(
        written(&s)[1..3],
        [
            "metadata_copy sqlite3 create 12 set 2",
            "metadata_copy other create 12 set 2",
        ]
    );
    let is_copy = |row: &Row| row.kind == Some(Kind::MetadataCopy);
    let by = told(&s).bytes_by(is_copy, by_comm);
    assert_eq!(by, of([("other", 4096), ("sqlite3", 4096)]));
}

#[test]
fn a_block_written_home_is_who_changed_it_first_or_all_theirs() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.commit(2000, &[8]);
    s.handle(UNLINK.by(OTHER), &[8, 16]);
    s.commit(2100, &[8, 16]);
    let home = |s: &mut Scene| {
        s.owned(WRITE, 8, 8192, KWORKER, Origin::BDEV);
    };
    home(&mut s);
    // Nobody has changed it since.
    home(&mut s);
    assert_eq!(
        written(&s)[7..],
        [
            "unmapped other unlink 12 shared 2",
            "unmapped - - - unknown 0"
        ]
    );
    let by = |sharing| {
        let is_home = |row: &Row| row.origin == Some(Origin::BDEV);
        told_with(&s, sharing).bytes_by(is_home, by_comm)
    };
    let first = [("-", 8192), ("other", 4096), ("sqlite3", 4096)];
    assert_eq!(by(Sharing::First), of(first));
    // The first block was changed by both, and the last to change it was the other.
    assert_eq!(by(Sharing::Last), of([("-", 8192), ("other", 8192)]));
    let equal = [("-", 8192), ("other", 4096 + 2048), ("sqlite3", 2048)];
    assert_eq!(by(Sharing::Equal), of(equal));
}

#[test]
fn without_its_tables_a_bundle_knows_who_dirtied_and_who_read() {
    let mut s = scene::transaction();
    s.owned(WRITE, 9000, 4096, KWORKER, Origin::FILE);
    s.file(9000, 4096, 13, 0, b"a.db");
    s.dirtier(9000, 4096, SQLITE);
    s.owned(WRITE | SYNC, 9100, 4096, OTHER, Origin::DIRECT);
    s.file(9100, 4096, 13, 4096, b"a.db");
    s.owned(READ, 9100, 4096, KWORKER, Origin::FILE);
    let by = told(&s).bytes_by(
        |row| row.op != Op::Discard,
        |[_, operation, _], known| match known {
            Known::Exact => operation,
            _ => known.as_str().to_owned(),
        },
    );
    let expected = [
        ("read", 16384),
        ("write", 4096),
        ("first", 4096),
        ("unknown", 8192 + 12288 + 4096 + 4096 + 4096),
    ];
    assert_eq!(by, of(expected));
}

/// Handles are read ahead of the requests, and of a fast journal those of hundreds of transactions: each is judged all the same.
#[test]
fn transactions_at_full_speed_are_all_judged() {
    let mut s = Scene::begun();
    s.step_us = 10;
    let transactions = 600;
    for at in 0..transactions {
        let thread = if at == 60 { OTHER } else { SQLITE };
        s.handle(CREATE.by(thread), &[8]);
        s.commit(2000 + 24 * at as u64, &[8]);
    }
    s.owned(WRITE, 8, 4096, KWORKER, Origin::BDEV);
    let rows = written(&s);
    let (home, journal) = rows.split_last().unwrap();
    assert_eq!(home, "unmapped sqlite3 create 12 shared 2");
    assert_eq!(journal.len(), 3 * transactions);
    assert!(journal.iter().all(|row| row.ends_with("exact 1")));
    let others: Vec<usize> = (0..journal.len())
        .filter(|&at| journal[at].contains(" other "))
        .collect();
    assert_eq!(others, [180, 181, 182]);
}
