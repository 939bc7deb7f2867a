// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traced command.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use mostrace_bundle::manifest::PAYLOAD_ENV;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};

/// The running command.
#[derive(Debug)]
pub struct Command {
    child: Child,
    name: String,
}

/// Looks a program up as execvp(3) would, so that a mistyped one is told before tracing starts.
///
/// # Errors
/// Not found, or not executable.
pub fn check(argv: &[OsString]) -> Result<()> {
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
    let executable =
        |p: &Path| p.is_file() && rustix::fs::access(p, rustix::fs::Access::EXEC_OK).is_ok();
    if candidates.iter().any(|p| executable(p)) {
        Ok(())
    } else {
        Err(Error::CommandNotFound {
            command: program.to_string_lossy().into_owned(),
        })
    }
}

impl Command {
    /// Starts it, with the place for its payload in the environment.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(argv: &[OsString], payload: &Path) -> Result<Command> {
        let name = argv[0].to_string_lossy().into_owned();
        let child = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .env(PAYLOAD_ENV, payload)
            .spawn()
            .map_err(|source| Error::Command {
                command: name.clone(),
                source,
            })?;
        Ok(Command { child, name })
    }

    /// The exit status as a shell gives it, if it has ended.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn ended(&mut self) -> Result<Option<i32>> {
        let status = self.child.try_wait();
        let status = status.map_err(|source| Error::Command {
            command: self.name.clone(),
            source,
        })?;
        Ok(status.map(shell_status))
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
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
    }

    #[test]
    fn a_signal_is_128_more() {
        assert_eq!(shell_status(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(shell_status(ExitStatus::from_raw(9)), 137);
    }
}
