// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes, renames and removes files, each followed by a sync: measures the cost of operations on a folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::value_parser;
use serde::{Deserialize, Serialize};

use crate::choice::{self, choice, named};
use crate::measure::{Progress, in_threads, timed};
use crate::outcome::{Outcome, Task};
use crate::{Choice, Error, Result};

choice! {
    /// The operation on a name, after which the folder is synced.
    NameOp {
        /// An empty file is made and synced.
        Create = "create",
        /// A file is renamed within its folder.
        Rename = "rename",
        /// A file of one byte is removed.
        Unlink = "unlink",
        /// A folder is made.
        Mkdir = "mkdir",
    }
}

/// Settings of a workload on names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields)]
pub struct NameSettings {
    // It must hold nothing called `name-…`.
    /// The folder
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// The operation on each name
    #[arg(long, default_value = "create", value_parser = named::<NameOp>())]
    pub op: NameOp,
    /// Number of names
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u64).range(1..=1 << 32))]
    pub count: u64,
    /// Only make the files that the same command without this option renames or removes
    #[arg(long)]
    pub prepare: bool,
}

impl Default for NameSettings {
    fn default() -> Self {
        choice::defaults()
    }
}

/// Runs the workload; `progress` counts names.
///
/// # Errors
/// Returns an error if the folder cannot be used, if a name to be made exists, or if a name to be renamed or removed
/// does not.
pub fn run_names(settings: &NameSettings, progress: &Progress) -> Result<Outcome> {
    let at = |path: &Path| path.to_owned();
    let (setup, folder) = timed(|| File::open(&settings.path).map_err(Error::io(&settings.path)))?;
    let needs_files = matches!(settings.op, NameOp::Rename | NameOp::Unlink);
    let count = match (settings.prepare, needs_files) {
        (true, false) => 0,
        _ => settings.count,
    };
    let (_, measured) = in_threads(vec![()], progress, |(), stopwatch| {
        for number in 0..count {
            let name = settings.path.join(format!("name-{number:08}"));
            stopwatch.time(|| {
                let done = match settings.prepare {
                    true => make(&name, b"x"),
                    false => act(settings.op, &name).and_then(|()| folder.sync_all()),
                };
                done.map_err(|cause| Error::Io {
                    path: at(&name),
                    cause,
                })
            })?;
        }
        folder.sync_all().map_err(Error::io(&settings.path))
    })?;
    let (finish, ()) = timed(|| Ok(()))?;
    let what = if settings.prepare { "prepare " } else { "" };
    let mut table = choice::table(settings, &["path"]);
    table.insert("path".into(), settings.path.display().to_string());
    let task = Task {
        workload: "names",
        heading: format!("names, {what}{}", settings.op.name()),
        payload_bytes: 0,
        count,
        settings: table,
    };
    Ok(Outcome::new(task, [setup, finish], measured))
}

fn make(name: &Path, contents: &[u8]) -> io::Result<()> {
    use io::Write;
    let mut file = File::create_new(name)?;
    file.write_all(contents)?;
    file.sync_all()
}

fn act(op: NameOp, name: &Path) -> io::Result<()> {
    match op {
        NameOp::Create => make(name, b""),
        NameOp::Rename => fs::rename(name, name.with_extension("new")),
        NameOp::Unlink => fs::remove_file(name),
        NameOp::Mkdir => fs::create_dir(name),
    }
}
