// SPDX-License-Identifier: MIT OR Apache-2.0
//! The area of fast commits, behind the log of jbd2.

use super::super::superblock::SuperBlock;
use super::tags::{Scan, Tag};
use crate::fs::image::Image;
use crate::fs::jbd2::Recovery;

/// Reads the fast commits that follow the log's last transaction.
pub fn tags(image: &Image, sb: &SuperBlock, log: &Recovery) -> Vec<Tag> {
    let mut scan = Scan::new(log.next_tid, sb.s_inode_size);
    for &at in &log.fast_commits {
        let block = image.read(at, sb.block_bytes(), "fast commit");
        if !block.is_ok_and(|block| scan.block(&block)) {
            break;
        }
    }
    scan.into_tags()
}
