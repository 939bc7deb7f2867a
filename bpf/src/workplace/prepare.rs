// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares what a measured command needs, before the recording.

use std::io::Read;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::site::settle;
use crate::error::{At, Error, Result};
use crate::machine::user::User;

/// The bytes that are kept of the messages: the last ones.
const KEPT: usize = 4096;
/// The time in which the messages of a command that has ended arrive. What it left running may keep the pipe open.
const ARRIVAL: Duration = Duration::from_millis(200);

/// Runs a shell script in a folder, as `user` if one is named, and writes its data back to the device.
///
/// # Errors
/// Returns an error if the script's exit status is not 0.
pub fn prepare(script: &str, folder: &Path, user: Option<&User>) -> Result<()> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-ec", script]);
    run(&mut shell, script, folder, user, Stdio::null())?;
    settle(folder)
}

/// Runs a command that is shown as `shown` in a folder, as `user` if one is named.
///
/// # Errors
/// Returns an error if its exit status is not 0.
pub(super) fn run(
    command: &mut Command,
    shown: &str,
    folder: &Path,
    user: Option<&User>,
    input: Stdio,
) -> Result<()> {
    command.current_dir(folder);
    if let Some(user) = user {
        user.take_over(command);
    }
    command.stdin(input).stdout(Stdio::null());
    let program = command.get_program().to_owned();
    let mut child = command.stderr(Stdio::piped()).spawn().at(&program)?;
    let messages = child.stderr.take().map(last_of);
    let status = child.wait().at(&program)?;
    if !status.success() {
        let said = messages.map_or_else(Vec::new, |messages| latest(&messages));
        return Err(Error::Prepare {
            script: shown.into(),
            status: status.to_string(),
            said: String::from_utf8_lossy(&said).trim().replace('\n', "; "),
        });
    }
    Ok(())
}

/// Reads messages to their end in a thread of its own, and sends the last bytes of what has come so far.
fn last_of(mut pipe: ChildStderr) -> Receiver<Vec<u8>> {
    let (tell, messages) = channel();
    thread::spawn(move || {
        let mut last = Vec::new();
        let mut more = [0; KEPT];
        while let Ok(bytes @ 1..) = pipe.read(&mut more) {
            last.extend_from_slice(&more[..bytes]);
            last.drain(..last.len().saturating_sub(KEPT));
            // Nobody listens any more if the command has ended.
            let _ = tell.send(last.clone());
        }
    });
    messages
}

/// Returns what came last, as soon as the pipe ends or nothing more comes.
fn latest(messages: &Receiver<Vec<u8>>) -> Vec<u8> {
    let mut last = Vec::new();
    while let Ok(newer) = messages.recv_timeout(ARRIVAL) {
        last = newer;
    }
    last
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn refusal(script: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        prepare(script, dir.path(), None).unwrap_err().to_string()
    }

    #[test]
    fn the_last_messages_are_told() {
        let said = refusal("echo out; echo one >&2; echo two >&2; exit 3");
        assert!(
            said.ends_with("ended with exit status: 3: one; two"),
            "{said}"
        );
        let said = refusal("head -c 50M /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1");
        assert!(
            said.len() < 2 * KEPT && said.ends_with("xxend"),
            "{}",
            said.len()
        );
    }

    /// The sleeper holds both of the pipes that the script had.
    #[test]
    fn what_is_left_running_is_not_waited_for() {
        let begin = Instant::now();
        let said = refusal("sleep 1000 & echo $! >&2; exit 1");
        let sleeper = said.rsplit(' ').next().unwrap();
        let ended = Command::new("kill").arg(sleeper).status().unwrap();
        assert!(ended.success(), "{said}");
        assert!(begin.elapsed() < Duration::from_secs(1000));
    }
}
