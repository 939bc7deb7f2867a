// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks one debugfs process thousands of questions; each has one answer.
//!
//! debugfs repeats each command before its answer. If an answer can contain text from the image (`stat`), a comment with a random
//! word separates it from the next one; nothing in the image can contain that word. Commands name inodes by number only, and are
//! far shorter than the 8 KiB at which debugfs cuts lines.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek, Write};

use super::super::numbers::Ino;
use super::process::{Debugfs, End};
use crate::fs::error::Result;
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

/// A run of debugfs that has ended.
pub struct Session<'a> {
    questions: &'a [Question],
    /// A comment that differs from every text in the image.
    comment: String,
    output: Vec<u8>,
    end: End,
}

impl<'a> Session<'a> {
    /// Runs debugfs until it ends.
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
        (session.end, session.output) = debugfs.run(&commands, questions.len())?;
        Ok(session)
    }

    fn command_file(&self) -> io::Result<File> {
        let mut file = tempfile::tempfile()?;
        let mut out = io::BufWriter::new(&file);
        for (nth, question) in self.questions.iter().enumerate() {
            if self.has_comment(nth) {
                writeln!(out, "{} {nth}", self.comment)?;
            }
            writeln!(out, "{}", question.request())?;
        }
        writeln!(out, "{} {}", self.comment, self.questions.len())?;
        out.flush()?;
        drop(out);
        file.rewind()?;
        Ok(file)
    }

    /// Returns true if a comment stands before a question: before and behind each `stat`, and at the beginning and the end.
    fn has_comment(&self, nth: usize) -> bool {
        let open = |nth: Option<usize>| {
            let question = nth.and_then(|nth| self.questions.get(nth));
            question.is_none_or(|question| question.command == Ask::Stat)
        };
        open(Some(nth)) || open(nth.checked_sub(1))
    }

    /// Returns the line that begins an answer, without the `debugfs: ` before the comment or the command.
    fn heading(&self, nth: usize) -> String {
        match self.questions.get(nth) {
            Some(question) if !self.has_comment(nth) => question.request(),
            _ => format!("{} {nth}", self.comment),
        }
    }

    /// Returns what happened at the first question that was not answered in full.
    pub fn why(&self) -> &'static str {
        match self.end {
            End::ByItself => "broke off",
            End::Stalled => "gave no answer",
            End::Endless => "gave an endless answer",
        }
    }

    /// Returns true if debugfs was ended because it gave no answer.
    pub fn is_stalled(&self) -> bool {
        self.end == End::Stalled
    }

    /// Splits the output into answers. Returns how many questions were answered in full.
    pub fn read(
        &self,
        image: &Image,
        notices: &mut Notices,
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<usize> {
        // Before the first answer, debugfs prints what concerns the filesystem as a whole.
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
    /// Returns the command line.
    fn request(&self) -> String {
        let command = match self.command {
            Ask::Extents => "ex",
            Ask::Stat => "stat",
        };
        format!("{command} <{}>", self.inode)
    }
}

/// Returns true if a line begins the answer with this heading. A debugfs from before 2020 has no comments, and repeats them like
/// commands.
fn is_heading(line: &[u8], heading: &str) -> bool {
    let line = line.strip_prefix(b"debugfs: ").unwrap_or(line);
    line.strip_suffix(b"\n") == Some(heading.as_bytes())
}

/// Returns an answer without the command that debugfs repeats before it, and without what an old debugfs prints for a comment.
fn without_echo(answer: &[u8]) -> &[u8] {
    let mut rest = answer;
    while rest.starts_with(b"debugfs: ") {
        let end = rest.iter().position(|&byte| byte == b'\n');
        rest = end.and_then(|end| rest.get(end..)?.get(1..)).unwrap_or(&[]);
    }
    rest
}

/// Reports what debugfs printed about the filesystem as a whole.
fn check_opened(image: &Image, preamble: &[u8], notices: &mut Notices) -> Result<()> {
    let text = String::from_utf8_lossy(preamble);
    let said: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("debugfs 1.") && !line.contains("catastrophic mode"))
        .map(|line| line.strip_prefix("debugfs: ").unwrap_or(line))
        .collect();
    let said = said.join("; ");
    // The message names the file by the path under which it was handed down.
    match said.rsplit_once(" while trying to open ") {
        Some((why, _)) if why.contains("unsupported") => {
            return Err(image.unsupported("superblock", format!("debugfs: {why}")));
        }
        Some((why, _)) => return Err(image.corrupt("superblock", format!("debugfs: {why}"))),
        None if said.is_empty() => {}
        None => notices.push(format!("debugfs: {said}")),
    }
    Ok(())
}
