// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs debugfs as a process.
//!
//! Its stdin is a file with the commands (`-f -`), so debugfs does not buffer its output, and errors appear in the answer to which
//! they belong, as stdout and stderr are one pipe. The child inherits the image as an open file, because another file may have its
//! path by now, and a `?` in a path would begin I/O options. `-c` skips the bitmaps, which are not needed here and may be damaged.
//! The environment is cleared, because it may name a pager, which debugfs would start.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::confine;
use crate::fs::error::{Error, Result};
use crate::fs::image::Image;

/// The places where debugfs may be; a user's PATH often lacks the system's folders. Root uses only the absolute paths.
const PROGRAMS: [&str; 4] = [
    "/usr/sbin/debugfs",
    "/usr/bin/debugfs",
    "/sbin/debugfs",
    "debugfs",
];
/// A debugfs that prints nothing for this long counts as hung and is ended.
const STALL: Duration = Duration::from_secs(60);
/// The interval at which debugfs's progress is checked.
const INTERVAL: Duration = Duration::from_millis(1);
/// The most bytes that a session may print, whatever the filesystem.
const MAX_OUTPUT: u64 = 1 << 30;
/// Limits on processor time: the seconds that debugfs may take to open a filesystem, and the least number of bytes that it must
/// print in each further second.
const SECONDS: u64 = 5;
const BYTES_A_SECOND: u64 = 1 << 20;

/// The way in which debugfs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It read all commands, or it crashed.
    ByItself,
    /// It printed nothing for too long, or used too much processor time.
    Stalled,
    /// It printed more than is possible for this filesystem.
    Endless,
}

/// The input of debugfs.
pub struct Debugfs<'a> {
    /// The image, as errors name it.
    pub image: &'a Image,
    /// The image's open file.
    pub file: &'a File,
    /// The most lines that debugfs can have to print.
    pub lines: u64,
}

impl Debugfs<'_> {
    /// Runs debugfs on a file of `questions` commands until it ends. Returns how it ended, and its output.
    pub fn run(&self, commands: &File, questions: usize) -> Result<(End, Vec<u8>)> {
        let io = |source| self.image.io("running debugfs", source);
        let (pipe, input) = io::pipe().map_err(io)?;
        // An extent takes about 80 bytes; `stat` adds up to a block of attributes.
        let asked = u64::try_from(questions).unwrap_or(u64::MAX);
        let most = self
            .lines
            .saturating_mul(128)
            .saturating_add(asked.saturating_mul(4096));
        let most = most.clamp(1 << 20, MAX_OUTPUT);
        let mut child = self.start(programs(), commands, &input, most)?;
        drop(input);
        let printed = AtomicU64::new(0);
        thread::scope(|scope| {
            let collector = scope.spawn(|| collect(pipe, &printed, most));
            let end = watch(&mut child, &printed, most);
            // If it ended by itself, there is nothing to kill.
            let _ = child.kill();
            child.wait()?;
            let output = collector
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((end?, output?))
        })
        .map_err(io)
    }

    /// Starts the first of these programs that exists; it may print `most` bytes.
    fn start(
        &self,
        programs: &[&str],
        commands: &File,
        output: &PipeWriter,
        most: u64,
    ) -> Result<Child> {
        let io = |source| self.image.io("running debugfs", source);
        for program in programs {
            match self.start_one(program, commands, output, most) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                started => return started.map_err(io),
            }
        }
        Err(Error::ToolMissing {
            tool: "debugfs",
            package: "e2fsprogs",
        })
    }

    fn start_one(
        &self,
        program: &str,
        commands: &File,
        output: &PipeWriter,
        most: u64,
    ) -> io::Result<Child> {
        let make = || {
            let mut command = command(program, commands, output)?;
            let image = self.file.try_clone()?;
            command.arg(confine::path_of(&image));
            let seconds = SECONDS.saturating_add(most.div_ceil(BYTES_A_SECOND));
            confine::confine(&mut command, image, seconds);
            Ok::<_, io::Error>(command)
        };
        if confine::can_be_nobody(self.file) {
            let mut command = make()?;
            confine::step_down(&mut command);
            match command.spawn() {
                // A user namespace may have no such user.
                Err(error) if is_refused(&error) => {}
                started => return started,
            }
        }
        make()?.spawn()
    }
}

