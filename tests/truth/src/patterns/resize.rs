// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are appended to, truncated and overwritten, and in which holes are punched.

use std::io;

use rustix::fs::{FallocateFlags, fallocate};

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "resize",
    parts: &["cut", "punched", "appended"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    let file = site.create(&format!("/resize-{part}"))?;
    let mut end = 0;
    for round in 0..24 {
        file.write(end, 12288, How::Buffered)?;
        file.sync()?;
        end += 12288;
        match part {
            "cut" => {
                end -= 8192;
                file.file.set_len(end)?;
            }
            "punched" => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(&file.file, flags, round * 4096, 8192)?;
                file.write(round * 4096, 4096, How::Buffered)?;
            }
            _ => {}
        }
    }
    Ok(())
}
