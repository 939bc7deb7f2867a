// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of a recording, and its result.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use mostrace_bundle::manifest::Copied;
use mostrace_bundle::{Manifest, units};

use super::output::check_output;
use super::progress::Progress;
use crate::choice::{Causes, Choice, Entries, Events, Operations};
use crate::error::Error;
use crate::machine::user::User;
use crate::sink::NameFilter;
use crate::source::bpf::RingSize;
use crate::source::recorder::KernelPaths;

/// The heading of options that most recordings do without.
const ADVANCED: &str = "Advanced";

/// The options of a recording, which are those of the command line too. By default everything is recorded that can be; only the device
/// must be named.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// The whole disk or partition to trace, or a mount point or a file for the device that it is on
    #[arg(short, long, value_name = "DEV|PATH")]
    pub device: PathBuf,
    /// The bundle to write: NAME.most, a folder, or NAME.most.tar.zst, a single file
    #[arg(short, long, value_name = "OUT", default_value = "trace.most", value_parser = checked_output)]
    pub output: PathBuf,
    /// The source of block events: auto, bpf (our probes), tracefs (plain tracepoints), blktrace. auto takes the first one that
    /// works, in this order, and says why it passed over others; bpf comes after tracefs if the kernel does not run our probes
    /// at all times, or if they do not make the entries
    #[arg(help_heading = ADVANCED, long, default_value_t)]
    pub source: Choice,
    /// The block events that source bpf records: `needed` (of a request's life: Q, X, I, D, R, C), or `all` that blktrace
    /// has (G, P, U, M, F, A too)
    #[arg(help_heading = ADVANCED, long, value_name = "needed|all", default_value_t)]
    pub events: Events,
    /// The source of entries (who wrote, to which file): auto, bpf, kernel, tracefs, none. bpf: our probes; kernel: its own
    /// recorder (/dev/mostrace); tracefs: plain tracepoints, which know less but load nothing; auto takes the first of the
    /// three that works
    #[arg(help_heading = ADVANCED, long, default_value_t)]
    pub entries: Entries,
    /// The source of what leads to causes (a journal's handles, system calls): auto, bpf, kernel, none
    #[arg(help_heading = ADVANCED, long, default_value_t)]
    pub causes: Causes,
    /// Record the stack, too, from which each call for durability, each write and each of a journal's handles was made: of the
    /// program by its frame pointers, and of the kernel. Stacks tell which code ran; they come with causes of bpf
    #[arg(long)]
    pub stacks: bool,
    /// The files whose names are kept: `all`, `temp` (SQLite's temporary files), or a glob on
    /// the last path component
    #[arg(help_heading = ADVANCED, long, value_name = "all|temp|GLOB", default_value_t)]
    pub files: NameFilter,
    /// Record every call that changes the filesystem too, for `mostrace replay`; with `all`, those that read as well. The
    /// names of all files are recorded, and nothing of what is written to them
    #[arg(long, value_name = "changes|all", num_args = 0..=1, default_value_t, default_missing_value = "changes",
          hide_default_value = true)]
    pub operations: Operations,
    /// BTF of this very kernel, if it was built without (5.10, CONFIG_DEBUG_INFO_BTF=n); entries and events of bpf need it
    #[arg(help_heading = ADVANCED, long, value_name = "FILE")]
    pub btf: Option<PathBuf>,
    /// The size of each of the probes' rings: a power of 2 (64K to 256M); by default 1M to 16M, depending on the
    /// machine's memory. A smaller ring takes less memory; records that find it full are lost and counted
    #[arg(help_heading = ADVANCED, long, value_name = "SIZE")]
    pub ring_size: Option<RingSize>,
    /// Name the files below DIR by the mounted tree, which is walked before and after the recording. On the disk, an
    /// encrypted folder (fscrypt) has its names as ciphertext; the tree shows them while it is unlocked. May be given
    /// several times
    #[arg(long, value_name = "DIR")]
    pub names: Vec<PathBuf>,
    /// The file that maps users to apps, in the format of Android's /data/system/packages.list, which is used by default if
    /// it exists
    #[arg(help_heading = ADVANCED, long, value_name = "FILE")]
    pub packages: Option<PathBuf>,
    /// Stop after this time, such as 60, 10m, 1h; a CMD that is still running is sent SIGTERM
    #[arg(short = 'w', long = "wait", value_name = "TIME", value_parser = units::time)]
    pub limit: Option<Duration>,
    /// The segments, if the recording goes to several consecutive bundles.
    #[command(flatten)]
    pub segments: Option<Segments>,
    /// Before stopping, sync the filesystem, or those of a disk's partitions, so that what CMD left in memory is traced too
    #[arg(long)]
    pub sync: bool,
    /// Do not save the filesystem's metadata; then only live entries can name blocks
    #[arg(help_heading = ADVANCED, long)]
    pub no_snapshot: bool,
    /// A line for the recording's notes
    #[arg(long, hide = true, value_name = "TEXT")]
    pub note: Vec<String>,
    /// A name for the recording, which is stored in it
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Run CMD as this user, by name or number, in a session without a terminal and with the environment that sudo keeps
    #[arg(short, long, value_name = "NAME", requires = "argv", value_parser = User::find)]
    pub user: Option<User>,
    /// Stop when CMD ends, even if processes that it started (a daemon, a background job) still run
    #[arg(help_heading = ADVANCED, long, requires = "argv")]
    pub no_wait: bool,
    /// Show the progress of the recording: auto (while no CMD has the terminal), always, never; lines (a line each second, for a
    /// program) or asked (a line for each SIGUSR1)
    #[arg(help_heading = ADVANCED, long, value_name = "WHEN", default_value_t)]
    pub progress: Progress,
    /// The command to run while tracing
    #[arg(last = true, value_name = "CMD")]
    pub argv: Vec<OsString>,
    /// The places of the kernel's own recorder.
    #[arg(skip)]
    pub kernel: KernelPaths,
    /// True if the filesystem was made for the command, and nobody else sees it.
    #[arg(skip)]
    pub alone: bool,
    /// What of the current folder was copied to that filesystem.
    #[arg(skip)]
    pub copied: Option<Copied>,
    /// True if the command's output goes to this process's standard error, because its standard output serves another purpose.
    #[arg(skip)]
    pub stdout_aside: bool,
}

