// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording in the foreground: Ctrl-C here acts as Ctrl-C there, and its progress is shown here.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mostrace_bundle::manifest::PROGRESS;

use super::app::App;
use super::there::{There, is_advice};
use crate::say;

const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The longest line that is shown in one piece, bytes.
const LONGEST: u64 = 64 << 10;
/// The most lines that wait to be shown.
const WAITING: usize = 16;

/// Runs the line until it ends. Starts the app when the recording has begun.
pub fn run(there: &There<'_>, line: &str, app: Option<&App>) -> anyhow::Result<ExitStatus> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&asked))?;
    }
    let mut shell = there.adb.shell(line);
    alone(&mut shell);
    let mut shell = there.adb.spawn(shell.stderr(Stdio::piped()))?;
    let said = lines(shell.stderr.take().context("adb shell")?);
    let mut shown = Shown::new();
    let mut waiting = app;
    loop {
        if asked.swap(false, Relaxed) {
            there.interrupt()?;
        }
        match said.recv_timeout(LOOK_AGAIN) {
            Ok(line) => match line.strip_prefix(PROGRESS) {
                Some(progress) => {
                    shown.at(progress);
                    if let Some(app) = waiting.take() {
                        app.start(there.adb, there.root)?;
                    }
                }
                None => shown.tell(&line),
            },
            // What the command left running may hold the pipe open.
            Err(RecvTimeoutError::Timeout) if shell.try_wait()?.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    shown.finish();
    Ok(shell.wait()?)
}

/// The line with the progress.
struct Shown {
    bar: ProgressBar,
    latest: Option<String>,
}

impl Shown {
    fn new() -> Shown {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        Shown { bar, latest: None }
    }

    fn at(&mut self, progress: &str) {
        let progress = crate::line(progress);
        self.bar.set_message(format!("{progress}; Ctrl-C ends"));
        self.bar.tick();
        self.latest = Some(progress);
    }

    /// Shows a line of the recorder, or of the command that it runs.
    fn tell(&self, line: &str) {
        if is_advice(line) {
            return;
        }
        // If stderr is closed, nothing can be done.
        let tell = || drop(writeln!(io::stderr(), "{}", crate::line(line)));
        self.bar.suspend(tell);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
        if let Some(latest) = &self.latest {
            say(&format!("recorded {latest}"));
        }
    }
}

/// Sends the lines of a phone, which may have no end, and may come faster than they are shown.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = sync_channel(WAITING);
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while let Ok(1..) = from.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line);
            if tell.send(text.trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    told
}

/// Keeps the terminal's Ctrl-C from adb, which would end and leave the recorder running.
#[cfg(unix)]
fn alone(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn alone(_command: &mut Command) {}
