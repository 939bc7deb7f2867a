// SPDX-License-Identifier: MIT OR Apache-2.0
//! Large amounts of data in large and small pieces, from several writers at once: requests are merged, split and in
//! flight together.

use std::io;

use super::Pattern;
use crate::site::{Random, Site};
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "bulk",
    parts: &["buffered", "direct", "random"],
    work,
};

const PIECE: u64 = 1 << 18;
const PIECES: u64 = 240;

fn work(site: &Site, part: &str) -> io::Result<()> {
    let path = format!("/bulk-{part}");
    let file = match part {
        "buffered" => site.create(&path)?,
        _ => site.direct(&path)?,
    };
    let mut random = Random::new()?;
    for at in 0..PIECES {
        let (place, bytes) = match part {
            "random" => (random.below(PIECES)?, 4096 << random.below(6)?),
            _ => (at, PIECE as usize),
        };
        file.write(place * PIECE, bytes, How::Buffered)?;
        if at % 32 == 0 {
            file.sync()?;
        }
    }
    file.sync()
}
