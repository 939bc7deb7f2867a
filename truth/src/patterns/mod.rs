// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written: each pattern is a file, and each of its parts a process of its own; all run at once.

use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::names::Writer;
use crate::site::Site;

mod aio;
mod buffered;
mod bulk;
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
mod subpage;
mod threads;
mod truncated;
mod unlinked;
mod uring;

/// One pattern.
pub struct Pattern {
    pub name: &'static str,
    /// What a part is told, so that they differ.
    pub parts: &'static [&'static str],
    /// What a part does.
    pub work: fn(&Site, &str) -> io::Result<()>,
}

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
    subpage::PATTERN,
    threads::PATTERN,
    truncated::PATTERN,
    unlinked::PATTERN,
    uring::PATTERN,
];

pub fn find(name: &str) -> anyhow::Result<&'static Pattern> {
    let found = ALL.iter().find(|pattern| pattern.name == name);
    found.with_context(|| format!("{name}: no such pattern"))
}

/// Runs all parts of a pattern and waits for them.
pub fn run(pattern: &Pattern, root: &Path, names: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe()?;
    let start = |part: &&str| {
        Command::new(&program)
            .args(["part", pattern.name, part])
            .args([root, names])
            .spawn()
    };
    let children: io::Result<Vec<_>> = pattern.parts.iter().map(start).collect();
    for mut child in children? {
        ensure!(child.wait()?.success(), "{}: a part failed", pattern.name);
    }
    Ok(())
}

/// One part, in this process.
pub fn part(pattern: &Pattern, part: &str, root: &Path, names: &Path) -> anyhow::Result<()> {
    let site = Site {
        root: root.to_owned(),
        names: Writer::open(names)?,
    };
    let done = (pattern.work)(&site, part);
    done.with_context(|| format!("{}, {part}", pattern.name))
}
