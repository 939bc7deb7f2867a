// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes through the page cache, in order and at random, synced by the writer or left to the flusher.

use std::io;

use super::Pattern;
use crate::site::{Random, Site};
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "buffered",
    parts: &["synced", "late", "random", "small"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    let file = site.create(&format!("/buffered-{part}"))?;
    let mut random = Random::new()?;
    for at in 0..128 {
        let (offset, bytes) = match part {
            "random" => (random.below(256)? * 4096, 4096),
            // This is less than a page; the next write continues in the same page.
            "small" => (at * 1536, 1536),
            _ => (at * 16384, 16384),
        };
        file.write(offset, bytes, How::Buffered)?;
        if part == "synced" || part == "random" && at % 8 == 0 {
            file.sync()?;
        }
    }
    Ok(())
}
