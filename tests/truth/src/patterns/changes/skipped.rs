// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with writes that ask for no completion if they succeed (IOSQE_CQE_SKIP_SUCCESS), in pages that another process
//! has written.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};

use super::{Changed, another};
use crate::patterns::Pattern;
use crate::site::Site;

pub const PATTERN: Pattern = Pattern {
    name: "skipped",
    parts: &["skipped", "reported"],
    work,
};

fn work(site: &Site, part: &str) -> io::Result<()> {
    let file = Changed::synced(site, &format!("/skipped-{part}"), 512 << 10)?;
    let flags = match part {
        "skipped" => squeue::Flags::SKIP_SUCCESS,
        _ => squeue::Flags::empty(),
    };
    for round in 0..16 {
        let place = round * 16384;
        another(|| file.write(place..place + 100))?;
        another(|| writes(&file, place, flags))?;
        file.file.sync_data()?;
    }
    Ok(())
}

/// Writes 500 bytes into each of four pages from `place` on, and then reads them, so that the kernel uses its requests again.
fn writes(file: &Changed, place: u64, flags: squeue::Flags) -> io::Result<()> {
    let mut ring = IoUring::new(8)?;
    let fd = types::Fd(file.file.as_raw_fd());
    let mut bytes = [std::process::id() as u8; 500];
    let length = bytes.len() as u32;
    let write = |at| opcode::Write::new(fd, bytes.as_ptr(), length).offset(at);
    for at in (0..4).map(|page| place + page * 4096 + 1000) {
        file.change(at..at + u64::from(length), || {
            // A linked request begins when the one before it has ended.
            let write = write(at).build().flags(flags | squeue::Flags::IO_LINK);
            submit(&mut ring, &[write, opcode::Nop::new().build()])
        })?;
    }
    let read = opcode::Read::new(fd, bytes.as_mut_ptr(), length).offset(place);
    submit(&mut ring, &[read.build()])
}

/// Submits requests, and waits until the last one has ended.
fn submit(ring: &mut IoUring, requests: &[squeue::Entry]) -> io::Result<()> {
    const LAST: u64 = 1;
    let (last, others) = requests.split_last().expect("there are requests");
    let all = others.iter().cloned().chain([last.clone().user_data(LAST)]);
    for request in all {
        // SAFETY: the caller keeps the data until this returns, when all requests have ended.
        unsafe { ring.submission().push(&request) }.map_err(io::Error::other)?;
    }
    ring.submit_and_wait(1)?;
    loop {
        for done in ring.completion() {
            if done.result() < 0 {
                return Err(io::Error::from_raw_os_error(-done.result()));
            }
            if done.user_data() == LAST {
                return Ok(());
            }
        }
        ring.submit_and_wait(1)?;
    }
}
