// SPDX-License-Identifier: MIT OR Apache-2.0
//! What readers find in a foreign trace, and who takes it.

use std::path::Path;

use mostrace_bundle::entry::Flags;
use mostrace_bundle::tracepoints::{Fields, Tells};

use super::{Error, Rest};

/// An event of the block layer, as a line of any format has it. Fields that the format lacks are 0 or None.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen<'a> {
    pub time_ns: u64,
    pub cpu: u32,
    pub pid: u32,
    /// The process of `pid`.
    pub tgid: Option<u32>,
    /// The name of `pid`.
    pub comm: Option<&'a [u8]>,
    /// major << 20 | minor; a number in the order of appearance if the format has names.
    pub device: u32,
    /// The event: one of `blk_io_trace::action::ta`.
    pub stage: u64,
    /// The categories of `blk_io_trace::action`.
    pub categories: u64,
    pub sector: u64,
    pub bytes: u32,
    pub error: u16,
    /// The sector at which an X cuts its bio.
    pub cut_at: Option<u64>,
    /// Of a C: who queued the bio, if there is no Q that tells.
    pub by: Option<Submitter<'a>>,
}

/// A thread that queued a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Submitter<'a> {
    pub pid: u32,
    pub comm: &'a [u8],
}

/// A bio goes from one device to the one below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remap {
    pub from: u32,
    pub from_sector: u64,
    pub to: u32,
    pub to_sector: u64,
}

/// Who takes what a reader finds: the survey ahead of the import, or the import.
pub(super) trait Taker {
    /// Takes an event.
    ///
    /// # Errors
    /// Returns a line about what is wrong with it, without its place.
    fn event(&mut self, seen: &Seen<'_>) -> Result<(), String>;

    /// Takes the name of a device for which the format has no number.
    fn device(&mut self, _number: u32, _name: &[u8]) {}

    /// Takes a remap. If it is to the same device, this is a partition, whose bios name it and have the sectors of its disk.
    fn remap(&mut self, _remap: Remap) {}

    /// Takes what an event tells of files, and the filesystem's device if it has it.
    fn told(&mut self, _tells: Tells, _dev: Option<u32>, _fields: &dyn Fields) {}

    /// Takes what is told of processes.
    fn process(&mut self, _told: OfProcess<'_>) {}

    /// Takes the number of events that the tracer dropped so far; None if it dropped some and does not say how many.
    fn lost(&mut self, _events: Option<u64>) {}

    /// Takes a moment by the wall clock, ns since 1970.
    fn wall_clock(&mut self, _time_ns: u64, _unix_ns: u64) {}
}

/// What is told of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfProcess<'a> {
    /// The thread is one of this process's.
    Thread { thread: u32, process: u32 },
    /// The process is this user's.
    User { process: u32, user: u32 },
    /// The thread has this name from then on, and so has its process if the thread is its first one.
    Name {
        time_ns: u64,
        thread: u32,
        name: &'a [u8],
        how: Flags,
    },
    /// An app of Android's, and its user.
    Package { name: &'a [u8], user: u32 },
}

/// A reader of one format.
pub(super) trait Reader {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is damaged.
    fn file(&mut self, path: &Path, to: &mut dyn Taker, rest: &mut Rest) -> Result<(), Error>;
}

/// A reader of a format of lines.
pub(super) trait LineReader {
    /// Reads a line; returns false if it is none of the format's.
    ///
    /// # Errors
    /// Returns a line about what is wrong, without its place.
    fn line(&mut self, line: &[u8], to: &mut dyn Taker) -> Result<bool, String>;
}

/// The error of a line of the format that does not parse.
pub(super) fn malformed(what: &str) -> String {
    format!("this line is not {what}")
}

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Returns the length of a request of so many sectors.
///
/// # Errors
/// Returns an error if no request is as long.
pub(super) fn bytes_of_sectors(sectors: u64) -> Result<u32, String> {
    let bytes = sectors.checked_mul(SECTOR).ok_or("no request is as long")?;
    length(bytes)
}

/// Returns the length of a request.
///
/// # Errors
/// Returns an error if no request is as long.
pub(super) fn length(bytes: u64) -> Result<u32, String> {
    u32::try_from(bytes).map_err(|_| format!("no request has {bytes} bytes"))
}

/// Returns the sector at a place that is given in bytes, and the bytes behind it.
pub(super) fn sector_at(offset: u64) -> (u64, u64) {
    (offset / SECTOR, offset % SECTOR)
}
