// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that one thread dirties and discards unwritten (truncated, punched, unlinked), and that another then writes,
//! often in the same memory.

use std::io;
use std::thread;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};

use super::Pattern;
use crate::site::{Site, Stamped};
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "truncated",
    parts: &["cut", "punched", "unlinked"],
    work,
};

const BYTES: usize = 16384;

fn work(site: &Site, part: &str) -> io::Result<()> {
    let kept = site.create(&format!("/truncated-{part}"))?;
    for round in 0..24 {
        let at = match part {
            "cut" => 0,
            _ => round * BYTES as u64,
        };
        let path = format!("/thrown-{part}{round}");
        match part {
            "unlinked" => {
                let thrown = site.create(&path)?;
                by_another(|| thrown.write(0, BYTES, How::Fresh))?;
                site.unlink(thrown.inode, &path)?;
            }
            _ => by_another(|| kept.write(at, BYTES, How::Fresh))?,
        }
        thread::sleep(Duration::from_millis(5));
        throw(&kept, part, at)?;
        let written = match part {
            "unlinked" => &site.create(&path)?,
            _ => &kept,
        };
        by_another(|| written.write(if part == "unlinked" { 0 } else { at }, BYTES, How::Fresh))?;
        written.sync()?;
    }
    Ok(())
}

fn throw(kept: &Stamped, part: &str, at: u64) -> io::Result<()> {
    match part {
        "cut" => kept.file.set_len(0),
        "punched" => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            Ok(fallocate(&kept.file, flags, at, BYTES as u64)?)
        }
        _ => Ok(()),
    }
}

/// Runs `write` in another thread.
fn by_another(write: impl FnOnce() -> io::Result<()> + Send) -> io::Result<()> {
    thread::scope(|scope| scope.spawn(write).join().expect("no thread panics"))
}
