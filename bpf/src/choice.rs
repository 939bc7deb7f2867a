// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which source of block events, and which events, are asked for.

use std::fmt;
use std::str::FromStr;

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
    /// Plain tracepoints.
    Tracefs,
}

impl Choice {
    /// The sources, in the order in which `auto` tries them.
    pub const IN_ORDER: [Choice; 4] = [
        Choice::Blktrace,
        Choice::Ftrace,
        Choice::Bpf,
        Choice::Tracefs,
    ];
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Choice, String> {
        Ok(match text {
            "auto" => Choice::Auto,
            "blktrace" => Choice::Blktrace,
            "ftrace" => Choice::Ftrace,
            "bpf" => Choice::Bpf,
            "tracefs" => Choice::Tracefs,
            other => {
                return Err(format!(
                    "`{other}` is none of auto, blktrace, ftrace, bpf, tracefs"
                ));
            }
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
            Choice::Tracefs => "tracefs",
        })
    }
}

/// `--events`: which block events are recorded. The block tracers give all of them anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Events {
    /// Those that make a request's life: Q, X, I, D, R and C.
    #[default]
    Needed,
    /// Every one that blktrace knows.
    All,
}

impl FromStr for Events {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Events, String> {
        Ok(match text {
            "needed" => Events::Needed,
            "all" => Events::All,
            other => return Err(format!("`{other}` is none of needed, all")),
        })
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Events::Needed => "needed",
            Events::All => "all",
        })
    }
}
