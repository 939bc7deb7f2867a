// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where block events come from: three sources, the same bytes out.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::error::Result;

pub(crate) mod blktrace;
pub(crate) mod bpf;
mod cpu_files;
pub(crate) mod ftrace;

pub(crate) use cpu_files::CpuFiles;

/// A source that is running. It writes `trace.blktrace.N` into the bundle.
pub(crate) trait EventSource {
    /// Its name in the manifest.
    fn name(&self) -> &'static str;

    /// Moves what has come since the last call into the bundle; called often.
    ///
    /// # Errors
    /// The source ended, or the bundle cannot be written.
    fn poll(&mut self) -> Result<()>;

    /// Events written so far, as far as is known.
    fn events(&self) -> u64;

    /// Stops, and moves the rest into the bundle.
    ///
    /// # Errors
    /// As [`EventSource::poll`].
    fn stop(&mut self) -> Result<()>;

    /// Events lost, by the manifest's names; complete after [`EventSource::stop`].
    fn losses(&self) -> BTreeMap<String, u64>;
}

/// `--source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The first that works, in the order below.
    Auto,
    /// The utility, through debugfs.
    Blktrace,
    /// ftrace's `blk` tracer, through tracefs.
    Ftrace,
    /// The project's own probes.
    Bpf,
}

impl Choice {
    /// The sources, in the order in which `auto` tries them.
    pub const IN_ORDER: [Choice; 3] = [Choice::Blktrace, Choice::Ftrace, Choice::Bpf];
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Choice, String> {
        Ok(match text {
            "auto" => Choice::Auto,
            "blktrace" => Choice::Blktrace,
            "ftrace" => Choice::Ftrace,
            "bpf" => Choice::Bpf,
            other => return Err(format!("`{other}` is none of auto, blktrace, ftrace, bpf")),
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Choice::Auto => "auto",
            Choice::Blktrace => "blktrace",
            Choice::Ftrace => "ftrace",
            Choice::Bpf => "bpf",
        })
    }
}
