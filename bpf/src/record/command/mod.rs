// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traced command.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use mostrace_bundle::manifest::PAYLOAD_ENV;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::error::{Error, Result};
use crate::machine::user::User;
use descendants::Descendants;

mod descendants;

/// The process namespace with which the kernel starts: `PROC_PID_INIT_INO` of <linux/proc_ns.h>.
const ALL_PROCESSES: &str = "pid:[4026531836]";

/// The way in which a command is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    /// The command and its arguments; it is not empty.
    pub argv: &'a [OsString],
    /// The file to which the command may write its payload.
    pub payload: &'a Path,
    /// The user as whom it runs; None for the recorder's user.
    pub user: Option<&'a User>,
    /// True if the command's output goes to standard error.
    pub stdout_aside: bool,
    /// True if the recorder waits for the processes that the command leaves running.
    pub wait: bool,
}

/// The running command.
#[derive(Debug)]
pub(crate) struct Command {
    child: Child,
    name: String,
    status: Option<i32>,
    /// The processes that it leaves running; None if they are not waited for.
    descendants: Option<Descendants>,
    asked_to_end: Cell<bool>,
    told: bool,
    /// True if it is the leader of a session of its own.
    is_apart: bool,
}

/// Looks up a program as execvp(3) would, so that a mistyped name is reported before tracing starts.
///
/// # Errors
/// Returns an error if the command is not found, or is not executable.
pub(crate) fn check(argv: &[OsString]) -> Result<()> {
    let Some(program) = argv.first() else {
        return Ok(());
    };
    let candidates: Vec<PathBuf> = if program.to_string_lossy().contains('/') {
        vec![PathBuf::from(program)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|dir| dir.join(program))
            .collect()
    };
    let is_executable =
        |p: &PathBuf| p.is_file() && rustix::fs::access(p, rustix::fs::Access::EXEC_OK).is_ok();
    if candidates.iter().any(is_executable) {
        return Ok(());
    }
    let command = program.to_string_lossy().into_owned();
    let source = match candidates.iter().find(|p| p.exists()) {
        None => return Err(Error::CommandNotFound(command)),
        Some(folder) if folder.is_dir() => io::ErrorKind::IsADirectory,
        Some(_) => io::ErrorKind::PermissionDenied,
    };
    Err(Error::Command {
        command,
        source: source.into(),
    })
}

impl Command {
    /// Starts the command, with the place of its payload in its environment.
    ///
    /// # Errors
    /// Returns an error if the command cannot be started.
    pub fn start(start: Start<'_>) -> Result<Command> {
        let name = start.argv[0].to_string_lossy().into_owned();
        let descendants = start.wait.then(Descendants::adopt);
        let mut command = std::process::Command::new(&start.argv[0]);
        command.args(&start.argv[1..]);
        if let Some(user) = start.user {
            user.take_over(&mut command);
        }
        if start.stdout_aside {
            command.stdout(io::stderr());
        }
        command.env(PAYLOAD_ENV, start.payload);
        let child = command.spawn().map_err(|source| Error::Command {
            command: name.clone(),
            source,
        })?;
        Ok(Command {
            child,
            name,
            status: None,
            descendants,
            asked_to_end: Cell::new(false),
            told: false,
            is_apart: start.user.is_some_and(User::is_another),
        })
    }

    /// Returns the number of its process on the machine; None if the recorder knows only a container's numbers.
    pub fn pid(&self) -> Option<u32> {
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        (namespace == Path::new(ALL_PROCESSES)).then(|| self.child.id())
    }

    /// Returns the exit status in the form of a shell's, if the command and everything that it left running have ended.
    ///
    /// # Errors
    /// Returns an error if the command cannot be waited for.
    pub fn ended(&mut self) -> Result<Option<i32>> {
        if self.status.is_none() {
            let status = self.child.try_wait();
            let status = status.map_err(|source| Error::Command {
                command: self.name.clone(),
                source,
            })?;
            self.status = status.map(shell_status);
        }
        let goes_on = self.status.is_none() || self.waits_for_others();
        Ok(self.status.filter(|_| !goes_on))
    }

    /// Returns the interval at which the command is polled if no SIGCHLD comes; the signal reports only the command's own end.
    pub fn poll_interval(&self) -> Duration {
        match self.status {
            None => Duration::MAX,
            Some(_) => descendants::EVERY,
        }
    }

    fn waits_for_others(&mut self) -> bool {
        let Some(descendants) = &mut self.descendants else {
            return false;
        };
        let left = descendants.left();
        if left.is_empty() || self.asked_to_end.get() {
            return false;
        }
        if !self.told {
            self.told = true;
            let pids: Vec<String> = left.iter().map(Pid::to_string).collect();
            log::warn!(
                "{} has ended, but not what it started: process {} (Ctrl-C ends the recording; \
                 --no-wait does not wait)",
                self.name,
                pids.join(", ")
            );
        }
        true
    }

    /// Asks the command to end, in the way in which `signal` asked the recorder, if there is one. What it left running is no longer
    /// waited for.
    pub fn terminate(&self, signal: Option<Signal>) {
        self.asked_to_end.set(true);
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| self.status.is_none()) else {
            return;
        };
        // The command may have ended by itself.
        if let Some(signal) = signal.filter(|_| self.is_apart) {
            // A terminal's Ctrl-C reaches only processes whose terminal it is.
            let _ = kill_process_group(pid, signal);
        }
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Returns the exit status, or 128 plus the signal.
fn shell_status(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|s| 128 + s))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_is_told() {
        let e = check(&["no-such-command-here".into()]).unwrap_err();
        assert_eq!(e.to_string(), "no-such-command-here: command not found");
        check(&["sh".into()]).unwrap();
        for (name, why) in [
            ("/etc/passwd", "permission denied"),
            ("/etc", "is a directory"),
        ] {
            let e = check(&[name.into()]).unwrap_err();
            assert_eq!(e.to_string(), format!("{name}: {why}"));
        }
    }

    #[test]
    fn a_signal_is_128_more() {
        assert_eq!(shell_status(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(shell_status(ExitStatus::from_raw(9)), 137);
    }
}
