// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a mount replays of the log (the kernel's fs/jbd2/recovery.c).
//!
//! The scan begins at `s_start` with the transaction `s_sequence` and ends at the first block that does not belong to the next
//! transaction. A transaction without a commit block is not replayed, nor is a copy of a block that this or a later transaction
//! revoked.

use std::collections::BTreeMap;

use super::descriptor::{self, Tag};
use super::header::{BlockType, Header};
use super::log::Log;
use super::revoke::{self, Revoked};
use super::sums;
use crate::extent::Extent;
use crate::fs::error::Result;
use crate::fs::image::Image;

/// A copy that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The byte of the image at which it lies.
    pub at: u64,
    /// True if the first four bytes of the block are the magic number; they are zeros in the copy.
    pub is_escaped: bool,
}

/// What is replayed.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The last copies of blocks, by the number of the block.
    pub copies: BTreeMap<u64, Copied>,
    /// The number of transactions.
    pub transactions: u32,
    /// Why the kernel would not replay the whole log, such as damage or unknown features.
    pub fault: Option<String>,
    /// The number that fast commits must have to be replayed.
    pub next_tid: u32,
    /// The blocks of the area of fast commits, as bytes of the image.
    pub fast_commits: Vec<u64>,
}

/// Reads the part of the log that the next mount replays. The log's file lies in `runs`, which count from the image's beginning.
pub fn recover(image: &Image, runs: Vec<Extent>) -> Result<Recovery> {
    let mut recovery = Recovery::default();
    let Some(mut log) = Log::open(image, runs, 0)? else {
        recovery.fault = Some("its superblock describes no log".into());
        return Ok(recovery);
    };
    if log.sb.unknown() != 0 {
        recovery.fault = Some(format!("incompatible feature bits {:#x}", log.sb.unknown()));
    } else if !log.sb.is_sound {
        recovery.fault = Some("its superblock has a wrong checksum".into());
    } else if log.sb.s_start != 0 {
        recovery.replay(&mut log)?;
    }
    Ok(recovery)
}

/// A transaction with a commit block.
struct Transaction {
    tid: u32,
    /// The tags, each with the place of its copy.
    tags: Vec<(Tag, u32)>,
    revokes: Vec<u64>,
}

