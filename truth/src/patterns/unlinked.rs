// SPDX-License-Identifier: MIT OR Apache-2.0
//! Written after the last name has gone, as temporary files are.

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
