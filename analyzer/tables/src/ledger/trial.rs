// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library that reads days allocates what a damaged file asks for, and a process whose allocation fails is aborted. So another
//! process with bounds reads the same bytes first. It tries day after day, and ends after one that is damaged.
//!
//! It gets the length of a day, 8 bytes, and the day. It answers with a line, which is empty if the day is sound.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio, exit};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use super::day;

/// The most memory that the process may take, bytes. A day of 24 full hours takes a third of it.
const MEMORY: u64 = 512 << 20;
/// The time after which it ends. A day is read in less than a second.
const SECONDS: u64 = 60;
/// The statuses with which it ends.
const DAMAGED: u8 = 1;
const NOT_TRIED: u8 = 2;
const TOO_LONG: u8 = 3;
/// How much of its answer is taken, bytes.
const LONGEST_LINE: u64 = 1 << 10;

/// How a day is tried before it is read.
#[derive(Clone, Copy, Debug)]
pub enum Trial {
    /// It is not: the days are known to be sound.
    None,
    /// By a process that this command starts, and that calls [`try_days`].
    By(fn() -> Command),
}

/// What a trial found.
pub(super) enum Verdict {
    Sound,
    /// The day cannot be read, for this reason.
    Damaged(String),
}

/// Tries days, all in one process as long as they are sound.
pub(super) struct Trials {
    trial: Trial,
    process: Option<Process>,
}

impl From<Trial> for Trials {
    fn from(trial: Trial) -> Trials {
        Trials {
            trial,
            process: None,
        }
    }
}

impl Trials {
    /// Tries a day.
    ///
    /// # Errors
    /// Returns an error if the process cannot be started, or if another one ended it.
    pub fn of(&mut self, day: &[u8]) -> io::Result<Verdict> {
        let Trial::By(command) = self.trial else {
            return Ok(Verdict::Sound);
        };
        let process = self.process.take();
        let mut process = process.map_or_else(|| Process::start(command()), Ok)?;
        let answer = process.ask(day)?;
        if answer == b"\n" {
            self.process = Some(process);
            return Ok(Verdict::Sound);
        }
        let why = String::from_utf8_lossy(&answer).trim().to_owned();
        verdict(process.end()?, why)
    }
}

/// A process that tries days. It ends with this.
struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(mut command: Command) -> io::Result<Process> {
        // With more threads it would take more memory.
        command.env("POLARS_MAX_THREADS", "1");
        // A terminal's Ctrl-C would look like damage.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (stdin, Some(stdout)) => Ok(Process {
                child,
                stdin,
                stdout: BufReader::new(stdout),
            }),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Hands a day over, and returns the answer, which is empty if the process ends over it.
    fn ask(&mut self, day: &[u8]) -> io::Result<Vec<u8>> {
        if let Some(stdin) = &mut self.stdin {
            let length = u64::try_from(day.len()).unwrap_or(u64::MAX);
            let written = stdin
                .write_all(&length.to_le_bytes())
                .and_then(|()| stdin.write_all(day));
            match written {
                // How it ended says why it no longer reads.
                Err(why) if why.kind() != io::ErrorKind::BrokenPipe => return Err(why),
                _ => {}
            }
        }
        let mut answer = Vec::new();
        let mut line = (&mut self.stdout).take(LONGEST_LINE);
        line.read_until(b'\n', &mut answer)?;
        Ok(answer)
    }

    /// Ends it, and returns how it ended. It does not wait for long, because it has a time limit itself.
    fn end(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // If it cannot be waited for, nothing can be done.
        let _ = self.end();
    }
}

fn verdict(status: ExitStatus, why: String) -> io::Result<Verdict> {
    let damaged = |why| Ok(Verdict::Damaged(why));
    match status.code().map(u8::try_from) {
        Some(Ok(DAMAGED)) => damaged(why),
        Some(Ok(TOO_LONG)) => damaged(format!("reading it takes more than {SECONDS} s")),
        None if is_of_itself(status) => damaged(format!(
            "reading it fails, or takes more than {} MiB of memory",
            MEMORY >> 20
        )),
        _ => Err(io::Error::other(format!(
            "the process that tries it ended with {status}: {why}"
        ))),
    }
}

/// Returns true if the process was ended by what it did itself, such as an allocation that failed.
fn is_of_itself(status: ExitStatus) -> bool {
    let signals = [
        Signal::ABORT,
        Signal::SEGV,
        Signal::BUS,
        Signal::ILL,
        Signal::FPE,
    ];
    let ended_by = |signal: &Signal| status.signal() == Some(signal.as_raw());
    signals.iter().any(ended_by)
}

/// Tries days from stdin under bounds of memory and time, until there are no more; returns the status with which the process must
/// end. It opens no file.
pub fn try_days() -> u8 {
    let tried = confine().and_then(|watch| try_all(&watch));
    let (status, line) = match tried {
        Ok(None) => return 0,
        Ok(Some(why)) => (DAMAGED, why),
        Err(why) => (NOT_TRIED, why.to_string()),
    };
    // If nobody listens, nothing can be done.
    let _ = writeln!(io::stdout(), "{}", line.replace('\n', " "));
    status
}

/// Tries days; returns what is wrong with the one that ends this.
fn try_all(watch: &Sender<()>) -> io::Result<Option<String>> {
    let mut stdin = io::stdin().lock();
    loop {
        let mut length = Vec::new();
        (&mut stdin).take(8).read_to_end(&mut length)?;
        let Ok(length) = <[u8; 8]>::try_from(length) else {
            return Ok(None);
        };
        let length = u64::from_le_bytes(length).min(day::LONGEST.saturating_add(1));
        let mut day = Vec::new();
        (&mut stdin).take(length).read_to_end(&mut day)?;
        // The watch lives as long as the process.
        let _ = watch.send(());
        if let Err(why) = day::parse(day) {
            return Ok(Some(why.to_string()));
        }
        let _ = watch.send(());
        io::stdout().write_all(b"\n")?;
    }
}

/// Bounds this process. What is returned must be told of the beginning and of the end of each trial.
fn confine() -> io::Result<Sender<()>> {
    for (resource, most) in [
        (Resource::Data, MEMORY),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        let had = getrlimit(resource).maximum;
        let most = Some(had.map_or(most, |had| had.min(most)));
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        setrlimit(resource, limit)?;
    }
    let (tell, told) = channel();
    let watch = move || {
        while told.recv().is_ok() {
            let over = told.recv_timeout(Duration::from_secs(SECONDS));
            if over == Err(RecvTimeoutError::Timeout) {
                exit(TOO_LONG.into());
            }
        }
    };
    thread::Builder::new().spawn(watch)?;
    Ok(tell)
}
