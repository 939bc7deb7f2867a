// SPDX-License-Identifier: MIT OR Apache-2.0
//! adb, which runs lines on the phone. The phone may be anybody's, so what it answers has a bound.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

/// The longest answer that is read, bytes; the list of a phone's apps has some 20 KiB.
const LONGEST: u64 = 256 << 10;
/// The time after which a phone that says nothing is given up. Some commands of Android take seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The adb of one phone.
pub struct Adb {
    pub program: OsString,
    pub serial: Option<String>,
}

/// This is what came of a line.
pub enum Answer {
    /// It ended well, and printed this, without the last line's end.
    Said(String),
    /// It failed, with this as its first message.
    Failed(String),
    /// It has not ended.
    Silent,
}

impl Adb {
    pub fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(serial) = &self.serial {
            command.args(["-s", serial]);
        }
        command.arg(verb);
        command
    }

    pub fn shell(&self, line: &str) -> Command {
        let mut command = self.command("shell");
        command.arg(line).stdin(Stdio::null());
        command
    }

    /// Returns what a line prints on the phone.
    pub fn ask(&self, line: &str) -> anyhow::Result<String> {
        self.answer(self.shell(line), &format!("adb shell {line}"))
    }

    /// Does as [`Adb::ask`] does, for a line that takes as long as it takes.
    pub fn wait(&self, line: &str) -> anyhow::Result<String> {
        let said = self.run(self.shell(line), "adb shell", None)?;
        self.said(said, &format!("adb shell {line}"))
    }

    /// Returns what a command of adb prints.
    pub fn answer(&self, command: Command, shown: &str) -> anyhow::Result<String> {
        let said = self.run(command, shown, Some(PATIENCE))?;
        self.said(said, shown)
    }

    fn said(&self, answer: Answer, shown: &str) -> anyhow::Result<String> {
        match answer {
            Answer::Said(text) => Ok(text),
            Answer::Silent => bail!("{shown}: no answer within {} s", PATIENCE.as_secs()),
            Answer::Failed(mut why) => {
                if why.contains("more than one device") && self.serial.is_none() {
                    // Writing to a String cannot fail.
                    let _ = write!(why, "; `adb devices` lists them, -s SERIAL selects one");
                }
                bail!("{shown}: {why}")
            }
        }
    }

    /// Runs a command for at most this time.
    pub fn run(
        &self,
        mut command: Command,
        shown: &str,
        within: Option<Duration>,
    ) -> anyhow::Result<Answer> {
        command.stdin(Stdio::null());
        let mut child = self.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        let messages = child.stderr.take().map(beginning);
        let out = child.stdout.take().map(beginning);
        let read = match (out, within) {
            (None, _) => Some(Vec::new()),
            (Some(out), None) => out.recv().ok(),
            (Some(out), Some(within)) => out.recv_timeout(within).ok(),
        };
        let Some(out) = read else {
            child.kill()?;
            child.wait()?;
            return Ok(Answer::Silent);
        };
        let is_too_long = |bytes: &Vec<u8>| bytes.len() as u64 > LONGEST;
        if is_too_long(&out) {
            child.kill()?;
            child.wait()?;
            bail!("{shown}: answers with more than {LONGEST} bytes");
        }
        let said = messages.and_then(|messages| messages.recv_timeout(PATIENCE).ok());
        let said = said.unwrap_or_default();
        if is_too_long(&said) {
            child.kill()?;
        }
        if child.wait()?.success() {
            let out = String::from_utf8_lossy(&out);
            return Ok(Answer::Said(out.trim_end().to_owned()));
        }
        // What su is told by its manager may come either way.
        let said = [said, out].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let mut lines = said.iter().flat_map(|text| text.lines());
        let first = lines.find(|line| !line.trim().is_empty());
        Ok(Answer::Failed(
            first.unwrap_or("failed without a message").to_owned(),
        ))
    }

    /// Starts a command of adb.
    pub fn spawn(&self, command: &mut Command) -> anyhow::Result<std::process::Child> {
        let program = self.program.to_string_lossy();
        command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::anyhow!(
                "{program}: not found; it is one of Android's platform tools; --adb FILE names another place"
            ),
            _ => anyhow::Error::from(error).context(program.into_owned()),
        })
    }

    /// Copies a file to the phone.
    pub fn push(&self, from: &std::path::Path, to: &str) -> anyhow::Result<()> {
        let mut push = self.command("push");
        push.arg(from).arg(to);
        let shown = format!("adb push {}", from.display());
        let said = self.run(push, &shown, None)?;
        self.said(said, &shown).map(drop)
    }

    /// Runs a line whose output is a file of `size` bytes, and copies that; `at` is told how far it is.
    pub fn fetch(
        &self,
        line: &str,
        size: u64,
        to: &mut impl io::Write,
        at: impl Fn(u64),
    ) -> anyhow::Result<()> {
        let mut cat = self.command("exec-out");
        cat.arg(line).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut cat = self.spawn(&mut cat)?;
        let mut from = cat.stdout.take().context("adb exec-out")?;
        let copied = copy(&mut from, size, to, at);
        if !matches!(copied, Ok(bytes) if bytes <= size) {
            cat.kill()?;
        }
        let (copied, status) = (copied?, cat.wait()?);
        match copied {
            less if less < size => bail!("only {less} of {size} bytes arrived"),
            more if more > size => bail!("more than the {size} bytes of the bundle arrived"),
            _ if !status.success() => bail!("adb exec-out: {status}"),
            _ => Ok(()),
        }
    }
}

/// Copies at most one byte more than `size`.
fn copy(
    from: &mut impl Read,
    size: u64,
    to: &mut impl io::Write,
    at: impl Fn(u64),
) -> io::Result<u64> {
    let mut from = from.take(size.saturating_add(1));
    let mut piece = vec![0; 1 << 16];
    let mut copied = 0_u64;
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok(copied),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(piece.get(..read).unwrap_or_default())?;
        copied = copied.saturating_add(read as u64);
        at(copied);
    }
}

/// Reads at most one byte more than the longest answer has, in a thread of its own. Whoever goes on writing then finds the pipe
/// closed.
fn beginning(from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // An answer that breaks off is one that is too short.
        let _ = from.take(LONGEST + 1).read_to_end(&mut bytes);
        // Nobody waits any more for an answer that came too late.
        let _ = tell.send(bytes);
    });
    told
}