/// Returns the command with everything but the image.
fn command(program: &str, commands: &File, output: &PipeWriter) -> io::Result<Command> {
    let mut command = Command::new(program);
    command
        .args(["-c", "-f", "-"])
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("LC_ALL", "C")
        .env("DEBUGFS_PAGER", "__none__")
        .stdin(Stdio::from(commands.try_clone()?))
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output.try_clone()?));
    Ok(command)
}

fn is_refused(error: &io::Error) -> bool {
    let refusals = [io::ErrorKind::InvalidInput, io::ErrorKind::PermissionDenied];
    refusals.contains(&error.kind())
}

fn programs() -> &'static [&'static str] {
    let [system @ .., _] = &PROGRAMS;
    match rustix::process::geteuid().is_root() {
        true => system,
        false => &PROGRAMS,
    }
}

fn took_too_long(status: ExitStatus) -> bool {
    confine::took_too_long(status)
}

/// Reads all that debugfs prints, but not much more than `most` bytes. debugfs writes a few bytes at a time; reading only once a
/// millisecond saves two context switches for each of its writes.
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
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(INTERVAL);
        let now = printed.load(Relaxed);
        if now > most {
            return Ok(End::Endless);
        } else if now != before {
            (before, since) = (now, Instant::now());
        } else if since.elapsed() > STALL {
            return Ok(End::Stalled);
        }
    };
    if took_too_long(status) {
        return Ok(End::Stalled);
    }
    // The closed pipe may have ended the process.
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
            lines: 0,
        };
        let error = debugfs.start(&["/nowhere/debugfs"], file.as_file(), &output, 0);
        let line = error.expect_err("no tool").to_string();
        assert_eq!(line, "debugfs not found: install e2fsprogs");
    }

    /// Writes a script that stands in for debugfs.
    fn script(text: &str) -> tempfile::TempPath {
        use std::io::Write;
        use std::os::unix::fs::PermissionsExt;
        let mut file = tempfile::NamedTempFile::new().expect("file");
        write!(file, "#!/bin/sh\n{text}\n").expect("text");
        let mode = std::fs::Permissions::from_mode(0o755);
        file.as_file().set_permissions(mode).expect("mode");
        file.into_temp_path()
    }

    /// Starts the script as soon as no other test's child has it open for writing.
    fn started(debugfs: &Debugfs, script: &std::path::Path) -> (Child, PipeReader) {
        let programs = [script.to_str().expect("path")];
        let commands = tempfile::tempfile().expect("file");
        loop {
            let (pipe, output) = io::pipe().expect("pipe");
            match debugfs.start(&programs, &commands, &output, 0) {
                Ok(child) => return (child, pipe),
                Err(error) if error.to_string().contains("busy") => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn it_ends_with_who_started_it() {
        use std::os::unix::process::ExitStatusExt;
        let script = script("exec sleep 1000");
        let file = tempfile::NamedTempFile::new().expect("file");
        let image = Image::open(file.path()).expect("image");
        let debugfs = Debugfs {
            file: image.file().expect("file"),
            image: &image,
            lines: 0,
        };
        let start = || started(&debugfs, &script).0;
        let mut child = thread::scope(|scope| scope.spawn(start).join().expect("child"));
        assert_eq!(child.wait().expect("ended").signal(), Some(9));
    }

    #[test]
    fn it_has_what_it_needs_and_no_more() {
        use std::os::unix::fs::PermissionsExt;
        let script = script(
            "cat $4; echo; ulimit -v; ulimit -t; ulimit -c; ulimit -f; echo $HOME$PAGER; id -u",
        );
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), "the image").expect("image");
        let me = rustix::process::geteuid().as_raw();
        for (mode, root_is) in [(0o600, 0), (0o644, 65534)] {
            let mode = std::fs::Permissions::from_mode(mode);
            file.as_file().set_permissions(mode).expect("mode");
            let image = Image::open(file.path()).expect("image");
            let debugfs = Debugfs {
                file: image.file().expect("file"),
                image: &image,
                lines: 0,
            };
            let (mut child, mut pipe) = started(&debugfs, &script);
            let mut said = String::new();
            pipe.read_to_string(&mut said).expect("text");
            child.wait().expect("ended");
            let user = if me == 0 { root_is } else { me };
            assert_eq!(said, format!("the image\n524288\n5\n0\n0\n\n{user}\n"));
        }
    }
}
