// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with several writes in flight, direct and buffered. A kernel worker may perform them for the thread that
//! submitted them, so the writer is not checked.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::Pattern;
use crate::site::{Aligned, Random, Site, Stamped};
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "uring",
    parts: &["direct", "buffered"],
    work,
};

const DEPTH: u32 = 8;
const ROUNDS: usize = 24;
const BYTES: usize = 16384;

fn work(site: &Site, part: &str) -> io::Result<()> {
    let path = format!("/uring-{part}");
    let file = match part {
        "direct" => site.direct(&path)?,
        _ => site.create(&path)?,
    };
    let mut ring = IoUring::new(DEPTH)?;
    let mut random = Random::new()?;
    for _ in 0..ROUNDS {
        round(&mut ring, &file, &mut random)?;
    }
    file.sync()
}

/// Submits DEPTH writes at once, each to a different place, and waits for them.
fn round(ring: &mut IoUring, file: &Stamped, random: &mut Random) -> io::Result<()> {
    let fd = types::Fd(file.file.as_raw_fd());
    let first = random.below(16)?;
    let places = (0..u64::from(DEPTH)).map(|n| (first + 3 * n) % 32 * BYTES as u64);
    let mut data: Vec<(u64, Aligned)> = places.map(|at| (at, Aligned::new(BYTES))).collect();
    for (at, aligned) in &mut data {
        file.stamp(aligned.bytes(), *at, How::Shared);
        let write = opcode::Write::new(fd, aligned.bytes().as_ptr(), BYTES as u32);
        // SAFETY: the data lives until all writes are done, for which submit_and_wait waits.
        let pushed = unsafe { ring.submission().push(&write.offset(*at).build()) };
        pushed.map_err(io::Error::other)?;
    }
    ring.submit_and_wait(DEPTH as usize)?;
    let wrong = ring.completion().find(|done| done.result() != BYTES as i32);
    match wrong {
        Some(done) => Err(io::Error::other(format!(
            "a write ended with {}",
            done.result()
        ))),
        None => Ok(()),
    }
}
