// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress of a recording, shown on stderr.

use strum::{Display, EnumString, VariantNames};

use crate::choice::unknown;

mod packing;
mod recording;

pub(crate) use packing::Packing;
pub(crate) use recording::Recording;

/// `--progress`: when the progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Progress>)]
pub enum Progress {
    /// It is shown while no command uses the terminal.
    #[default]
    Auto,
    /// It is shown also while a command runs, whose own output the line may erase.
    Always,
    /// It is never shown.
    Never,
    /// A line is printed each second, for a program that reads it.
    Lines,
    /// A line is printed at the beginning and whenever SIGUSR1 comes.
    Asked,
}

impl Progress {
    /// Returns true if the progress of the recording is shown, with or without a command.
    pub(crate) fn of_recording(self, has_command: bool) -> bool {
        match self {
            Progress::Auto => !has_command,
            Progress::Always => true,
            Progress::Never | Progress::Lines | Progress::Asked => false,
        }
    }

    /// Returns true if the progress of packing is shown, when the command has ended.
    pub(crate) fn of_packing(self) -> bool {
        matches!(self, Progress::Auto | Progress::Always)
    }
}
