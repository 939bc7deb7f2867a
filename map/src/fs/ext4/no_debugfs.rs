// SPDX-License-Identifier: MIT OR Apache-2.0
//! debugfs outside of Linux: it is not run there, as it takes its image from `/proc`.

use super::block_list::BlockList;
use super::inode::InodeRecord;
use crate::fs::error::{Error, Result};
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::Part;

/// There is no debugfs.
///
/// # Errors
/// Always.
pub fn list(
    _image: &Image,
    _records: &[InodeRecord],
    _lines: u64,
    _notices: &mut Notices,
    _part: Part,
    _each: impl FnMut(&InodeRecord, BlockList),
) -> Result<()> {
    Err(Error::ToolMissing {
        tool: "debugfs",
        package: "e2fsprogs on Linux",
    })
}
