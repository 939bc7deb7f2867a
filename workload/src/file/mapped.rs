// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file's memory.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{MmapMut, MmapOptions};

/// Maps so many bytes of a file, to read and to write.
pub(super) fn map(file: &File, bytes: usize) -> io::Result<MmapMut> {
    // SAFETY: the file is this run's own; whoever else cuts it short meanwhile ends this process, and harms nobody.
    unsafe { MmapOptions::new().len(bytes).map_mut(file) }
}
