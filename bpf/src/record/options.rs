// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to record, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use mostrace_bundle::Manifest;

use crate::choice::{Choice, Events};
use crate::entries::Entries;
use crate::entries::kernel::KernelPaths;

/// What to record.
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
    /// The kernel's own recorder.
    pub kernel: KernelPaths,
    /// `--files`.
    pub files: String,
    /// `-w`.
    pub limit: Option<Duration>,
    /// `--sync`: write back what the command left in memory, under tracing.
    pub sync: bool,
    /// Save the filesystem's metadata.
    pub snapshot: bool,
    /// The command, possibly empty.
    pub argv: Vec<OsString>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit status of the command; 0 without one.
    pub exit_status: i32,
    /// The manifest as written.
    pub manifest: Manifest,
}
