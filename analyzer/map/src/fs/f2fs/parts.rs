// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of an f2fs.

use std::path::PathBuf;

use super::block::BlockSize;
use super::superblock::{Dev, SuperBlock};
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::part::{DevicePart, PartDevice};

/// Returns the parts of the filesystem on the first of its devices.
///
/// # Errors
/// Returns an error if no superblock is sound.
pub fn parts(image: &Image, notices: &mut Notices) -> Result<Vec<DevicePart>> {
    let sb = SuperBlock::read_part(image, notices)?;
    if sb.devs.is_empty() {
        return Ok(vec![part(PartDevice::First, sb.block_count, sb.block_size)]);
    }
    let device = |(at, dev): (usize, &Dev)| match at {
        0 => part(PartDevice::First, dev.blocks, sb.block_size),
        _ => part(
            PartDevice::Path(path_of(&dev.path)),
            dev.blocks,
            sb.block_size,
        ),
    };
    Ok(sb.devs.iter().enumerate().map(device).collect())
}

fn part(device: PartDevice, blocks: u64, size: BlockSize) -> DevicePart {
    DevicePart {
        device,
        bytes: Some(size.bytes_of(blocks)),
    }
}

#[cfg(unix)]
fn path_of(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(path).into()
}

#[cfg(not(unix))]
fn path_of(path: &[u8]) -> PathBuf {
    String::from_utf8_lossy(path).into_owned().into()
}
