// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of several blocks, of which the commit must write one while the others have no place on the disk yet: it marks
//! as dirty again what it cannot write.

use std::io;

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "subpage",
    parts: &["a", "b"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    let file = site.create(&format!("/subpage-{part}"))?;
    for page in 0..32 {
        let at = page * 4096;
        file.write(at, 1024, How::Buffered)?;
        file.sync()?;
        for round in 1..4 {
            // This commit has to write the rest of the first block as zeroes.
            file.file.set_len(at + 512)?;
            for block in 1..=round {
                file.write(at + block * 1024, 1024, How::Buffered)?;
            }
            site.commit()?;
        }
        file.sync()?;
    }
    Ok(())
}
