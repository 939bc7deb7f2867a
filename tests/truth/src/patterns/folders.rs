// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files in folders that are renamed and moved while the files are written.

use std::fs;
use std::io;

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "folders",
    parts: &["p", "q"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    let mut top = format!("/{part}");
    fs::create_dir_all(site.at(&format!("{top}/mid/low")))?;
    let file = site.create(&format!("{top}/mid/low/data"))?;
    for round in 0..24 {
        let path = format!("{top}/mid/low/data");
        file.write(round * 8192, 8192, How::Buffered)?;
        file.sync()?;
        let moved = format!("/{part}{round}");
        let moved_path = format!("{moved}/mid/low/data");
        site.names.gains(file.inode, &moved_path)?;
        fs::rename(site.at(&top), site.at(&moved))?;
        site.names.loses(file.inode, &path)?;
        top = moved;
    }
    Ok(())
}
