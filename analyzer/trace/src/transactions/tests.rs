// SPDX-License-Identifier: MIT OR Apache-2.0
use mostrace_bundle::entry::CallKind;
use mostrace_map::class::{Kind, Provenance, Role};
use proptest::prelude::*;

use super::Outcome;
use super::act::{Act, Content, Who};
use super::commits::Commits;
use super::count::{Count, Sure};
use super::databases::Database;
use super::store::Store;
use super::threads::{Thread, Tie};

const MAGIC: Content = Content::First([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
const WAL: Content = Content::First([0x37, 0x7f, 0x06, 0x82, 0, 0x2d, 0xe2, 0x18]);
const PAGE: u64 = 4096;
const FRAME: u64 = 24 + PAGE;

fn call(kind: CallKind) -> Act {
    Act {
        kind,
        offset: 0,
        bytes: 0,
        content: Content::Nothing,
        who: Who { tgid: 1, pid: 1 },
        file: (20, 1),
        start_ns: 0,
        end_ns: 0,
    }
}

fn write(offset: u64, bytes: u64, content: Content) -> Act {
    Act {
        offset,
        bytes,
        content,
        ..call(CallKind::Write)
    }
}

fn page(number: u64) -> Act {
    write(number * PAGE, PAGE, Content::Nothing)
}

fn first_page(counter: u32) -> Act {
    let content = Content::FirstPage {
        counter,
        size: PAGE,
        has_wal: false,
    };
    write(0, PAGE, content)
}

/// Returns what calls on the files of one database yield: the number of commits, and whether there may be more.
fn seen(acts: &[(Role, Act)]) -> (u64, bool) {
    let mut store = Store::default();
    let mut outcome = Outcome::default();
    let mut doubt = false;
    for (role, act) in acts {
        store.see(*role, act, &mut outcome);
        doubt |= std::mem::take(&mut outcome.doubt);
    }
    store.wal.settle(&mut outcome);
    let mut commits = Commits::default();
    outcome.commits.iter().for_each(|c| commits.add(c.way));
    assert!(store.proof.is_given() || commits.transactions() == 0);
    (commits.transactions(), doubt)
}

/// Returns the ways in which a journal ends.
fn ends() -> [Act; 3] {
    let zeroing = write(0, 28, Content::First([0; 8]));
    [call(CallKind::Unlink), call(CallKind::Truncate), zeroing]
}

/// Makes the calls of a transaction: writes to the journal, the writes to the database, the journal's end.
fn journalled(database: &[Act], end: Act) -> Vec<(Role, Act)> {
    let sync = call(CallKind::Fdatasync);
    let journal = [
        write(0, 512, Content::First([0; 8])),
        write(512, 4, Content::Nothing),
        write(516, PAGE, Content::Nothing),
        sync,
        write(0, 12, MAGIC),
        sync,
    ];
    let of = |role| move |act: &Act| (role, *act);
    let journal = journal.iter().map(of(Role::RollbackJournal));
    let database = database.iter().chain([&sync]).map(of(Role::Db));
    journal
        .chain(database)
        .chain([(Role::RollbackJournal, end)])
        .collect()
}

#[test]
fn a_rollback_journals_end_is_the_commit() {
    for end in ends() {
        let one = |counter| journalled(&[first_page(counter), page(3)], end);
        assert_eq!(seen(&[one(7), one(8)].concat()), (2, false), "{end:?}");
    }
}

#[test]
fn what_did_not_reach_the_database_was_rolled_back() {
    for end in ends() {
        assert_eq!(seen(&journalled(&[], end)), (0, false), "{end:?}");
    }
}

/// A database that was given another page size has a WAL with frames of that size.
#[test]
fn a_wal_of_other_pages_is_read_by_their_size() {
    let wal = |page: u64| {
        let frame = |at: u64| {
            let header = write(
                32 + at * (24 + page),
                24,
                Content::First([0, 0, 0, 1, 0, 0, 0, 9]),
            );
            [header, write(header.offset + 24, page, Content::Nothing)]
        };
        let mut acts = vec![write(0, 32, WAL)];
        acts.extend([frame(0), frame(1), frame(2)].concat());
        acts.into_iter().map(|act| (Role::Wal, act))
    };
    let sizes = [4096, 1024, 4096];
    let acts: Vec<(Role, Act)> = sizes.into_iter().flat_map(wal).collect();
    assert_eq!(seen(&acts).0, 9);
}

/// A recording may claim any length for a call, and nothing follows a full frame.
#[test]
fn a_frame_may_be_said_to_be_of_any_length() {
    let header = write(32, 24, Content::First([0, 0, 0, 1, 0, 0, 0, 9]));
    let endless = write(header.offset + 24, u64::MAX, Content::Nothing);
    let acts = [write(0, 32, WAL), header, endless, endless];
    assert_eq!(seen(&acts.map(|act| (Role::Wal, act))), (1, false));
}

/// Pages that were written too early are written back with the counter that they had.
#[test]
fn what_was_written_back_was_rolled_back() {
    let [unlink, truncate, _] = ends();
    let commit = |counter, end| journalled(&[first_page(counter), page(3)], end);
    let spilled = |counter, end| {
        let back = [page(3), page(4), first_page(counter), page(3)];
        journalled(&back, end)
    };
    let both = |end| [commit(7, end), spilled(7, end), commit(8, end)].concat();
    assert_eq!(seen(&both(unlink)), (2, false));
    // In the exclusive locking mode a commit would look the same.
    assert_eq!(seen(&both(truncate)), (2, true));
    // A commit whose pages were written early increments the counter.
    let early = journalled(&[page(3), first_page(8), page(3)], unlink);
    assert_eq!(seen(&[commit(7, unlink), early].concat()), (2, false));
}

#[test]
fn a_recorder_that_tells_no_counter_leaves_a_doubt() {
    let [unlink, ..] = ends();
    let plain = journalled(&[page(0), page(3)], unlink);
    let twice = journalled(&[page(0), page(3), page(3)], unlink);
    assert_eq!(seen(&plain), (1, false));
    assert_eq!(seen(&[plain, twice].concat()), (1, true));
}

#[test]
fn whoever_finds_anothers_journal_rolls_back() {
    let [unlink, ..] = ends();
    let heir = Act {
        who: Who { tgid: 2, pid: 2 },
        ..unlink
    };
    assert_eq!(
        seen(&journalled(&[first_page(7), page(3)], heir)),
        (0, false)
    );
}

/// A mapped database's file is extended before its pages are written; a rollback truncates what was written past the end.
#[test]
fn a_file_that_is_made_longer_is_no_sign_of_a_rollback() {
    let [unlink, ..] = ends();
    let cut_at = |pages: u64| Act {
        offset: pages * PAGE,
        ..call(CallKind::Truncate)
    };
    let longer = journalled(&[cut_at(2), first_page(1), page(1)], unlink);
    assert_eq!(seen(&longer), (1, false));
    let shorter = journalled(&[page(3), cut_at(2), first_page(1)], unlink);
    assert_eq!(seen(&shorter), (0, true));
}

/// A segment of a recording may begin like this.
#[test]
fn an_end_without_a_beginning_leaves_a_doubt() {
    let [unlink, ..] = ends();
    assert_eq!(seen(&[(Role::RollbackJournal, unlink)]), (0, true));
    let rest = [(Role::Db, first_page(8)), (Role::RollbackJournal, unlink)];
    assert_eq!(seen(&rest), (0, true));
}

#[test]
fn in_the_exclusive_mode_the_counter_stands() {
    let [_, _, zeroing] = ends();
    let one = |first: &[Act]| journalled(&[first, &[page(3)]].concat(), zeroing);
    let all = [
        one(&[first_page(7)]),
        one(&[]),
        one(&[]),
        one(&[first_page(7)]),
    ];
    assert_eq!(seen(&all.concat()), (4, false));
}

#[test]
fn without_a_journal_there_are_at_least_those_that_raised_the_counter() {
    let one = |counter| [(Role::Db, first_page(counter)), (Role::Db, page(2))];
    assert_eq!(seen(&[one(4), one(5), one(6)].concat()), (2, true));
    // A copy of a whole database is not a commit.
    let copy = Act {
        bytes: 3 * PAGE,
        ..first_page(5)
    };
    let copied = [(Role::Db, copy), (Role::Db, page(3))];
    assert_eq!(seen(&copied), (0, false));
}

#[test]
fn atomic_writes_are_committed_or_given_up() {
    let acts = [
        call(CallKind::AtomicStart),
        first_page(2),
        page(3),
        call(CallKind::AtomicCommit),
        call(CallKind::AtomicStart),
        page(3),
        call(CallKind::AtomicAbort),
        call(CallKind::AtomicCommit),
    ];
    assert_eq!(seen(&acts.map(|act| (Role::Db, act))), (1, false));
}

/// A WAL that is written from its beginning.
#[derive(Default)]
struct Written(Vec<(Role, Act)>, u64);

impl Written {
    fn new() -> Written {
        let mut written = Written::default();
        written.begin();
        written
    }

    fn begin(&mut self) {
        self.1 = 0;
        self.push(write(0, 32, WAL));
    }

    fn push(&mut self, act: Act) {
        self.0.push((Role::Wal, act));
    }

    fn header(&mut self, nth: u64, page: u8, size: u8) {
        let told = Content::First([0, 0, 0, page, 0, 0, 0, size]);
        self.push(write(32 + nth * FRAME, 24, told));
    }

    fn frame(&mut self, page: u8, size: u8) {
        let at = self.1;
        self.header(at, page, size);
        self.push(write(32 + at * FRAME + 24, PAGE, Content::Nothing));
        self.1 += 1;
    }

    fn sync(&mut self) {
        self.push(call(CallKind::Fdatasync));
    }

    /// Repeats the last frame, with a sync within it at the end of a sector.
    fn filling(&mut self, page: u8, size: u8) {
        let at = self.1;
        self.header(at, page, size);
        let begin = 32 + at * FRAME + 24;
        self.push(write(begin, 4016, Content::Nothing));
        self.sync();
        self.push(write(begin + 4016, 80, Content::Nothing));
        self.1 += 1;
    }
}

#[test]
fn a_wals_transactions_end_with_a_frame_that_says_so() {
    let mut wal = Written::new();
    wal.frame(2, 0);
    wal.frame(3, 3);
    wal.frame(3, 3);
    assert_eq!(seen(&wal.0), (2, false));
    // The WAL was restarted: the same offset belongs to another transaction.
    wal.begin();
    wal.frame(3, 3);
    assert_eq!(seen(&wal.0), (3, false));
}

#[test]
fn headers_that_are_written_again_are_the_same_transactions() {
    let mut wal = Written::new();
    for _ in 0..3 {
        let first = wal.1;
        wal.frame(2, 0);
        wal.frame(3, 0);
        wal.frame(4, 9);
        wal.header(first, 2, 0);
        wal.header(first + 1, 3, 0);
        wal.header(first + 2, 4, 9);
    }
    assert_eq!(seen(&wal.0), (3, false));
}

#[test]
fn frames_that_fill_a_sector_are_no_transactions() {
    let mut wal = Written::new();
    for _ in 0..5 {
        wal.frame(3, 3);
        wal.frame(3, 3);
        wal.filling(3, 3);
    }
    assert_eq!(seen(&wal.0), (5, false));
    // Equal frames without a sync inside one are transactions of one page.
    let mut wal = Written::new();
    for _ in 0..5 {
        wal.frame(3, 3);
    }
    wal.sync();
    assert_eq!(seen(&wal.0), (5, false));
}

#[test]
fn headers_that_are_not_told_leave_a_doubt() {
    let frame = write(32, 24, Content::Nothing);
    let mut wal = Written::new();
    wal.push(frame);
    wal.sync();
    let mut store = Store::default();
    let mut outcome = Outcome::default();
    for (role, act) in &wal.0 {
        store.see(*role, act, &mut outcome);
    }
    assert_eq!((outcome.commits.len(), outcome.doubt), (1, true));
}

#[test]
fn strangers_files_are_told_by_their_beginnings() {
    let [unlink, ..] = ends();
    let acts = [
        (
            Role::RollbackJournal,
            write(0, 512, Content::First(*b"my notes")),
        ),
        (Role::Db, write(0, 512, Content::First(*b"my notes"))),
        (Role::RollbackJournal, unlink),
    ];
    let mut store = Store::default();
    for (role, act) in acts {
        store.see(role, &act, &mut Outcome::default());
    }
    assert!(store.proof.is_refuted());
}

#[test]
fn commits_of_one_transaction_are_tied() {
    let commit = |way| super::Commit::of(way, &call(CallKind::Unlink));
    use super::commits::Way::{Deleted, Wal};
    let none = || std::iter::empty();
    let mut thread = Thread::default();
    thread.super_journal();
    let first = thread.tie(0, &commit(Deleted), [1].into_iter(), none());
    let second = thread.tie(1, &commit(Deleted), none(), none());
    let later = thread.tie(1, &commit(Deleted), none(), none());
    assert_eq!([first, second, later], [Tie::Alone, Tie::Part, Tie::Alone]);
    // Without a super-journal, they may be the commits of two connections.
    thread.tie(0, &commit(Deleted), [1].into_iter(), none());
    assert_eq!(
        thread.tie(1, &commit(Deleted), none(), none()),
        Tie::Perhaps
    );
    // For WALs, only what a thread does in between distinguishes transactions.
    let mut wal = |at: usize| thread.tie(at, &commit(Wal), none(), none());
    let ties = [wal(0), wal(1), wal(0), wal(0)];
    assert_eq!(ties, [Tie::Alone, Tie::Perhaps, Tie::Alone, Tie::Alone]);
    thread.turn();
    assert_eq!(thread.tie(1, &commit(Wal), none(), none()), Tie::Alone);
}

#[test]
fn a_count_says_how_sure_it_is() {
    let of = |deleted, perhaps_united, has_doubt| Database {
        commits: Commits {
            deleted,
            perhaps_united,
            ..Commits::default()
        },
        has_doubt,
        ..Database::default()
    };
    let sum = |all: &[Database]| super::databases::together(all);
    assert_eq!(sum(&[of(3, 0, false), of(2, 0, false)]).to_string(), "5");
    let united = sum(&[of(3, 0, false), of(3, 3, false)]);
    assert_eq!(
        (united.to_string().as_str(), united.sure),
        ("at least 3", Sure::AtLeast)
    );
    assert_eq!(
        sum(&[of(1, 0, false), of(0, 0, true)]),
        Count::new(1, false)
    );
    assert_eq!(sum(&[of(0, 0, true)]).sure, Sure::Unknown);
    assert_eq!(sum(&[of(0, 0, true)]).divisor(), None);
}

proptest! {
    /// Whatever the order of calls, nothing is counted that no call committed.
    #[test]
    fn no_more_is_counted_than_was_ended(
        acts in prop::collection::vec((0..3_usize, 0..7_u8, 0..4_u64, 0..6_u8), 0..60)
    ) {
        let roles = [Role::RollbackJournal, Role::Wal, Role::Db];
        let mut store = Store::default();
        let mut outcome = Outcome::default();
        for &(role, what, at, told) in &acts {
            let act = match what {
                0 => call(CallKind::Unlink),
                1 => call(CallKind::Truncate),
                2 => call(CallKind::Fdatasync),
                3 => write(0, 28, Content::First([0; 8])),
                4 => write(32 + at * FRAME, 24, Content::First([0, 0, 0, 1, 0, 0, 0, told])),
                5 => first_page(told.into()),
                _ => write(at * PAGE, PAGE, if told == 0 { MAGIC } else { Content::Nothing }),
            };
            store.see(roles[role], &act, &mut outcome);
        }
        store.wal.settle(&mut outcome);
        prop_assert!(outcome.commits.len() <= acts.len());
    }
}

#[test]
fn files_that_are_no_databases_by_their_names_are_so_by_what_is_written() {
    use super::reader::Databases;
    use crate::attribute::File;
    let file = File {
        inode: Some(7),
        generation: Some(1),
        kind: Kind::Regular,
        path: Some((*b"/notes").into()),
        name_withheld: false,
        provenance: Provenance::Live,
        role: Some(Role::Other),
        final_path: None,
    };
    let files = [file];
    let mut reader = Databases::new(&files);
    let mut raw: mostrace_bundle::entry::RawCall = zerocopy::FromZeros::new_zeroed();
    raw.kind = (CallKind::Write as u16).into();
    raw.ino = 7.into();
    raw.generation = 1.into();
    raw.bytes = PAGE.into();
    assert!(reader.see(&raw).place.is_none());
    raw.head.flags = mostrace_bundle::entry::call_flags::DATABASE;
    raw.first_bytes = [0, 0, 0, 9, 0x10, 0, 1, 1];
    let seen = reader.see(&raw);
    assert!(seen.place.is_some_and(|place| place.role == Role::Db));
    // The owner of a file without a name is unknown.
    raw.ino = 8.into();
    let seen = reader.see(&raw);
    assert!(seen.place.is_none() && seen.doubt);
}
