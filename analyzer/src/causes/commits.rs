// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions of SQLite, as its calls show them.
//!
//! With a rollback journal: its pages are written, then the database, and the journal is deleted, cut to nothing, or its
//! header zeroed: that is the commit. With a WAL: frames, each a header of 24 bytes and a page; the header of the last one of
//! a transaction says how long the database is now. (<https://www.sqlite.org/fileformat2.html>, 3 and 4)
//! With f2fs's atomic writes there is no journal: the database is written between two ioctls.

use mostrace_bundle::entry::CallKind;
use mostrace_map::class::Role;

use super::operation::is_sync;

/// Bytes of a journal's header that are zeroed.
const ZEROED: u64 = 28;
/// Bytes of a frame's header.
const FRAME: u64 = 24;

/// What a call did to one of the database's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub kind: CallKind,
    pub offset: u64,
    pub bytes: u64,
    /// Of a short write, its first bytes.
    pub first_bytes: Option<[u8; 8]>,
}

/// What was counted of one database in one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commits {
    /// The rollback journal was deleted.
    pub deleted: u64,
    /// It was cut to nothing.
    pub truncated: u64,
    /// Its header was zeroed.
    pub zeroed: u64,
    /// A transaction's last frame was written to the WAL.
    pub wal: u64,
    /// The database was written at once, by f2fs's atomic writes.
    pub atomic: u64,
    /// The database was written and made durable without a rollback journal.
    pub checkpoints: u64,
}

impl Commits {
    /// Transactions.
    pub fn transactions(&self) -> u64 {
        self.deleted + self.truncated + self.zeroed + self.wal + self.atomic
    }
}

/// How far the transaction has come that is under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub commits: Commits,
    journal_written: bool,
    database_written: bool,
    /// Frames of which it is not known whether one was a transaction's last.
    frames: bool,
}

impl Progress {
    pub fn see(&mut self, role: Role, act: &Act) {
        match role {
            Role::RollbackJournal => self.journal(act),
            Role::Wal => self.wal(act),
            Role::Db => self.database(act),
            _ => {}
        }
    }

    fn journal(&mut self, act: &Act) {
        match act.kind {
            CallKind::Write if act.is_zeroing() => {
                let ended = self.end();
                self.commits.zeroed += ended;
            }
            CallKind::Write => self.journal_written |= act.bytes > 0,
            CallKind::Unlink => {
                let ended = self.end();
                self.commits.deleted += ended;
            }
            CallKind::Truncate if act.offset == 0 => {
                let ended = self.end();
                self.commits.truncated += ended;
            }
            _ => {}
        }
    }

    /// The journal is void: 1 if that was a commit. What had not reached the database was rolled back.
    fn end(&mut self) -> u64 {
        let written = std::mem::take(&mut self.journal_written);
        let committed = std::mem::take(&mut self.database_written) && written;
        committed.into()
    }

    fn wal(&mut self, act: &Act) {
        match (act.kind, act.first_bytes) {
            (CallKind::Write, Some([_, _, _, _, size @ ..])) if act.bytes == FRAME => {
                self.commits.wal += u64::from(size != [0; 4]);
            }
            (CallKind::Write, None) if act.bytes == FRAME => self.frames = true,
            // What the headers do not tell, synchronous=FULL does.
            (kind, _) if is_sync(kind) => {
                self.commits.wal += u64::from(std::mem::take(&mut self.frames));
            }
            _ => {}
        }
    }

    fn database(&mut self, act: &Act) {
        match act.kind {
            CallKind::Write => self.database_written |= act.bytes > 0,
            CallKind::AtomicCommit => {
                let written = std::mem::take(&mut self.database_written);
                self.commits.atomic += u64::from(written);
            }
            CallKind::AtomicAbort => self.database_written = false,
            kind if is_sync(kind) && !self.journal_written => {
                let written = std::mem::take(&mut self.database_written);
                self.commits.checkpoints += u64::from(written);
            }
            _ => {}
        }
    }
}

