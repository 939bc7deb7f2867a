// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a terminal shows of a capture that goes on. On stderr; nothing if that is no terminal.

use std::fmt;
use std::str::FromStr;

mod packing;
mod recording;

pub(crate) use packing::Packing;
pub(crate) use recording::Recording;

/// `--progress`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// As long as no command has the terminal.
    #[default]
    Auto,
    /// Also while a command runs, whose own output a line of ours may erase.
    Always,
    /// Nothing.
    Never,
}

impl Progress {
    /// Whether to show how the recording goes on, with a command or without.
    pub(crate) fn of_recording(self, has_command: bool) -> bool {
        match self {
            Progress::Auto => !has_command,
            Progress::Always => true,
            Progress::Never => false,
        }
    }

    /// Whether to show how the packing goes on: the command has ended then.
    pub(crate) fn of_packing(self) -> bool {
        self != Progress::Never
    }
}

impl FromStr for Progress {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Progress, String> {
        Ok(match text {
            "auto" => Progress::Auto,
            "always" => Progress::Always,
            "never" => Progress::Never,
            other => return Err(format!("`{other}` is none of auto, always, never")),
        })
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Progress::Auto => "auto",
            Progress::Always => "always",
            Progress::Never => "never",
        })
    }
}
