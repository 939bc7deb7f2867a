// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents that change without a write(): copy_file_range, splice, and ranges that fallocate makes zero, in pages that another
//! process has written.

use std::io;
use std::os::fd::AsRawFd;

use super::{Changed, another};
use crate::patterns::Pattern;
use crate::site::Site;

pub const PATTERN: Pattern = Pattern {
    name: "copied",
    parts: &["copy", "splice", "zero"],
    work,
};

const BYTES: usize = 3000;

fn work(site: &Site, part: &str) -> io::Result<()> {
    let from = Changed::synced(site, &format!("/copied-{part}-from"), 8192)?;
    let file = Changed::synced(site, &format!("/copied-{part}"), 512 << 10)?;
    for round in 0..16 {
        let page = round * 8192;
        let range = page + 500..page + 500 + BYTES as u64;
        another(|| file.write(page..page + 100))?;
        another(|| {
            file.change(range.clone(), || match part {
                "copy" => copy(&from, &file, range.start),
                "splice" => splice(&file, range.start),
                _ => zero(&file, range.start),
            })
        })?;
        file.file.sync_data()?;
    }
    Ok(())
}

fn copy(from: &Changed, to: &Changed, at: u64) -> io::Result<()> {
    let (mut start, mut at) = (0, at as i64);
    let [from, to] = [from, to].map(|file| file.file.as_raw_fd());
    // SAFETY: the kernel writes the two positions.
    whole(unsafe { libc::copy_file_range(from, &raw mut start, to, &raw mut at, BYTES, 0) })
}

fn splice(to: &Changed, at: u64) -> io::Result<()> {
    use std::io::Write;
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(&[7; BYTES])?;
    let (reader, to, mut at) = (reader.as_raw_fd(), to.file.as_raw_fd(), at as i64);
    // SAFETY: the kernel writes the position.
    whole(unsafe { libc::splice(reader, std::ptr::null_mut(), to, &raw mut at, BYTES, 0) })
}

fn zero(to: &Changed, at: u64) -> io::Result<()> {
    let (to, mode) = (to.file.as_raw_fd(), libc::FALLOC_FL_ZERO_RANGE);
    // SAFETY: the kernel takes numbers only.
    match unsafe { libc::fallocate(to, mode, at as i64, BYTES as i64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn whole(done: isize) -> io::Result<()> {
    match done {
        -1 => Err(io::Error::last_os_error()),
        done if done == BYTES as isize => Ok(()),
        done => Err(io::Error::other(format!("{done} bytes were copied"))),
    }
}
