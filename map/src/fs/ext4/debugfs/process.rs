// SPDX-License-Identifier: MIT OR Apache-2.0
//! debugfs as a process.
//!
//! Commands come from a file (`-f`), which is its stdin: debugfs then does not buffer its output, so that its errors
//! stand in the answer they belong to when both go to one pipe. The image is handed down: that
//! is the file that was opened here, whatever now has its path, and `?` in a path would start I/O
//! options. `-c` leaves out the bitmaps, which are not needed here and may be damaged. Of the environment it gets nothing: it
//! would start the pager that this names.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::confine;
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
/// Of a processor: those that it takes at most to open a filesystem, and what it prints in one, slow as that may be.
const SECONDS: u64 = 5;
const BYTES_A_SECOND: u64 = 1 << 20;

/// How debugfs came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It read all commands, or crashed.
    ByItself,
    /// It printed nothing for too long, or took too much of a processor.
    Stalled,
    /// It printed more than there can be.
    Endless,
}

/// What debugfs is started on.
pub struct Debugfs<'a> {
    /// Names the image in errors.
    pub image: &'a Image,
    /// The image itself.
    pub file: &'a File,
    /// Lines that it can have to say, at most.
    pub lines: u64,
}

impl Debugfs<'_> {
    /// Runs a file of `questions` commands to its end; returns how it ended, and what it printed.
    pub fn run(&self, commands: &File, questions: usize) -> Result<(End, Vec<u8>)> {
        let io = |source| self.image.io("running debugfs", source);
        let (pipe, input) = io::pipe().map_err(io)?;
        // About 80 bytes per extent; `stat` adds up to a block of attributes.
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

    /// Starts the first of these programs that there is; it may print `most` bytes.
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
                // In a user namespace there may be no such user.
                Err(error) if is_refused(&error) => {}
                started => return started,
            }
        }
        make()?.spawn()
    }
}

/// All but the image.
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
            lines: 0,
        };
        let error = debugfs.start(&["/nowhere/debugfs"], file.as_file(), &output, 0);
        let line = error.expect_err("no tool").to_string();
        assert_eq!(line, "debugfs not found: install e2fsprogs");
    }

    /// A program in debugfs's place.
    fn script(text: &str) -> tempfile::TempPath {
        use std::io::Write;
        use std::os::unix::fs::PermissionsExt;
        let mut file = tempfile::NamedTempFile::new().expect("file");
        write!(file, "#!/bin/sh\n{text}\n").expect("text");
        let mode = std::fs::Permissions::from_mode(0o755);
        file.as_file().set_permissions(mode).expect("mode");
        file.into_temp_path()
    }

    /// Starts it until no other test's child has it open for writing.
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
