// SPDX-License-Identifier: MIT OR Apache-2.0
//! debugfs as a process: thousands of questions in one session, one answer each.
//!
//! Commands come from a file (`-f`): debugfs then does not buffer its output, so that its errors
//! stand in the answer they belong to when both go to one pipe. It repeats each command before
//! the answer. Where an answer can hold text from the image (`stat`), a comment with a random
//! word separates it from the next; nothing in the image can contain that word. Commands name inodes by
//! number only, and are far below the 8 KiB at which debugfs cuts lines. The image is debugfs's
//! stdin: that is the file that was opened here, whatever now has its path, and `?` in a path would
//! start I/O options. `-c` leaves out the bitmaps, which are not
//! needed here and may be damaged.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::numbers::Ino;
use crate::fs::error::{Error, Result};
use crate::fs::image::Image;
use crate::fs::notices::Notices;

/// A request that debugfs answers about one inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    pub command: Ask,
    pub inode: Ino,
}

/// debugfs's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `ex`: numbers only.
    Extents,
    /// `stat`: numbers, and the inode's attributes.
    Stat,
}

/// Where debugfs may be: a user's PATH often lacks the system folders.
const PROGRAMS: [&str; 3] = ["debugfs", "/usr/sbin/debugfs", "/sbin/debugfs"];
/// A debugfs that prints nothing for so long is taken to hang, and is ended.
const STALL: Duration = Duration::from_secs(60);
/// How often to look at what debugfs has done.
const INTERVAL: Duration = Duration::from_millis(1);
/// No session prints more, whatever the filesystem.
const MAX_OUTPUT: u64 = 1 << 30;
/// How debugfs came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    ByItself,
    Stalled,
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

/// One run of debugfs, ended.
pub struct Session<'a> {
    questions: &'a [Question],
    /// A comment that no text of the image can equal.
    comment: String,
    output: Vec<u8>,
    end: End,
}

impl<'a> Session<'a> {
    /// Runs debugfs to its end.
    pub fn run(debugfs: &Debugfs, questions: &'a [Question]) -> Result<Session<'a>> {
        let io = |source| debugfs.image.io("running debugfs", source);
        let mut session = Session {
            questions,
            comment: format!(
                "#mostrace-{:016x}",
                RandomState::new().hash_one(questions.len())
            ),
            output: Vec::new(),
            end: End::ByItself,
        };
        let commands = session.command_file().map_err(io)?;
        let (pipe, input) = io::pipe().map_err(io)?;
        let mut child = debugfs.start(&PROGRAMS, commands.path(), input)?;
        // About 80 bytes per extent; `stat` adds up to a block of attributes.
        let asked = u64::try_from(questions.len()).unwrap_or(u64::MAX);
        let most = debugfs
            .blocks
            .saturating_mul(128)
            .saturating_add(asked.saturating_mul(4096));
        let most = most.clamp(1 << 20, MAX_OUTPUT);
        let printed = AtomicU64::new(0);
        (session.end, session.output) = thread::scope(|scope| {
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
        .map_err(io)?;
        Ok(session)
    }

    fn command_file(&self) -> io::Result<tempfile::NamedTempFile> {
        let file = tempfile::NamedTempFile::new()?;
        let mut out = io::BufWriter::new(file.as_file());
        for (nth, question) in self.questions.iter().enumerate() {
            if self.has_comment(nth) {
                writeln!(out, "{} {nth}", self.comment)?;
            }
            writeln!(out, "{}", question.request())?;
        }
        writeln!(out, "{} {}", self.comment, self.questions.len())?;
        out.flush()?;
        drop(out);
        Ok(file)
    }

    /// Whether a comment stands before a question: where it or the one before is `stat`, and at
    /// the beginning and the end.
    fn has_comment(&self, nth: usize) -> bool {
        let open = |nth: Option<usize>| {
            let question = nth.and_then(|nth| self.questions.get(nth));
            question.is_none_or(|question| question.command == Ask::Stat)
        };
        open(Some(nth)) || open(nth.checked_sub(1))
    }

    /// The line that begins an answer, without the comment's or the command's `debugfs: `.
    fn heading(&self, nth: usize) -> String {
        match self.questions.get(nth) {
            Some(question) if !self.has_comment(nth) => question.request(),
            _ => format!("{} {nth}", self.comment),
        }
    }

    /// What to say of the first question that was not answered in full.
    pub fn why(&self) -> &'static str {
        match self.end {
            End::ByItself => "broke off",
            End::Stalled => "gave no answer",
            End::Endless => "gave an endless answer",
        }
    }

    /// Cuts the output into answers. Returns how many questions were answered in full.
    pub fn read(
        &self,
        image: &Image,
        notices: &mut Notices,
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<usize> {
        // Before the first answer debugfs prints what concerns the filesystem as a whole.
        let mut next = 0usize;
        let mut heading = self.heading(next);
        let (mut answer_at, mut at) = (0usize, 0usize);
        for line in self.output.split_inclusive(|&byte| byte == b'\n') {
            let line_at = at;
            at = at.saturating_add(line.len());
            if !is_heading(line, &heading) {
                continue;
            }
            let answer = self.output.get(answer_at..line_at).unwrap_or(&[]);
            match next.checked_sub(1) {
                None => check_opened(image, answer, notices)?,
                Some(nth) => {
                    let answer = without_echo(answer);
                    if nth == 0 && answer.ends_with(b": Filesystem not open\n") {
                        return Err(image.corrupt("superblock", "debugfs does not open it"));
                    }
                    each(nth, answer);
                }
            }
            answer_at = at;
            if next == self.questions.len() {
                return Ok(next);
            }
            next = next.saturating_add(1);
            heading = self.heading(next);
        }
        Ok(next.saturating_sub(1))
    }
}

impl Question {
    /// The command line.
    fn request(&self) -> String {
        let command = match self.command {
            Ask::Extents => "ex",
            Ask::Stat => "stat",
        };
        format!("{command} <{}>", self.inode)
    }
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

/// A debugfs from before 2020 has no comments, and repeats them like commands.
fn is_heading(line: &[u8], heading: &str) -> bool {
    let line = line.strip_prefix(b"debugfs: ").unwrap_or(line);
    line.strip_suffix(b"\n") == Some(heading.as_bytes())
}

/// An answer without the command that debugfs repeats before it, and without what an old one
/// says to a comment.
fn without_echo(answer: &[u8]) -> &[u8] {
    let mut rest = answer;
    while rest.starts_with(b"debugfs: ") {
        let end = rest.iter().position(|&byte| byte == b'\n');
        rest = end.and_then(|end| rest.get(end..)?.get(1..)).unwrap_or(&[]);
    }
    rest
}

/// Reports what debugfs said about the filesystem as a whole.
fn check_opened(image: &Image, preamble: &[u8], notices: &mut Notices) -> Result<()> {
    let text = String::from_utf8_lossy(preamble);
    let said: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("debugfs 1.") && !line.contains("catastrophic mode"))
        .map(|line| line.strip_prefix("debugfs: ").unwrap_or(line))
        .collect();
    let said = said.join("; ");
    match said.strip_suffix(" while trying to open /proc/self/fd/0") {
        Some(why) if why.contains("unsupported") => {
            return Err(image.unsupported("superblock", format!("debugfs: {why}")));
        }
        Some(why) => return Err(image.corrupt("superblock", format!("debugfs: {why}"))),
        None if said.is_empty() => {}
        None => notices.push(format!("debugfs: {said}")),
    }
    Ok(())
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
