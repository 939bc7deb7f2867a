// SPDX-License-Identifier: MIT OR Apache-2.0
//! debugfs of e2fsprogs: a second opinion on the blocks of inodes.
//!
//! It checks the filesystem as a whole when it opens it, and follows trees as they are told. It is asked only about inodes
//! whose trees were walked to their end without a complaint, as a few blocks that lead to one another keep it busy for hours.

use super::block_list::BlockList;
use super::inode::{BlockMap, InodeRecord};
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::Part;
use session::{Ask, Question};

mod answers;
mod ask;
mod confine;
mod process;
mod session;

/// Calls `each` with every inode and the blocks that debugfs lists of it, in their order. An inode that debugfs says nothing
/// of is left out and becomes a notice. All answers together have `lines` at most.
///
/// # Errors
/// There is no debugfs, it does not open the filesystem, or it cannot be run.
pub fn list(
    image: &Image,
    records: &[InodeRecord],
    lines: u64,
    notices: &mut Notices,
    part: Part,
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

/// `ex` for extents. For indirect blocks `stat`: it alone gives the places of single blocks in a
/// sparse file (`blocks` leaves them out).
fn question(record: &InodeRecord) -> Question {
    Question {
        command: match record.block_map {
            BlockMap::Extents => Ask::Extents,
            BlockMap::Indirect | BlockMap::None => Ask::Stat,
        },
        inode: record.number,
    }
}
