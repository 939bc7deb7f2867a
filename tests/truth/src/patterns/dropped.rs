// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files are written and immediately deleted or truncated while another process commits, so that blocks in a commit
//! have lost their file.

use std::io;

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "dropped",
    parts: &["deleted", "cut", "commits"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    for round in 0..200 {
        let path = format!("/dropped-{part}{round}");
        let file = site.create(&path)?;
        file.write(0, 65536, How::Buffered)?;
        match part {
            "deleted" => site.unlink(file.inode, &path)?,
            "cut" => file.file.set_len(4096)?,
            _ => {
                site.commit()?;
                site.unlink(file.inode, &path)?;
            }
        }
    }
    Ok(())
}
