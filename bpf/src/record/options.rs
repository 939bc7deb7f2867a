// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to record, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use mostrace_bundle::Manifest;

use crate::causes::Causes;
use crate::choice::{Choice, Events};
use crate::entries::Entries;
use crate::entries::kernel::KernelPaths;
use crate::progress::Progress;

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
    /// `-w`.
    pub limit: Option<Duration>,
    /// `--sync`: write back what the command left in memory, under tracing.
    pub sync: bool,
    /// Save the filesystem's metadata.
    pub snapshot: bool,
    /// `--label`: what the user calls the recording.
    pub label: Option<String>,
    /// The command, possibly empty.
    pub argv: Vec<OsString>,
    /// `-u`: whom the command runs as, by name or number.
    pub user: Option<String>,
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
            limit: None,
            sync: false,
            snapshot: true,
            label: None,
            argv: Vec::new(),
            user: None,
            wait_for_descendants: true,
            progress: Progress::default(),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit status of the command; 0 without one.
    pub exit_status: i32,
    /// The manifest as written.
    pub manifest: Manifest,
}
