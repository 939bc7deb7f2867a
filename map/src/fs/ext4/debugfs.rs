// SPDX-License-Identifier: MIT OR Apache-2.0
//! debugfs as a process.
//!
//! Commands come from a file (`-f`): debugfs then does not buffer its output, so that its errors
//! stand in the answer they belong to when both go to one pipe. The image is debugfs's stdin: that
//! is the file that was opened here, whatever now has its path, and `?` in a path would start I/O
//! options. `-c` leaves out the bitmaps, which are not needed here and may be damaged.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::fs::error::{Error, Result};
use crate::fs::image::Image;

/// Where debugfs may be: a user's PATH often lacks the system's folders. Root takes it from there alone.
const PROGRAMS: [&str; 4] = [
    "/usr/sbin/debugfs",
    "/usr/bin/debugfs",
    "/sbin/debugfs",
    "debugfs",
];
/// A debugfs that prints nothing for so long is taken to hang, and is ended.
const STALL: Duration = Duration::from_secs(60);
/// How often to look at what debugfs has done.
const INTERVAL: Duration = Duration::from_millis(1);
/// No session prints more, whatever the filesystem.
const MAX_OUTPUT: u64 = 1 << 30;

/// How debugfs came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It read all commands, or crashed.
    ByItself,
    /// It printed nothing for too long.
    Stalled,
    /// It printed more than there can be.
    Endless,
}

/// What debugfs is started on.
pub struct Debugfs<'a> {
    /// Names the image in errors.
    pub image: &'a Image,
    /// The image itself.
    pub file: File,
    /// Blocks of the filesystem, which bound what can be said about it.
    pub blocks: u64,
}

impl Debugfs<'_> {
    /// Runs a file of `questions` commands to its end; returns how it ended, and what it printed.
    pub fn run(&self, commands: &Path, questions: usize) -> Result<(End, Vec<u8>)> {
        let io = |source| self.image.io("running debugfs", source);
        let (pipe, input) = io::pipe().map_err(io)?;
        let mut child = self.start(programs(), commands, input)?;
        // About 80 bytes per extent; `stat` adds up to a block of attributes.
        let asked = u64::try_from(questions).unwrap_or(u64::MAX);
        let most = self
            .blocks
            .saturating_mul(128)
            .saturating_add(asked.saturating_mul(4096));
        let most = most.clamp(1 << 20, MAX_OUTPUT);
        let printed = AtomicU64::new(0);
        thread::scope(|scope| {
            let collector = scope.spawn(|| collect(pipe, &printed, most));
            let end = watch(&mut child, &printed, most);
            // It may have ended by itself: then there is nothing to kill.
            let _ = child.kill();
            child.wait()?;
            let output = collector
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((end?, output?))
        })
        .map_err(io)
    }

    fn start(&self, programs: &[&str], commands: &Path, output: PipeWriter) -> Result<Child> {
        let io = |source| self.image.io("running debugfs", source);
        for program in programs {
            let started = Command::new(program)
                .args(["-c", "-f"])
                .arg(commands)
                .arg("/proc/self/fd/0")
                .env("LC_ALL", "C")
                .stdin(Stdio::from(self.file.try_clone().map_err(io)?))
                .stdout(Stdio::from(output.try_clone().map_err(io)?))
                .stderr(Stdio::from(output.try_clone().map_err(io)?))
                .spawn();
            match started {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                started => return started.map_err(io),
            }
        }
        Err(Error::ToolMissing {
            tool: "debugfs",
            package: "e2fsprogs",
        })
    }
}

#[cfg(target_os = "linux")]
fn programs() -> &'static [&'static str] {
    let [system @ .., _] = &PROGRAMS;
    match rustix::process::geteuid().is_root() {
        true => system,
        false => &PROGRAMS,
    }
}

#[cfg(not(target_os = "linux"))]
fn programs() -> &'static [&'static str] {
    &PROGRAMS
}

/// Takes all that debugfs prints, but not much more than `most` bytes. debugfs writes a few bytes
/// at a time; reading only once a millisecond saves two context switches for each of its writes.
fn collect(mut pipe: PipeReader, printed: &AtomicU64, most: u64) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    let mut taken = 0u64;
    while taken <= most {
        thread::sleep(INTERVAL);
        let mut some = [0; 1 << 16];
        let read = pipe.read(&mut some)?;
        if read == 0 {
            break;
        }
        output.extend_from_slice(some.get(..read).unwrap_or(&[]));
        taken = u64::try_from(output.len()).unwrap_or(u64::MAX);
        printed.store(taken, Relaxed);
    }
    Ok(output)
}

/// Waits for debugfs to end, to stall, or to print more than `most` bytes.
fn watch(child: &mut Child, printed: &AtomicU64, most: u64) -> io::Result<End> {
    let mut before = 0;
    let mut since = Instant::now();
    while child.try_wait()?.is_none() {
        thread::sleep(INTERVAL);
        let now = printed.load(Relaxed);
        if now > most {
            return Ok(End::Endless);
        } else if now != before {
            (before, since) = (now, Instant::now());
        } else if since.elapsed() > STALL {
            return Ok(End::Stalled);
        }
    }
    // The closed pipe may have ended it.
    Ok(if printed.load(Relaxed) > most {
        End::Endless
    } else {
        End::ByItself
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_debugfs_says_what_to_install() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let image = Image::open(file.path()).expect("image");
        let (_, output) = io::pipe().expect("pipe");
        let debugfs = Debugfs {
            file: image.file().expect("file"),
            image: &image,
            blocks: 0,
        };
        let error = debugfs.start(&["/nowhere/debugfs"], file.path(), output);
        let line = error.expect_err("no tool").to_string();
        assert_eq!(line, "debugfs not found: install e2fsprogs");
    }
}
