// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that the kernel copies from another file (sendfile), so that nobody calls write().

use std::io::{self, Seek, SeekFrom, Write};

use rustix::fs::{MemfdFlags, memfd_create, sendfile};

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "sent",
    parts: &["a", "b"],
    work,
};

const PIECE: usize = 40960;
const PIECES: usize = 24;

fn work(site: &Site, part: &str) -> io::Result<()> {
    let file = site.create(&format!("/sent-{part}"))?;
    let mut data = vec![0; PIECES * PIECE];
    file.stamp(&mut data, 0, How::Buffered);
    let mut memory = std::fs::File::from(memfd_create("sent", MemfdFlags::empty())?);
    memory.write_all(&data)?;
    // The last piece is copied first, so that no two pieces follow each other.
    for piece in (0..PIECES).rev() {
        let mut at = (piece * PIECE) as u64;
        (&file.file).seek(SeekFrom::Start(at))?;
        let end = at + PIECE as u64;
        while at < end {
            let left = (end - at) as usize;
            if sendfile(&file.file, &memory, Some(&mut at), left)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    file.sync()
}
