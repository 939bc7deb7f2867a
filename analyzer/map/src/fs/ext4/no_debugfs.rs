// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stand-in for debugfs outside Linux. debugfs is not run there, because it reads its image from `/proc`.

use super::block_list::BlockList;
use super::inode::InodeRecord;
use crate::fs::error::{Error, Result};
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::PartProgress;

/// Reports that there is no debugfs.
pub fn list(
    _image: &Image,
    _records: &[InodeRecord],
    _lines: u64,
    _notices: &mut Notices,
    _part: PartProgress,
    _each: impl FnMut(&InodeRecord, BlockList),
) -> Result<()> {
    Err(Error::ToolMissing {
        tool: "debugfs",
        package: "e2fsprogs on Linux",
    })
}
