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

/// The namespace of processes that the kernel begins with: `PROC_PID_INIT_INO` of <linux/proc_ns.h>.
const ALL_PROCESSES: &str = "pid:[4026531836]";

/// The way in which a command is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    /// The command with its arguments, not empty.
    pub argv: &'a [OsString],
    /// The file that the command may put its payload into.
    pub payload: &'a Path,
    /// Whom it runs as, if not as the recorder.
    pub user: Option<&'a User>,
    /// True if what the command prints goes to standard error.
    pub stdout_aside: bool,
    /// True if the processes that it leaves running are waited for.
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
    /// True if it has a session of its own, whose leader it is.
    is_apart: bool,
}

/// Looks a program up as execvp(3) would, so that a mistyped one is told before tracing starts.
///
/// # Errors
/// The command is not found, or not executable.
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
    /// Starts it, with the place for its payload in the environment.
    ///
    /// # Errors
    /// The command cannot be started.
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

    /// The number of its process on the machine; None if the recorder itself knows only those of a container.
    pub fn pid(&self) -> Option<u32> {
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        (namespace == Path::new(ALL_PROCESSES)).then(|| self.child.id())
    }

    /// The exit status as a shell gives it, if it has ended, and what it left running has.
    ///
    /// # Errors
    /// The command cannot be waited for.
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

    /// The interval at which the command is polled if no SIGCHLD comes: the signal tells of its own end alone.
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

    /// Asks it to end, as the recorder was asked by `signal`, if it was. What it left running is not waited for any longer.
    pub fn terminate(&self, signal: Option<Signal>) {
        self.asked_to_end.set(true);
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| self.status.is_none()) else {
            return;
        };
        // It may have ended by itself.
        if let Some(signal) = signal.filter(|_| self.is_apart) {
            // Ctrl-C of a terminal reaches only those whose terminal it is.
            let _ = kill_process_group(pid, signal);
        }
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Exit status, or 128 + the signal.
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
