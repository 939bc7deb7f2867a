// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data from a pipe that the kernel moves to a file (splice), so that nobody calls write().

use std::io::{self, Read, Seek, Write};

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "piped",
    parts: &["a", "b"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    let file = site.create(&format!("/piped-{part}"))?;
    let (mut from, mut to) = io::pipe()?;
    let mut out = file.file.try_clone()?;
    for at in 0..32u64 {
        let mut data = vec![0; 16384];
        file.stamp(&mut data, at * 16384, How::Buffered);
        to.write_all(&data)?;
        out.seek(io::SeekFrom::Start(at * 16384))?;
        // std copies from a pipe to a file with splice(2).
        io::copy(&mut from.by_ref().take(16384), &mut out)?;
    }
    file.sync()
}
