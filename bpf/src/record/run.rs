// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the command and empties the sources while tracing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Options;
use super::command::{Command, Start};
use super::series::Series;
use super::signals::Signals;
use super::tracing::Tracing;
use crate::error::{At, Error, Result};
use crate::machine::device::Device;
use crate::machine::wait::Wait;
use crate::source::POLL_INTERVAL;

/// The time in which a command has to end after SIGTERM; after this it is left alone.
const PATIENCE: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_millis(200);

/// How tracing ended.
#[derive(Default)]
pub(super) struct Ended {
    /// The command's status; None if there was no command, or if it did not end.
    pub status: Option<i32>,
    /// The error that ended the recording early.
    pub early: Option<Error>,
}

impl Ended {
    fn with(status: Option<i32>) -> Ended {
        Ended {
            status,
            early: None,
        }
    }
}

/// Runs the command, or waits. If a source fails, the command is asked to end.
///
/// # Errors
/// Returns an error if the command cannot be started, or if the bundle cannot be written.
pub(super) fn run(
    options: &Options,
    tracing: &mut Tracing<'_>,
    series: &mut Series<'_>,
    command: Option<Start<'_>>,
    signals: &Signals,
) -> Result<Ended> {
    let mut command = command.map(Command::start).transpose()?;
    let pid = command.as_ref().and_then(Command::pid);
    if let Some(pid) = pid {
        tracing.command_started(pid);
    }
    if let Some(told) = &mut series.current.manifest.command {
        told.pid = pid;
    }
    let watched = watch(options, tracing, series, command.as_mut(), signals);
    let has_failed = !matches!(watched, Ok(Ended { early: None, .. }));
    if let Some(command) = &mut command
        && has_failed
    {
        command.terminate(None);
    }
    watched
}

fn watch(
    options: &Options,
    tracing: &mut Tracing<'_>,
    series: &mut Series<'_>,
    mut command: Option<&mut Command>,
    signals: &Signals,
) -> Result<Ended> {
    let start = Instant::now();
    let wait = Wait::new().at("epoll")?;
    tracing.wake(&wait)?;
    wait.while_readable(signals).at("signals")?;
    let mut asked: Option<Instant> = None;
    loop {
        signals.clear();
        let polled = tracing.poll();
        let status = command.as_mut().map_or(Ok(None), |command| command.ended());
        match polled.and(status) {
            Ok(None) => {}
            Ok(status) => return Ok(Ended::with(status)),
            Err(e) if e.is_of(series.folder()) => return Err(e),
            Err(e) => {
                return Ok(Ended {
                    early: Some(e),
                    ..Ended::default()
                });
            }
        }
        series.go_on(tracing)?;
        let left = options.limit.map(|l| l.saturating_sub(start.elapsed()));
        let over = signals.stop().is_some() || left.is_some_and(|left| left.is_zero());
        match (&command, over, asked) {
            (None, true, _) => return Ok(Ended::default()),
            (Some(command), true, None) => {
                command.terminate(signals.stop());
                asked = Some(Instant::now());
            }
            (Some(_), true, Some(since)) if since.elapsed() > PATIENCE => {
                return Ok(Ended::default());
            }
            _ => {}
        }
        let of_command = command
            .as_ref()
            .map_or(Duration::MAX, |c| c.poll_interval());
        let of_time = left.filter(|_| !over).unwrap_or(PATIENCE);
        let next = tracing.poll_interval().min(of_command).min(of_time);
        let next = next.min(series.due_in());
        wait.sleep(next).at("epoll")?;
    }
}

/// Waits for a moment without a request in flight, if there is one soon, because what is in flight when a source stops has no
/// completion in the trace. What waits for spare time would delay the stop, so it comes first.
///
/// # Errors
/// Returns an error if a source fails.
pub(super) fn settle(device: &Device, tracing: &mut Tracing<'_>) -> Result<()> {
    tracing.catch_up()?;
    let start = Instant::now();
    while device.is_busy() && start.elapsed() < SETTLE {
        tracing.poll()?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Calls syncfs in a thread of its own, so that the buffers are emptied meanwhile.
///
/// # Errors
/// Returns an error if the filesystem or a source fails.
pub(super) fn sync(mount: &Path, tracing: &mut Tracing<'_>) -> Result<()> {
    let folder = fs::File::open(mount).at(mount)?;
    let sync = std::thread::spawn(move || rustix::fs::syncfs(&folder));
    while !sync.is_finished() {
        tracing.poll()?;
        std::thread::sleep(POLL_INTERVAL);
    }
    match sync.join() {
        Ok(synced) => synced.at(mount),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