impl Recovery {
    fn replay(&mut self, log: &mut Log) -> Result<()> {
        if !(log.sb.s_first..log.sb.end).contains(&log.sb.s_start) {
            self.fault = Some(format!(
                "its log begins at block {}, outside",
                log.sb.s_start
            ));
            return Ok(());
        }
        let mut scan = Scan {
            at: log.sb.s_start,
            left: log.sb.end.saturating_sub(log.sb.s_first),
            tid: log.sb.s_sequence,
            last_time: (0, 0),
        };
        let mut transactions = Vec::new();
        loop {
            match scan.transaction(log)? {
                Step::Committed(transaction) => transactions.push(transaction),
                Step::End => break,
                Step::Fault(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            }
        }
        self.next_tid = scan.tid;
        let mut revoked = Revoked::default();
        for transaction in &transactions {
            revoked.add(transaction.tid, &transaction.revokes);
        }
        self.transactions = u32::try_from(transactions.len()).unwrap_or(u32::MAX);
        for Transaction { tid, tags, .. } in transactions {
            for (tag, place) in tags {
                if !revoked.holds(tid, tag.t_blocknr) {
                    self.copy(log, tid, tag, place)?;
                }
            }
        }
        // The block behind the log is not used: j_fc_first in jbd2_journal_initialize_fast_commit.
        let end = log.sb.end.saturating_add(log.sb.fast_commit_blocks);
        let area = log.sb.end.saturating_add(1)..end;
        self.fast_commits = area.map_while(|at| log.byte_at(at)).collect();
        Ok(())
    }

    fn copy(&mut self, log: &mut Log, tid: u32, tag: Tag, place: u32) -> Result<()> {
        let Some(at) = log.byte_at(place) else {
            return Ok(());
        };
        if tag.checksum.is_some()
            && log.load(place)?.is_some()
            && !sums::is_copy_sound(&log.sb, tid, &tag, &log.block)
        {
            let home = tag.t_blocknr;
            let what =
                format!("the copy of block {home} in transaction {tid} has a wrong checksum");
            self.fault.get_or_insert(what);
            return Ok(());
        }
        let copied = Copied {
            at,
            is_escaped: tag.is_escaped,
        };
        self.copies.insert(tag.t_blocknr, copied);
        Ok(())
    }
}

/// What the next blocks of the log are.
enum Step {
    Committed(Transaction),
    End,
    Fault(String),
}

/// The place that the scan has reached.
struct Scan {
    at: u32,
    /// The blocks up to a full round; a damaged log might have no end.
    left: u32,
    /// The transaction that is looked for.
    tid: u32,
    /// The time of the last commit.
    last_time: (u64, u32),
}

impl Scan {
    /// Reads one transaction.
    fn transaction(&mut self, log: &mut Log) -> Result<Step> {
        let mut transaction = Transaction {
            tid: self.tid,
            tags: Vec::new(),
            revokes: Vec::new(),
        };
        let mut sum = u32::MAX;
        let mut damaged = None;
        while let Some(header) = self.next_header(log)? {
            let place = self.at;
            self.advance(log, 1);
            match header.h_blocktype {
                BlockType::Superblock => return Ok(Step::End),
                BlockType::Descriptor => {
                    if !sums::is_descriptor_sound(&log.sb, &log.block) {
                        damaged = Some(place);
                    }
                    let tags = descriptor::tags(&log.sb, &log.block);
                    let sums = log.sb.has_transaction_sum();
                    if sums {
                        sum = sums::crc32_be(sum, &log.block);
                    }
                    for tag in tags {
                        transaction.tags.push((tag, self.at));
                        if sums && log.load(self.at)?.is_some() {
                            sum = sums::crc32_be(sum, &log.block);
                        }
                        self.advance(log, 1);
                    }
                }
                BlockType::Revoke => {
                    if !sums::is_descriptor_sound(&log.sb, &log.block) {
                        damaged = Some(place);
                    }
                    match revoke::blocks(&log.sb, &log.block) {
                        Some(blocks) => transaction.revokes.extend(blocks),
                        None => damaged = Some(place),
                    }
                }
                BlockType::Commit => return Ok(self.commit(log, transaction, sum, damaged)),
            }
        }
        Ok(Step::End)
    }

    /// Decides about a transaction whose commit block was read.
    fn commit(
        &mut self,
        log: &Log,
        transaction: Transaction,
        sum: u32,
        damaged: Option<u32>,
    ) -> Step {
        let time = sums::commit_time(&log.block).unwrap_or_default();
        // A commit that is older than the one before it is a rest of an earlier round.
        let is_stale = time < self.last_time;
        let is_sound = sums::is_commit_sound(&log.sb, &log.block, sum);
        let tid = transaction.tid;
        match (damaged, is_sound) {
            (Some(_), _) | (_, false) if is_stale => Step::End,
            (Some(at), _) => Step::Fault(format!(
                "block {at} of the log, in transaction {tid}, has a wrong checksum"
            )),
            // The transaction's last blocks were not written, which happens when power fails.
            (None, false) if !log.sb.is_async() => Step::End,
            _ => {
                self.last_time = time;
                self.tid = tid.wrapping_add(1);
                Step::Committed(transaction)
            }
        }
    }

    /// Reads the next block and its header; None at the end of the log.
    fn next_header(&self, log: &mut Log) -> Result<Option<Header>> {
        if self.left == 0 || log.load(self.at)?.is_none() {
            return Ok(None);
        }
        let header = Header::read(&log.block);
        Ok(header.filter(|header| header.h_sequence == self.tid))
    }

    fn advance(&mut self, log: &Log, blocks: u32) {
        self.at = log.place(self.at, blocks);
        self.left = self.left.saturating_sub(blocks);
    }
}
