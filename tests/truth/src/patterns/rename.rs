// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are written, renamed and written again, as an editor does; also hard links.

use std::io;

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "rename",
    parts: &["a", "b"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    for round in 0..12 {
        let (before, after) = (format!("/{part}{round}.tmp"), format!("/{part}{round}.txt"));
        let file = site.create(&before)?;
        file.write(0, 16384, How::Buffered)?;
        file.sync()?;
        site.rename(file.inode, &before, &after)?;
        file.write(16384, 16384, How::Buffered)?;
        file.sync()?;
        let link = format!("/{part}{round}.link");
        site.link(file.inode, &after, &link)?;
        file.write(32768, 8192, How::Buffered)?;
        file.sync()?;
    }
    Ok(())
}
