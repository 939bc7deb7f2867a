// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are written after their last name is removed, like temporary files.

use std::io;

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "unlinked",
    parts: &["a", "b"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    for round in 0..12 {
        let path = format!("/gone-{part}{round}");
        let file = site.create(&path)?;
        if round % 2 == 0 {
            file.write(0, 8192, How::Buffered)?;
        }
        site.unlink(file.inode, &path)?;
        file.write(8192, 16384, How::Buffered)?;
        file.sync()?;
    }
    Ok(())
}
