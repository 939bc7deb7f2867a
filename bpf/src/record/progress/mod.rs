// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress of a recording, shown on stderr if that is a terminal.

use std::fmt;
use std::str::FromStr;

mod packing;
mod recording;

pub(crate) use packing::Packing;
pub(crate) use recording::Recording;

/// `--progress`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// Shows the progress as long as no command has the terminal.
    #[default]
    Auto,
    /// Shows it also while a command runs, whose own output the line may erase.
    Always,
    /// Shows nothing.
    Never,
}

impl Progress {
    /// Returns true if the progress of the recording is shown, with a command or without.
    pub(crate) fn of_recording(self, has_command: bool) -> bool {
        match self {
            Progress::Auto => !has_command,
            Progress::Always => true,
            Progress::Never => false,
        }
    }

    /// Returns true if the progress of packing is shown: the command has ended then.
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
