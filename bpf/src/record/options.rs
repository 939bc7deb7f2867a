// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to record, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use mostrace_bundle::{Manifest, units};

use super::progress::Progress;
use crate::choice::{Causes, Choice, Entries, Events};
use crate::machine::user::User;
use crate::source::bpf::RingSize;
use crate::source::recorder::KernelPaths;

/// What to record. By default it is all that can be had, of no device yet.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whole disk or partition.
    pub device: PathBuf,
    /// `NAME.most`, or `NAME.most.tar.zst`.
    pub output: PathBuf,
    /// `--source`.
    pub source: Choice,
    /// `--events`.
    pub events: Events,
    /// `--entries`.
    pub entries: Entries,
    /// `--causes`.
    pub causes: Causes,
    /// The kernel's own recorder.
    pub kernel: KernelPaths,
    /// `--files`.
    pub files: String,
    /// `--btf`: the kernel's type information, if it does not tell it itself.
    pub btf: Option<PathBuf>,
    /// `--ring-size`: of each of the probes' rings, if it is not to be by the machine's memory.
    pub ring_size: Option<RingSize>,
    /// `--names`: folders whose files are named by the mounted tree.
    pub names: Vec<PathBuf>,
    /// `--packages`: the list of an Android device's apps, if not its own.
    pub packages: Option<PathBuf>,
    /// `-w`.
    pub limit: Option<Duration>,
    /// `--segment`, `--keep`: into several bundles, one after the other.
    pub segments: Option<Segments>,
    /// `--sync`: write back what the command left in memory, under tracing.
    pub sync: bool,
    /// Save the filesystem's metadata.
    pub snapshot: bool,
    /// `--label`: what the user calls the recording.
    pub label: Option<String>,
    /// The command, possibly empty.
    pub argv: Vec<OsString>,
    /// The filesystem was made for the command, and nobody else sees it.
    pub alone: bool,
    /// `-u`: whom the command runs as, if not as this process.
    pub user: Option<User>,
    /// What the command prints goes to this process's standard error, whose standard output is for something else.
    pub stdout_aside: bool,
    /// Record until what the command left running has ended, too.
    pub wait_for_descendants: bool,
    /// `--progress`.
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
            kernel: KernelPaths::default(),
            files: "all".into(),
            btf: None,
            ring_size: None,
            names: Vec::new(),
            packages: None,
            limit: None,
            segments: None,
            sync: false,
            snapshot: true,
            label: None,
            argv: Vec::new(),
            alone: false,
            user: None,
            stdout_aside: false,
            wait_for_descendants: true,
            progress: Progress::default(),
        }
    }
}

/// How a recording is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// How long or how large one is.
    pub each: Size,
    /// So many are there at most, the one that is being written among them; None: all.
    pub keep: Option<u32>,
}

/// Of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// It ends after this time.
    Time(Duration),
    /// It ends when its files have so many bytes, or a little more.
    Bytes(u64),
}

impl FromStr for Size {
    type Err = String;

    /// A number with a unit of time, or of bytes.
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

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit status of the command; 0 without one.
    pub exit_status: i32,
    /// Whether a signal ended it, such as that of Ctrl-C.
    pub interrupted: bool,
    /// The manifest as written; of a recording that was cut that of the last segment, with the counts and losses of all.
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
