// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks without a place on the disk yet, written by several processes and then allocated by a third one's fsync, or by the
//! flusher.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::{Changed, another};
use crate::patterns::Pattern;
use crate::site::Site;

pub const PATTERN: Pattern = Pattern {
    name: "delayed",
    parts: &["fsync", "sync", "flusher"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    for round in 0..12 {
        let file = Changed::open(site, &format!("/delayed-{part}-{round}"))?;
        another(|| file.write(0..6000))?;
        another(|| file.write(6000..20000))?;
        another(|| file.write(16384..16385))?;
        match part {
            "fsync" => another(|| file.file.sync_data())?,
            "sync" => rustix::fs::syncfs(&file.file)?,
            // The flusher begins as soon as it is asked to, and nobody waits for it.
            _ => flusher(&file.file)?,
        }
    }
    Ok(())
}

/// Asks the flusher to write the file.
fn flusher(file: &File) -> io::Result<()> {
    // SAFETY: the kernel takes numbers only.
    let asked =
        unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    std::thread::sleep(Duration::from_millis(30));
    match asked {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
