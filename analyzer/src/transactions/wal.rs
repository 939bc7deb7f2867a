// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions of a WAL: frames, each a header of 24 bytes and a page. The header of a transaction's last frame says how long
//! the database is then. (<https://www.sqlite.org/fileformat2.html>, 4)
//!
//! Such a header is written more than once where pages of the transaction were written before its end, as all checksums
//! behind them are made anew; and with synchronous=FULL on a device whose sectors may be torn the last frame is repeated up to the
//! end of the sector, where the sync comes, mostly in the middle of a frame.

use mostrace_bundle::entry::CallKind;

use super::Outcome;
use super::act::{Act, Told};
use super::commits::{Commit, Way};
use super::proof::Proof;
use crate::causes::is_sync;

/// Bytes of the WAL's header.
const HEADER: u64 = 32;
/// Bytes of a frame's header.
const FRAME: u64 = 24;
/// Bytes of the smallest page.
const LEAST_PAGE: u64 = 512;

/// A frame of which the header was seen.
#[derive(Clone, Copy, Debug)]
struct Frame {
    offset: u64,
    /// Its page, and the pages of the database if it is a transaction's last.
    words: [u8; 8],
    pid: u32,
    /// Bytes of the page written so far.
    filled: u64,
}

impl Frame {
    /// Where so many bytes of its page end; None if that is nowhere.
    fn end(&self, page: u64) -> Option<u64> {
        self.offset.checked_add(FRAME)?.checked_add(page)
    }
}

/// One database's.
#[derive(Debug, Default)]
pub(super) struct Wal {
    /// Anything was done to it.
    pub is_seen: bool,
    page: u64,
    frame: Option<Frame>,
    /// The last of a transaction's, since the WAL was begun anew.
    last: Option<Frame>,
    /// Nothing was made durable since.
    is_unsynced: bool,
    /// Followed by the same once more, right behind it: transactions, or what fills a sector.
    held: Vec<Commit>,
    /// Sectors are filled.
    fills: bool,
    /// Headers of which the bytes are not told.
    untold: bool,
}

impl Wal {
    pub fn see(&mut self, act: &Act, proof: &mut Proof, outcome: &mut Outcome) {
        self.is_seen = true;
        match act.kind {
            CallKind::Write if act.offset == 0 => self.begin(act, proof, outcome),
            CallKind::Write => self.write(act, proof, outcome),
            kind if is_sync(kind) => self.sync(act, outcome),
            _ => {}
        }
    }

    /// It is begun anew: frames that follow are new ones, and may be of pages of another size.
    fn begin(&mut self, act: &Act, proof: &mut Proof, outcome: &mut Outcome) {
        if let Told::First(_) = act.told {
            proof.see(act.told.is_wal());
        }
        self.settle(outcome);
        (self.frame, self.last, self.page) = (None, None, 0);
    }

    fn write(&mut self, act: &Act, proof: &mut Proof, outcome: &mut Outcome) {
        match act.told {
            Told::First(words) if act.bytes == FRAME && self.is_frames_place(act.offset) => {
                self.header(act, words, outcome);
            }
            Told::Nothing if act.bytes == FRAME => self.untold = true,
            _ => self.contents(act, proof),
        }
    }

    fn is_frames_place(&self, offset: u64) -> bool {
        let behind = offset.checked_sub(HEADER);
        behind.is_some_and(|behind| {
            self.page == 0 || behind.is_multiple_of(FRAME.saturating_add(self.page))
        })
    }

    fn header(&mut self, act: &Act, words: [u8; 8], outcome: &mut Outcome) {
        let frame = Frame {
            offset: act.offset,
            words,
            pid: act.who.pid,
            filled: 0,
        };
        self.frame = Some(frame);
        let is_last = words[4..] != [0; 4];
        let is_again = is_last && self.last.is_some_and(|last| last.offset >= act.offset);
        if is_again {
            return;
        }
        if is_last && self.repeats(&frame) {
            self.held.push(Commit::of(Way::Wal, act));
        } else {
            self.settle(outcome);
            outcome
                .commits
                .extend(is_last.then(|| Commit::of(Way::Wal, act)));
        }
        if is_last {
            self.last = Some(frame);
            self.is_unsynced = true;
        }
    }

    /// Whether a transaction's last frame is the one before once more.
    fn repeats(&self, frame: &Frame) -> bool {
        self.is_unsynced
            && self.last.is_some_and(|last| {
                let next = last.end(self.page);
                (last.words, last.pid, next) == (frame.words, frame.pid, Some(frame.offset))
            })
    }

    fn contents(&mut self, act: &Act, proof: &mut Proof) {
        let Some(frame) = &mut self.frame else { return };
        if frame.end(frame.filled) != Some(act.offset) {
            return;
        }
        if self.page > 0 && frame.filled >= self.page {
            // A part of the next header: the sector's end, and a sync, lie within it.
            (frame.offset, frame.filled, frame.pid) = (act.offset, 0, act.who.pid);
            return;
        }
        let is_page = act.bytes.is_power_of_two() && act.bytes >= LEAST_PAGE;
        if self.page == 0 && frame.filled == 0 && is_page {
            self.page = act.bytes;
            proof.see(true);
        }
        frame.filled = frame.filled.saturating_add(act.bytes);
    }

    fn sync(&mut self, act: &Act, outcome: &mut Outcome) {
        if std::mem::take(&mut self.untold) {
            outcome.commits.push(Commit::of(Way::Wal, act));
            outcome.doubt = true;
        }
        // Another's is a checkpoint's, and says nothing of a transaction that is being written.
        let Some(frame) = self.frame.filter(|frame| frame.pid == act.who.pid) else {
            return;
        };
        self.is_unsynced = false;
        if frame.filled < self.page {
            self.fills = true;
            self.held.clear();
        } else if self.fills {
            // A sector may end where a frame does.
            outcome.doubt |= !self.held.is_empty();
            self.held.clear();
        } else {
            self.settle(outcome);
        }
    }

    /// What was held are transactions: no sync came.
    pub fn settle(&mut self, outcome: &mut Outcome) {
        outcome.commits.append(&mut self.held);
    }
}
