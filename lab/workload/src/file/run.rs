// SPDX-License-Identifier: MIT OR Apache-2.0
//! The phases of a run.

use super::FileSettings;
use super::target::TargetFile;
use crate::measure::{Caches, Progress, drop_caches, in_threads, timed};
use crate::outcome::{Outcome, Task};
use crate::{Choice, Result};

/// Runs a workload on files; `progress` counts records.
///
/// The setup phase makes and opens the files. The measured phase reads or writes the records, each with its sync, and
/// ends with a sync of the file.
///
/// # Errors
/// Returns an error if a setting is out of range, or the first error of any thread.
pub fn run_file(settings: &FileSettings, progress: &Progress) -> Result<Outcome> {
    settings.check()?;
    let open = || (0..settings.threads).map(|thread| TargetFile::open(settings, thread));
    let (setup, mut targets) = timed(|| open().collect::<Result<Vec<_>>>())?;
    if settings.prepare {
        targets.clear();
    }
    let dropped = settings.caches == Caches::Drop && drop_caches().is_ok();
    let (targets, measured) = in_threads(targets, progress, |target, stopwatch| {
        target.work(settings, stopwatch)
    })?;
    let (finish, ()) = timed(|| {
        drop(targets);
        Ok(())
    })?;
    let mut task = task(settings);
    let told = ("caches_dropped".to_owned(), dropped.to_string());
    task.settings.extend([told]);
    Ok(Outcome::new(task, [setup, finish], measured))
}

fn task(settings: &FileSettings) -> Task {
    let threads = u64::from(settings.threads);
    let stored = match settings.pattern.reads() || settings.prepare {
        true => 0,
        false => settings.bytes().saturating_mul(threads),
    };
    let count = match settings.prepare {
        true => 0,
        false => settings.records().saturating_mul(threads),
    };
    Task {
        workload: "file",
        heading: format!(
            "file, {}{} of {} bytes, {}, {} thread{}",
            if settings.prepare { "prepare " } else { "" },
            settings.pattern.name(),
            settings.record_size,
            settings.mode.name(),
            threads,
            if threads == 1 { "" } else { "s" }
        ),
        payload_bytes: stored,
        count,
        settings: settings.table(),
    }
}
