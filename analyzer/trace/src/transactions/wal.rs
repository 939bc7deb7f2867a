// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions of a WAL, which consists of frames: a header of 24 bytes and a page each. The header of a transaction's last
//! frame has the new size of the database. (<https://www.sqlite.org/fileformat2.html>, 4)
//!
//! A frame's header is written more than once if pages of the transaction were written before its end, because all later
//! checksums change. With synchronous=FULL on a device that may tear sectors, the last frame is repeated up to the end of
//! the sector; the sync then usually comes in the middle of a frame.

use mostrace_bundle::entry::CallKind;

use super::Outcome;
use super::act::{Act, Content};
use super::commits::{Commit, Way};
use super::proof::Proof;
use crate::causes::is_sync;

/// Bytes of the WAL's header.
const HEADER: u64 = 32;
/// Bytes of a frame's header.
const FRAME: u64 = 24;
/// Bytes of the smallest page.
const LEAST_PAGE: u64 = 512;

/// A frame whose header was seen.
#[derive(Clone, Copy, Debug)]
struct Frame {
    offset: u64,
    /// The number of its page, and the size of the database in pages if it is a transaction's last frame.
    words: [u8; 8],
    pid: u32,
    /// Bytes of the page written so far.
    filled: u64,
}

impl Frame {
    /// Returns the offset at which `page` bytes of its page end; None if it overflows.
    fn end(&self, page: u64) -> Option<u64> {
        self.offset.checked_add(FRAME)?.checked_add(page)
    }
}

/// The state of one database's WAL.
#[derive(Debug, Default)]
pub(super) struct Wal {
    /// True if the WAL was used at all.
    pub is_seen: bool,
    page: u64,
    frame: Option<Frame>,
    /// The last frame of the last transaction since the WAL was restarted.
    last: Option<Frame>,
    /// True if nothing was synced since that frame.
    is_unsynced: bool,
    /// Commits of frames that repeat the one before: they are transactions, or fill a sector.
    held: Vec<Commit>,
    /// True if sectors are filled.
    fills: bool,
    /// True if headers were written whose bytes the trace does not have.
    unknown: bool,
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

    /// Handles a restart of the WAL: the following frames are new, and may have another page size.
    fn begin(&mut self, act: &Act, proof: &mut Proof, outcome: &mut Outcome) {
        if let Content::First(_) = act.content {
            proof.see(act.content.is_wal());
        }
        self.settle(outcome);
        (self.frame, self.last, self.page) = (None, None, 0);
    }

    fn write(&mut self, act: &Act, proof: &mut Proof, outcome: &mut Outcome) {
        match act.content {
            Content::First(words) if act.bytes == FRAME && self.is_frames_place(act.offset) => {
                self.header(act, words, outcome);
            }
            Content::Nothing if act.bytes == FRAME => self.unknown = true,
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

    /// Returns true if a transaction's last frame repeats the frame before it.
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
            // The write is part of the next header: the sector's end, and a sync, lie within that header.
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
        if std::mem::take(&mut self.unknown) {
            outcome.commits.push(Commit::of(Way::Wal, act));
            outcome.doubt = true;
        }
        // Another thread's sync belongs to a checkpoint, and says nothing about the transaction being written.
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

    /// Counts the held commits as transactions, because no sync came within a frame.
    pub fn settle(&mut self, outcome: &mut Outcome) {
        outcome.commits.append(&mut self.held);
    }
}
