// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks e2fsprogs' debugfs for a second opinion on the blocks of inodes.
//!
//! debugfs checks the filesystem as a whole when it opens it, but it follows an inode's tree without checking it: a few blocks that
//! lead to one another keep it busy for hours. It is therefore asked only about inodes whose trees the walker followed to their end
//! without a complaint.

use super::block_list::BlockList;
use super::inode::{BlockMap, InodeRecord};
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::PartProgress;
use session::{Ask, Question};

mod answers;
mod ask;
mod confine;
mod process;
mod session;

/// Calls `each` with every inode and the blocks that debugfs lists for it, in the order of `records`. An inode about which debugfs
/// says nothing is left out and becomes a notice. All answers together have at most `lines` lines.
///
/// # Errors
/// Returns an error if debugfs is missing, cannot be run, or does not open the filesystem.
pub fn list(
    image: &Image,
    records: &[InodeRecord],
    lines: u64,
    notices: &mut Notices,
    part: PartProgress,
    mut each: impl FnMut(&InodeRecord, BlockList),
) -> Result<()> {
    let questions: Vec<Question> = records.iter().map(question).collect();
    ask::ask(image, lines, &questions, notices, part, |nth, answer| {
        if let (Some(record), Some(question)) = (records.get(nth), questions.get(nth)) {
            let list = match question.command {
                Ask::Extents => answers::from_extents(answer),
                Ask::Stat => answers::from_stat(answer),
            };
            each(record, list);
        }
    })
}

/// Returns `ex` for an inode with extents and `stat` for one with indirect blocks, because only `stat` lists single blocks of a
/// sparse file with their positions (`blocks` leaves out the positions).
fn question(record: &InodeRecord) -> Question {
    Question {
        command: match record.block_map {
            BlockMap::Extents => Ask::Extents,
            BlockMap::Indirect | BlockMap::None => Ask::Stat,
        },
        inode: record.number,
    }
}
