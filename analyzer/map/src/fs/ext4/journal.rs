// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct journal_superblock_s`, which is big-endian: the parts of the journal's inode.

use super::block_list::{BlockList, Run};
use super::numbers::FileBlock;
use super::superblock::{SuperBlock, compat};
use crate::class::Kind;
use crate::fs::image::Image;
use crate::fs::notices::Notices;

const JBD2_MAGIC_NUMBER: u32 = 0xc03b_3998;
const JBD2_FEATURE_INCOMPAT_FAST_COMMIT: u32 = 0x20;
const JBD2_DEFAULT_FAST_COMMIT_BLOCKS: u32 = 256;
const JBD2_MIN_JOURNAL_BLOCKS: u32 = 1024;

/// A position behind every block of a file.
const NOWHERE: FileBlock = FileBlock(u64::MAX);

/// Cuts the journal's runs by their contents: the superblock in block `first`, the fast-commit area at the tail, and between them
/// the blocks whose contents change with every transaction.
pub fn cut(
    image: &Image,
    sb: &SuperBlock,
    first: FileBlock,
    list: &BlockList,
    notices: &mut Notices,
) -> Vec<(Run, Kind)> {
    let fast_commit = fast_commit_start(image, sb, first, list).unwrap_or_else(|why| {
        notices.push(format!("journal superblock: {why}"));
        NOWHERE
    });
    let log = first.plus(1);
    let parts = [
        (first, log, Kind::Jbd2Superblock),
        (log, fast_commit, Kind::JournalBlock),
        (fast_commit, NOWHERE, Kind::FastCommit),
    ];
    let cut = |run: &Run| parts.map(|(from, to, kind)| (part(run, from, to), kind));
    list.runs
        .iter()
        .flat_map(cut)
        .filter_map(|(run, kind)| Some((run?, kind)))
        .collect()
}

/// Returns the part of a run between two blocks of the file.
fn part(run: &Run, from: FileBlock, to: FileBlock) -> Option<Run> {
    let logical = run.logical.max(from);
    let blocks = logical.up_to(run.logical.plus(run.blocks).min(to));
    (blocks > 0).then(|| Run {
        logical,
        block: run.block.plus(run.logical.up_to(logical)),
        blocks,
    })
}

/// Returns the first block of the fast-commit area, counted in the journal; `NOWHERE` if there is none. jbd2 clears its own feature
/// bit in a clean journal, so ext4's bit is checked too.
fn fast_commit_start(
    image: &Image,
    sb: &SuperBlock,
    first: FileBlock,
    list: &BlockList,
) -> Result<FileBlock, String> {
    let first = list
        .runs
        .iter()
        .find(|run| run.logical == first)
        .ok_or("the journal has no blocks")?;
    let buf = sb
        .read_block(image, first.block, "journal superblock")
        .map_err(|e| e.to_string())?;
    let field = |offset: usize| {
        let bytes = buf.get(offset..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    };
    if field(0x0) != JBD2_MAGIC_NUMBER {
        return Err("no magic number".into());
    }
    let s_maxlen = field(0x10);
    let s_feature_incompat = field(0x28);
    let s_num_fc_blks = match field(0x54) {
        0 => JBD2_DEFAULT_FAST_COMMIT_BLOCKS,
        blocks => blocks,
    };
    let has_fast_commit = sb.compat(compat::FAST_COMMIT)
        || s_feature_incompat & JBD2_FEATURE_INCOMPAT_FAST_COMMIT != 0;
    let start = s_maxlen
        .checked_sub(s_num_fc_blks)
        .filter(|&at| at >= JBD2_MIN_JOURNAL_BLOCKS);
    Ok(start
        .filter(|_| has_fast_commit)
        .map_or(NOWHERE, |at| FileBlock(at.into())))
}