fn checked_output(text: &str) -> Result<PathBuf, Error> {
    let path = PathBuf::from(text);
    check_output(&path)?;
    Ok(path)
}

/// The segments, if the recording goes to several consecutive bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct Segments {
    /// Begin a new segment after this time (60s, 10m, 1h) or when a segment's files have this size (256M, 1G), or at the
    /// earlier of the two (10m,256M). Each segment is a bundle, NAME.0001.most and so on, that can be read as soon as it has
    /// ended; `analyze NAME.most` reads all of them as one
    #[arg(
        id = "segment",
        long = "segment",
        value_name = "TIME|SIZE",
        required = false
    )]
    pub each: Size,
    /// Keep the last N segments, including the one being written, or those that have ended last and together have at most
    /// this size (256M, 1G); older ones are removed
    #[arg(long, value_name = "N|SIZE", requires = "segment")]
    pub keep: Option<Keep>,
    /// Hold a segment in memory (/dev/shm, /dev) until it has ended: of the recorder's own writes, only those of finished
    /// segments are then in the trace. If the recorder is killed, the segment that it held is lost
    #[arg(help_heading = ADVANCED, long, requires = "segment")]
    pub memory: bool,
}

/// Which segments are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The last ones, including the one that is being written.
    Number(u32),
    /// The last ones that have ended, as many as together have at most this many bytes; the very last one in any case.
    Bytes(u64),
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Keep, String> {
        let of_bytes = || units::size(text).ok().filter(|bytes| *bytes > 0);
        match units::has_unit_of_size(text) {
            true => of_bytes().map(Keep::Bytes),
            false => text.parse().ok().filter(|n| *n >= 2).map(Keep::Number),
        }
        .ok_or_else(|| format!("`{text}` is neither a number from 2 on nor a size (256M, 1G)"))
    }
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

    /// Parses a number with a unit of time or of bytes, or one of either.
    fn from_str(text: &str) -> Result<Size, String> {
        if let Some((time, size)) = text.split_once(',') {
            return match (time.parse()?, size.parse()?) {
                (Size::Time(time), Size::Bytes(bytes)) => Ok(Size::TimeOrBytes(time, bytes)),
                _ => Err(format!(
                    "`{text}` is not a time and a size, such as 10m,256M"
                )),
            };
        }
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
            (
                "10m,32M",
                Ok(Size::TimeOrBytes(Duration::from_secs(600), 32 << 20)),
            ),
        ] {
            assert_eq!(text.parse(), size, "{text}");
        }
        for (text, why) in [
            ("32M,10m", "`32M,10m` is not a time and a size"),
            ("10m,5m", "`10m,5m` is not a time and a size"),
            ("10m,", "`` is neither"),
            ("10m,1G,1G", "`1G` is"),
        ] {
            let said = text.parse::<Size>().unwrap_err();
            assert!(said.starts_with(why) || text.contains("1G"), "{said}");
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
