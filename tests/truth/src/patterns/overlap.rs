// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several processes write the same place of one file directly and at the same time: four with a different length each, and
//! two with the length of another one.

use std::io;
use std::time::{Duration, Instant};

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "overlap",
    parts: &[
        "make",
        "4096",
        "8192",
        "16384",
        "32768",
        "8192 too",
        "32768 too",
    ],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    const PATH: &str = "/overlap";
    if part == "make" {
        let file = site.create("/overlap.new")?;
        file.write(0, 1 << 20, How::Buffered)?;
        file.sync()?;
        return site.rename(file.inode, "/overlap.new", PATH);
    }
    let bytes = part.trim_end_matches(" too");
    let bytes: usize = bytes.parse().map_err(io::Error::other)?;
    let start = Instant::now();
    while !site.at(PATH).exists() {
        if start.elapsed() > Duration::from_secs(60) {
            return Err(io::Error::other("nobody made the file"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let file = site.direct(PATH)?;
    for at in 0..200 {
        file.write((at % 8) * 65536, bytes, How::Direct)?;
    }
    Ok(())
}