impl Act {
    fn is_zeroing(&self) -> bool {
        self.offset == 0 && self.bytes == ZEROED && self.first_bytes == Some([0; 8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

    fn write(bytes: u64) -> Act {
        Act {
            kind: CallKind::Write,
            offset: 0,
            bytes,
            first_bytes: None,
        }
    }

    fn call(kind: CallKind) -> Act {
        Act { kind, ..write(0) }
    }

    fn frame(size: u8) -> Act {
        Act {
            first_bytes: Some([0, 0, 0, 2, 0, 0, 0, size]),
            ..write(24)
        }
    }

    fn seen(acts: &[(Role, Act)]) -> Commits {
        let mut progress = Progress::default();
        acts.iter().for_each(|(role, act)| progress.see(*role, act));
        progress.commits
    }

    /// A transaction with a rollback journal up to its end.
    fn journalled() -> Vec<(Role, Act)> {
        let header = Act {
            first_bytes: Some(MAGIC),
            ..write(12)
        };
        let sync = call(CallKind::Fdatasync);
        [write(512), write(4096), sync, header, sync]
            .map(|act| (Role::RollbackJournal, act))
            .into_iter()
            .chain([write(4096), sync].map(|act| (Role::Db, act)))
            .collect()
    }

    #[test]
    fn a_rollback_journals_end_is_the_commit() {
        let zeroing = Act {
            first_bytes: Some([0; 8]),
            ..write(28)
        };
        for (end, commits) in [
            (
                call(CallKind::Unlink),
                Commits {
                    deleted: 2,
                    ..Commits::default()
                },
            ),
            (
                call(CallKind::Truncate),
                Commits {
                    truncated: 2,
                    ..Commits::default()
                },
            ),
            (
                zeroing,
                Commits {
                    zeroed: 2,
                    ..Commits::default()
                },
            ),
        ] {
            let one = [journalled(), vec![(Role::RollbackJournal, end)]].concat();
            assert_eq!(seen(&[one.clone(), one].concat()), commits);
        }
    }

    #[test]
    fn what_did_not_reach_the_database_was_rolled_back() {
        let unlink = (Role::RollbackJournal, call(CallKind::Unlink));
        assert_eq!(
            seen(&[(Role::RollbackJournal, write(512)), unlink]),
            Commits::default()
        );
        assert_eq!(seen(&[unlink]), Commits::default());
    }

    #[test]
    fn atomic_writes_are_committed_or_given_up() {
        let acts = [
            write(4096),
            write(4096),
            call(CallKind::AtomicCommit),
            write(4096),
            call(CallKind::AtomicAbort),
            call(CallKind::AtomicCommit),
        ];
        let commits = Commits {
            atomic: 1,
            ..Commits::default()
        };
        assert_eq!(seen(&acts.map(|act| (Role::Db, act))), commits);
        assert_eq!(commits.transactions(), 1);
    }

    #[test]
    fn a_wals_transactions_end_with_a_frame_that_says_so() {
        let sync = call(CallKind::Fdatasync);
        let wal = [
            write(32),
            frame(0),
            write(4096),
            frame(3),
            write(4096),
            frame(3),
            write(4096),
        ];
        let mut acts: Vec<_> = wal.map(|act| (Role::Wal, act)).into();
        acts.extend([write(4096), write(4096), sync, sync].map(|act| (Role::Db, act)));
        let commits = Commits {
            wal: 2,
            checkpoints: 1,
            ..Commits::default()
        };
        assert_eq!(seen(&acts), commits);
        // Of a recorder that does not tell the bytes, by the syncs.
        let untold = [write(24), write(4096), write(24), write(4096), sync, sync];
        let acts = untold.map(|act| (Role::Wal, act));
        assert_eq!(seen(&acts).wal, 1);
    }
}
