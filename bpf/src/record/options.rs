// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of a recording, and its result.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use mostrace_bundle::manifest::Copied;
use mostrace_bundle::{Manifest, units};

use super::progress::Progress;
use crate::choice::{Causes, Choice, Entries, Events, Operations};
use crate::machine::user::User;
use crate::source::bpf::RingSize;
use crate::source::recorder::KernelPaths;

/// The options of a recording. By default everything is recorded that can be; only the device must be named.
#[derive(Clone, Debug)]
pub struct Options {
    /// The whole disk or the partition to trace, or a path on it.
    pub device: PathBuf,
    /// The bundle to write: `NAME.most`, a folder, or `NAME.most.tar.zst`, an archive.
    pub output: PathBuf,
    /// `--source`: the source of block events.
    pub source: Choice,
    /// `--events`: the block events to record.
    pub events: Events,
    /// `--entries`: the source of entries.
    pub entries: Entries,
    /// `--causes`: the source of causes.
    pub causes: Causes,
    /// `--stacks`: true to record the stacks of calls and handles, too.
    pub stacks: bool,
    /// The places of the kernel's own recorder.
    pub kernel: KernelPaths,
    /// `--files`: the files that keep their names: `all`, `temp`, or a glob.
    pub files: String,
    /// `--btf`: a file with the kernel's type information, if the kernel has none itself.
    pub btf: Option<PathBuf>,
    /// `--operations`: the calls to record, for a replay.
    pub operations: Operations,
    /// `--ring-size`: the size of each ring of the probes; None for a size that fits the machine's memory.
    pub ring_size: Option<RingSize>,
    /// `--defer`: true to leave the work of making the bundle's files until the recording has ended, as far as its records come from
    /// our probes. It is not done for segments, which others read meanwhile, and with stacks, whose processes must still live.
    pub defer: bool,
    /// `--names`: folders whose files are named from the mounted tree.
    pub names: Vec<PathBuf>,
    /// `--packages`: a list of an Android device's apps, instead of the device's own list.
    pub packages: Option<PathBuf>,
    /// `-w`: the time after which the recording ends.
    pub limit: Option<Duration>,
    /// `--segment`, `--keep`: the segments, if the recording goes to several consecutive bundles.
    pub segments: Option<Segments>,
    /// `--sync`: true to write back what the command left in memory while still tracing.
    pub sync: bool,
    /// True to save the filesystem's metadata.
    pub snapshot: bool,
    /// `--label`: the user's name for the recording.
    pub label: Option<String>,
    /// The command and its arguments; empty to record without a command.
    pub argv: Vec<OsString>,
    /// True if the filesystem was made for the command, and nobody else sees it.
    pub alone: bool,
    /// What of the current folder was copied to that filesystem.
    pub copied: Option<Copied>,
    /// `-u`: the user as whom the command runs; None for the user of this process.
    pub user: Option<User>,
    /// True if the command's output goes to this process's standard error, because its standard output serves another purpose.
    pub stdout_aside: bool,
    /// True to record until the processes that the command left running have ended too.
    pub wait_for_descendants: bool,
    /// `--progress`: when to show the progress on a terminal.
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            device: PathBuf::new(),
            output: PathBuf::new(),
            source: Choice::Auto,
            events: Events::Needed,
            entries: Entries::Auto,
            causes: Causes::Auto,
            stacks: false,
            kernel: KernelPaths::default(),
            files: "all".into(),
            btf: None,
            operations: Operations::None,
            ring_size: None,
            defer: false,
            names: Vec::new(),
            packages: None,
            limit: None,
            segments: None,
            sync: false,
            snapshot: true,
            label: None,
            argv: Vec::new(),
            alone: false,
            copied: None,
            user: None,
            stdout_aside: false,
            wait_for_descendants: true,
            progress: Progress::default(),
        }
    }
}

/// The segments of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The size of each segment.
    pub each: Size,
    /// The most segments that are kept, including the one that is being written; None to keep all.
    pub keep: Option<u32>,
}

/// The size of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The segment ends after this time.
    Time(Duration),
    /// The segment ends when its files have this many bytes, or a little more.
    Bytes(u64),
    /// The segment ends after this time, or earlier when its files have this many bytes.
    TimeOrBytes(Duration, u64),
}

impl FromStr for Size {
    type Err = String;

    /// Parses a number with a unit of time or of bytes.
    fn from_str(text: &str) -> Result<Size, String> {
        let of_bytes = units::size(text).ok().filter(|bytes| *bytes > 0);
        let of_time = units::time(text).ok().filter(|time| !time.is_zero());
        match (units::has_unit_of_size(text), units::has_unit_of_time(text)) {
            (true, _) => of_bytes.map(Size::Bytes),
            (_, true) => of_time.map(Size::Time),
            (false, false) => None,
        }
        .ok_or_else(|| format!("`{text}` is neither a time (60s, 10m, 1h) nor a size (256M, 1G)"))
    }
}

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command's exit status; 0 without a command.
    pub exit_status: i32,
    /// True if a signal ended the recording, as Ctrl-C does.
    pub interrupted: bool,
    /// The manifest as written. For a recording to segments, it is the last one's, with the counts and losses of all.
    pub manifest: Manifest,
    /// The last bundle.
    pub output: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_so_long_or_so_large() {
        let seconds = |n| Ok(Size::Time(Duration::from_secs(n)));
        for (text, size) in [
            ("60s", seconds(60)),
            ("10m", seconds(600)),
            ("2h", seconds(7200)),
            ("1.5h", seconds(5400)),
            ("64K", Ok(Size::Bytes(1 << 16))),
            ("256M", Ok(Size::Bytes(1 << 28))),
            ("1G", Ok(Size::Bytes(1 << 30))),
        ] {
            assert_eq!(text.parse(), size, "{text}");
        }
        for text in [
            "",
            "s",
            "60",
            "0s",
            "-1s",
            "0M",
            "1.5G",
            "99999999999999999999h",
            "99999999999G",
            "6é",
            "10S",
        ] {
            let said = text.parse::<Size>().unwrap_err();
            assert!(said.starts_with(&format!("`{text}` is neither")), "{said}");
        }
    }
}
