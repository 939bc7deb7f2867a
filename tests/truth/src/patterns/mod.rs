// SPDX-License-Identifier: MIT OR Apache-2.0
//! The patterns of writing. Each pattern is a file here, and each of its parts is a process; all parts run at once.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::site::Site;

mod aio;
mod buffered;
mod bulk;
pub mod changes;
mod churn;
mod direct;
mod dropped;
mod folders;
mod handover;
mod mapped;
mod overlap;
mod piped;
mod rename;
mod resize;
mod sent;
mod sqlite;
mod subpage;
mod threads;
mod truncated;
mod unlinked;
mod uring;

/// One pattern.
pub struct Pattern {
    pub name: &'static str,
    /// The names of the parts, which are passed to `work`.
    pub parts: &'static [&'static str],
    /// The work of one part.
    pub work: fn(&'static Site, &str) -> io::Result<()>,
}

/// The patterns whose sectors are stamped.
pub const ALL: &[Pattern] = &[
    aio::PATTERN,
    buffered::PATTERN,
    bulk::PATTERN,
    churn::PATTERN,
    direct::PATTERN,
    dropped::PATTERN,
    folders::PATTERN,
    handover::PATTERN,
    mapped::PATTERN,
    overlap::PATTERN,
    piped::PATTERN,
    rename::PATTERN,
    resize::PATTERN,
    sent::PATTERN,
    sqlite::PATTERN,
    subpage::PATTERN,
    threads::PATTERN,
    truncated::PATTERN,
    unlinked::PATTERN,
    uring::PATTERN,
];

pub fn find(name: &str) -> anyhow::Result<&'static Pattern> {
    let mut all = ALL.iter().chain(changes::ALL);
    let found = all.find(|pattern| pattern.name == name);
    found.with_context(|| format!("{name}: no such pattern"))
}

/// Returns the folder of a filesystem for all files: none for the first filesystem, and one of its own for each other,
/// so that no path exists in two filesystems.
pub fn folder(number: usize) -> String {
    match number {
        0 => String::new(),
        _ => format!("/filesystem{number}"),
    }
}

/// Runs all parts of a pattern on each of the filesystems, and waits for them.
pub fn run(pattern: &Pattern, logs: &Path, mounts: &[PathBuf]) -> anyhow::Result<()> {
    let program = std::env::current_exe()?;
    let start = |(part, (number, mount)): (&str, (usize, &PathBuf))| {
        Command::new(&program)
            .args(["part", pattern.name, part])
            .args([logs, mount])
            .arg(folder(number))
            .spawn()
    };
    let parts = pattern.parts.iter();
    let all = parts.flat_map(|part| mounts.iter().enumerate().map(move |mount| (*part, mount)));
    let children: io::Result<Vec<_>> = all.map(start).collect();
    for mut child in children? {
        ensure!(child.wait()?.success(), "{}: a part failed", pattern.name);
    }
    Ok(())
}

/// Runs one part in this process, which ends with it.
pub fn part(
    pattern: &Pattern,
    part: &str,
    logs: &Path,
    mount: &Path,
    folder: &str,
) -> anyhow::Result<()> {
    let site = Box::leak(Box::new(Site::open(mount, folder, logs)?));
    let done = (pattern.work)(site, part);
    done.with_context(|| format!("{}, {part}", pattern.name))
}
