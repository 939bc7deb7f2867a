// SPDX-License-Identifier: MIT OR Apache-2.0
//! Direct IO by libaio's system calls: one thread has several requests in flight.

use std::io;
use std::os::fd::AsRawFd;

use super::Pattern;
use crate::site::{Aligned, Random, Site, Stamped};
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "aio",
    parts: &["small", "large"],
    work,
};

const DEPTH: usize = 8;
const ROUNDS: usize = 24;

/// `struct iocb` in <linux/aio_abi.h>, little-endian.
#[repr(C)]
#[derive(Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    reqprio: i16,
    fd: u32,
    buf: u64,
    nbytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    resfd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Default)]
struct IoEvent {
    data: u64,
    obj: u64,
    res: i64,
    res2: i64,
}

const IOCB_CMD_PWRITE: u16 = 1;

fn checked(result: i64) -> io::Result<i64> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn work(site: &Site, part: &str) -> io::Result<()> {
    let bytes = if part == "small" { 4096 } else { 131_072 };
    let file = site.direct(&format!("/aio-{part}"))?;
    let mut context = 0u64;
    // SAFETY: the kernel writes the context's number.
    checked(unsafe { libc::syscall(libc::SYS_io_setup, DEPTH, &raw mut context) })?;
    let mut random = Random::new()?;
    for _ in 0..ROUNDS {
        round(context, &file, bytes, &mut random)?;
    }
    // SAFETY: nothing is in flight any more.
    checked(unsafe { libc::syscall(libc::SYS_io_destroy, context) })?;
    file.sync()
}

/// Submits DEPTH writes at once, each to a different place, and waits for them.
fn round(context: u64, file: &Stamped, bytes: usize, random: &mut Random) -> io::Result<()> {
    let first = random.below(8)?;
    let places = (0..DEPTH as u64).map(|n| ((first + n) % 8 * 2 + 1) * bytes as u64);
    let mut data: Vec<(u64, Aligned)> = places.map(|at| (at, Aligned::new(bytes))).collect();
    let mut blocks: Vec<Iocb> = Vec::new();
    for (at, aligned) in &mut data {
        file.stamp(aligned.bytes(), *at, How::Direct);
        blocks.push(Iocb {
            opcode: IOCB_CMD_PWRITE,
            fd: file.file.as_raw_fd() as u32,
            buf: aligned.bytes().as_ptr() as u64,
            nbytes: bytes as u64,
            offset: *at as i64,
            ..Iocb::default()
        });
    }
    let pointers: Vec<*const Iocb> = blocks.iter().map(std::ptr::from_ref).collect();
    let mut events = vec![IoEvent::default(); DEPTH];
    let none: *const libc::timespec = std::ptr::null();
    // SAFETY: the control blocks and the data to which they point live until io_getevents has returned all of them.
    unsafe {
        let submitted = libc::syscall(libc::SYS_io_submit, context, DEPTH, pointers.as_ptr());
        let submitted = checked(submitted)?;
        let room = events.as_mut_ptr();
        checked(libc::syscall(
            libc::SYS_io_getevents,
            context,
            submitted,
            submitted,
            room,
            none,
        ))?;
        if submitted as usize != DEPTH {
            return Err(io::Error::other(format!(
                "{submitted} of {DEPTH} submitted"
            )));
        }
    }
    match events.iter().find(|event| event.res != bytes as i64) {
        Some(event) => Err(io::Error::other(format!(
            "a write ended with {}",
            event.res
        ))),
        None => Ok(()),
    }
}
