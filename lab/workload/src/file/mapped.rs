// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory mapping of a file.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{MmapMut, MmapOptions};

/// Maps the first `bytes` bytes of a file for reading and writing.
pub(super) fn map(file: &File, bytes: usize) -> io::Result<MmapMut> {
    // SAFETY: the file belongs to this run; if somebody truncates it meanwhile, only this process is killed.
    unsafe { MmapOptions::new().len(bytes).map_mut(file) }
}
