// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources that the user asks for, and the events.

use std::fmt;
use std::str::FromStr;

/// `--source`: the source of block events.
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

/// `--events`: the block events that are recorded. The block tracers give all of them anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Events {
    /// The events that make a request's life: Q, X, I, D, R and C.
    #[default]
    Needed,
    /// Every event that blktrace knows.
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

/// `--entries`: the source of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// The first that works, in the order below.
    Auto,
    /// The project's own probes.
    Bpf,
    /// The kernel's own recorder, a module or built in.
    Kernel,
    /// Plain tracepoints.
    Tracefs,
    /// No entries: block events alone.
    None,
}

impl Entries {
    /// The sources, in the order in which `auto` tries them.
    pub const IN_ORDER: [Entries; 3] = [Entries::Bpf, Entries::Kernel, Entries::Tracefs];
}

impl FromStr for Entries {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Entries, String> {
        Ok(match text {
            "auto" => Entries::Auto,
            "bpf" => Entries::Bpf,
            "kernel" => Entries::Kernel,
            "tracefs" => Entries::Tracefs,
            "none" => Entries::None,
            other => {
                return Err(format!(
                    "`{other}` is none of auto, bpf, kernel, tracefs, none"
                ));
            }
        })
    }
}

impl fmt::Display for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entries::Auto => "auto",
            Entries::Bpf => "bpf",
            Entries::Kernel => "kernel",
            Entries::Tracefs => "tracefs",
            Entries::None => "none",
        })
    }
}

/// `--causes`: the source of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Causes {
    /// The project's own probes if the kernel takes them, or the kernel's recorder if that is the source of entries.
    Auto,
    /// The project's own probes.
    Bpf,
    /// The kernel's own recorder, which has to be the source of entries too.
    Kernel,
    /// No causes.
    None,
}

impl FromStr for Causes {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Causes, String> {
        Ok(match text {
            "auto" => Causes::Auto,
            "bpf" => Causes::Bpf,
            "kernel" => Causes::Kernel,
            "none" => Causes::None,
            other => return Err(format!("`{other}` is none of auto, bpf, kernel, none")),
        })
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Causes::Auto => "auto",
            Causes::Bpf => "bpf",
            Causes::Kernel => "kernel",
            Causes::None => "none",
        })
    }
}
