// SPDX-License-Identifier: MIT OR Apache-2.0
//! Direct IO of several lengths, including lengths that are not whole blocks, which the kernel pads with zeroes.

use std::io;

use super::Pattern;
use crate::site::{Random, Site};
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "direct",
    parts: &["4096", "16384", "1048576", "512", "3584"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    let bytes: usize = part.parse().map_err(io::Error::other)?;
    let file = site.direct(&format!("/direct-{part}"))?;
    let mut random = Random::new()?;
    for at in 0..64 {
        // The first half writes into holes, the second half overwrites.
        let place = if at < 32 { at } else { random.below(32)? };
        file.write(
            place * (bytes as u64).next_multiple_of(4096),
            bytes,
            How::Direct,
        )?;
    }
    file.sync()
}
