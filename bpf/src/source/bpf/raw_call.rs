// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system call in the form in which the probes of operations record it (operation.bpf.h).

use std::mem::offset_of;

use mostrace_bundle::entry::NONE;
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// `struct raw_file`: an open file when the call returned.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct RawFile {
    /// The address of its `struct file`; 0 if there is none. After the file was closed, another one may have this address.
    pub address: u64,
    pub ino: u64,
    pub size: u64,
    pub position: u64,
    pub generation: u32,
    pub s_dev: u32,
    /// `f_flags`.
    pub flags: u32,
    /// `i_mode`.
    pub mode: u16,
    /// Not 0 if the file was not reported before; the name in its place is its path.
    pub is_new: u8,
    /// Not 0 if the call made the file.
    pub created: u8,
}

/// `struct raw_name`: a path.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct RawName {
    folder_len: u16,
    text_len: u16,
    flags: u16,
    pad: u16,
    folder: [u8; 256],
    text: [u8; 512],
}

/// `enum raw_stage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The record has the whole call.
    Returned,
    /// The call is in flight, and another record will report its end.
    Submitted,
    /// The call is in flight, and another record will report only a failure.
    Silent,
    /// The call was in flight and has ended.
    Completed,
}

const OURS: u16 = 2;
const CUT: u16 = 4;

/// `struct raw_call` without its names.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct RawCall {
    pub start_ns: u64,
    pub end_ns: u64,
    /// The return value.
    pub result: i64,
    /// The arguments; behind the sixth, values that some calls have in memory.
    pub args: [u64; 8],
    /// The offsets to which arguments point, after the call; [`NONE`] if no argument does.
    pub offsets: [u64; 2],
    /// The id of what is in flight: the address of a request to io_uring, or the number of a thread that executes a program.
    pub request: u64,
    /// The part of the call that the record has, as a [`Stage`].
    pub stage: u32,
    pub pid: u32,
    pub tgid: u32,
    /// The call's number on this machine.
    pub number: u32,
    /// The number of names that follow.
    pub names: u32,
    pad: u32,
    pub files: [RawFile; 2],
}

const _: () = assert!(size_of::<RawFile>() == 48);
const _: () = assert!(size_of::<RawName>() == 776);
const _: () = assert!(size_of::<RawCall>() == 232);
const _: () = assert!(offset_of!(RawName, folder) == 8);

/// A path as written by its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// The path counts from the root of the process's mounts.
    Absolute(Vec<u8>),
    /// The path counts from the root of the traced filesystem.
    Ours(Vec<u8>),
    /// The path counts from a folder of another filesystem.
    Elsewhere,
    /// The path was too long, or could not be read.
    Unknown,
}

impl RawName {
    /// Returns the path.
    pub fn named(&self) -> Named {
        if self.flags & CUT != 0 {
            return Named::Unknown;
        }
        let text = self.text();
        if text.starts_with(b"/") {
            return Named::Absolute(text.to_vec());
        }
        if self.flags & OURS == 0 {
            return Named::Elsewhere;
        }
        let folder = self.folder.get(..self.folder_len.into());
        let mut path: Vec<u8> = Vec::new();
        // The folder's names are in reverse order, each behind a slash.
        for name in folder.unwrap_or_default().split(|&b| b == b'/').rev() {
            path.extend_from_slice(name);
            path.push(b'/');
        }
        path.extend_from_slice(text);
        Named::Ours(path)
    }

    /// Returns what the caller wrote.
    pub fn text(&self) -> &[u8] {
        self.text.get(..self.text_len.into()).unwrap_or_default()
    }
}

impl RawCall {
    /// Splits a record of the ring into the call and its names.
    pub fn parse(record: &[u8]) -> Option<(&RawCall, [Option<&RawName>; 2])> {
        let (call, rest) = RawCall::ref_from_prefix(record).ok()?;
        let names = <[RawName]>::ref_from_bytes(rest).ok()?;
        Some((call, [names.first(), names.get(1)]))
    }

    /// Returns the part of the call that the record has; None if it is malformed.
    pub fn stage(&self) -> Option<Stage> {
        Some(match self.stage {
            0 => Stage::Returned,
            1 => Stage::Submitted,
            2 => Stage::Silent,
            3 => Stage::Completed,
            _ => return None,
        })
    }

    /// Returns an argument, counted from 0.
    pub fn arg(&self, n: usize) -> u64 {
        self.args.get(n).copied().unwrap_or(0)
    }

    /// Returns an argument of 32 bits.
    pub fn word(&self, n: usize) -> u32 {
        let [a, b, c, d, ..] = self.arg(n).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// Returns the number of bytes that the call moved; 0 if it failed.
    pub fn moved(&self) -> u64 {
        u64::try_from(self.result).unwrap_or(0)
    }

    /// Returns the offset to which an argument points, as it was before the call.
    pub fn offset_before(&self, n: usize) -> Option<u64> {
        let after = self.offsets.get(n).copied().filter(|at| *at != NONE)?;
        after.checked_sub(self.moved())
    }
}
