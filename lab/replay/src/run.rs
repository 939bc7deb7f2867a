// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a replay: makes what existed at the start, then the operations.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::bytes::Contents;
use crate::call::Caller;
use crate::deduce::Deduction;
use crate::order::Order;
use crate::player::{Player, Timing};
use crate::{Error, Outcome, Recorded, Result, Start};

/// The settings of a replay.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder in which to replay. It must be empty except for a `lost+found`. Nothing outside it is touched.
    pub root: PathBuf,
    /// How operations are timed.
    pub timing: Timing,
    /// The contents to write.
    pub contents: Contents,
}

/// The most threads that a replay may have.
const THREADS_MAX: usize = 4096;

/// A replay that is ready to begin: what existed before the first operation is in the folder and on the storage. To record what the
/// replay writes, start the recording now.
#[derive(Debug)]
pub struct Replay<'a> {
    recorded: &'a Recorded,
    settings: &'a Settings,
    start: Start,
    order: Order,
    caller: Caller,
}

impl<'a> Replay<'a> {
    /// Deduces what existed before the first operation, makes it in the folder, and finds the order of the operations.
    ///
    /// # Errors
    /// Returns [`Error::Refused`] if the folder is not empty, if the operations are not ordered by their start, if there are more
    /// than 4,096 threads or 2^32 operations, or if the files that existed have more bytes than the filesystem has free. Returns
    /// another error if the folder cannot be written.
    pub fn prepare(recorded: &'a Recorded, settings: &'a Settings) -> Result<Replay<'a>> {
        let root = &settings.root;
        refuse_unless_empty(root)?;
        let replay = Replay::prepared(recorded, settings)?;
        let (caller, operations) = (&replay.caller, &recorded.operations);
        replay
            .start
            .make_in(root, caller.beneath(), caller.bytes(), operations)?;
        Ok(replay)
    }

    /// Finds the order of the operations for a folder in which [`Start::make`] has made what existed before.
    ///
    /// # Errors
    /// Returns the errors of [`Replay::prepare`] that concern the operations.
    pub fn prepared(recorded: &'a Recorded, settings: &'a Settings) -> Result<Replay<'a>> {
        let root = &settings.root;
        let refused = |why: String| Error::Refused {
            path: root.clone(),
            why,
        };
        let operations = &recorded.operations;
        if u32::try_from(operations.len()).is_err() {
            return Err(refused(
                "a replay makes fewer than 2^32 operations".to_owned(),
            ));
        }
        if !operations.is_sorted_by_key(|operation| operation.begin_ns) {
            return Err(refused(
                "the operations are not ordered by the time at which they began".to_owned(),
            ));
        }
        let mut order = Order::new(operations);
        let threads = order.threads().len();
        if threads > THREADS_MAX {
            return Err(refused(format!(
                "{threads} threads were recorded; a replay has at most {THREADS_MAX}"
            )));
        }
        let mut deduction = Deduction::default();
        for operation in operations {
            order.add(deduction.step(operation));
        }
        order.finish();
        Ok(Replay {
            recorded,
            settings,
            start: Start::deduced(deduction),
            order,
            caller: Caller::new(root, settings.contents, operations)?,
        })
    }

    /// Returns what existed before the first operation.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Makes the operations. `progress` is called now and then with the number of operations made, and at the end with all of them.
    ///
    /// # Errors
    /// Returns an error if the system has no room for the threads. A failing operation is not an error: the outcome counts it.
    pub fn run(self, progress: impl Fn(u64) + Sync) -> Result<Outcome> {
        allow_many_files();
        let operations = &self.recorded.operations;
        let timing = self.settings.timing;
        let player = Player::new(&self.caller, operations, &self.order, timing, &progress);
        let played = player.play();
        let mut outcome = played.map_err(Error::io(&self.settings.root))?;
        for (why, operations) in &self.recorded.left_out {
            outcome.leave_out(why, *operations);
        }
        let begin = operations.first().map_or(0, |operation| operation.begin_ns);
        let end = operations.iter().map(|operation| operation.end_ns).max();
        outcome.recorded_elapsed_ns = Some(end.unwrap_or(0).saturating_sub(begin));
        outcome.finish(self.recorded.unknown);
        Ok(outcome)
    }
}

/// Prepares a replay and runs it.
///
/// # Errors
/// Returns the errors of [`Replay::prepare`] and [`Replay::run`].
pub fn replay(
    recorded: &Recorded,
    settings: &Settings,
    progress: impl Fn(u64) + Sync,
) -> Result<Outcome> {
    Replay::prepare(recorded, settings)?.run(progress)
}

/// The folder that mkfs makes.
const LOST_FOUND: &str = "lost+found";

/// Checks that a folder is empty but for an empty `lost+found`, because operations may remove or overwrite anything in it.
///
/// # Errors
/// Returns [`Error::Refused`] if it is not, or another error if it cannot be read.
pub fn refuse_unless_empty(root: &Path) -> Result<()> {
    let lost = root.join(LOST_FOUND);
    let refused = || Error::Refused {
        path: root.to_owned(),
        why: "a replay needs an empty folder, since it may remove what is there".to_owned(),
    };
    for entry in fs::read_dir(root).map_err(Error::io(root))? {
        let entry = entry.map_err(Error::io(root))?;
        let is_lost_found = entry.path() == lost && entry.file_type().is_ok_and(|of| of.is_dir());
        // Who may not read it can remove nothing there.
        let is_used = || fs::read_dir(&lost).is_ok_and(|mut found| found.next().is_some());
        if !is_lost_found || is_used() {
            return Err(refused());
        }
    }
    Ok(())
}

/// Raises the limit on open files, because the application may have had more files open than the default allows.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If this fails, some opens fail, and are counted.
    let _ = setrlimit(Resource::Nofile, raised);
}
