// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores to a mapping, synced or left to the flusher.

use std::io;
use std::ptr;

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "mapped",
    parts: &["synced", "late"],
    work,
};

const BYTES: usize = 1 << 20;

fn work(site: &Site, part: &str) -> io::Result<()> {
    let file = site.create(&format!("/mapped-{part}"))?;
    file.file.set_len(BYTES as u64)?;
    let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: the mapping is our own, of a file that nobody truncates, and is used as memory only until it is unmapped.
    unsafe {
        let at = mmap(ptr::null_mut(), BYTES, read_write, shared, &file.file, 0)?;
        let memory = std::slice::from_raw_parts_mut(at.cast::<u8>(), BYTES);
        for (index, chunk) in memory.chunks_mut(32768).enumerate() {
            file.stamp(chunk, (index * 32768) as u64, How::Buffered);
            if part == "synced" {
                msync(at, BYTES, MsyncFlags::SYNC)?;
            }
        }
        munmap(at, BYTES)?;
    }
    Ok(())
}
