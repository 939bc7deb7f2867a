// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts a machine's tracing settings back, even if the recorder is killed.
//!
//! A shell waits on a pipe from the recorder. The pipe closes when the recorder
//! closes it, or ends in whatever way, SIGKILL included; then the shell undoes.
//! There is no second way to undo, so that the one there is, is used every time.
//! A write is tried again for ten minutes: ftrace refuses a change of tracer as long as the ending recorder still has its
//! pipes open, and one that was killed while it waits for a busy disk ends only when that has answered. The recorder itself
//! waits for a moment only.
//!
//! A process to be interrupted is started in the shell's process group, and the group is interrupted: the number of a
//! process that has ended may be another's by then, that of a group with a member cannot.
//! The shell's standard output is the lock of what it undoes: nobody else may have that before all is undone.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::{At, Result};
use crate::lock::Lock;
use crate::tool;

const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r _
while [ $# -gt 0 ]; do
    case $1 in
    write)
        tries=0
        until printf '%s\n' "$3" >"$2" || [ $((tries += 1)) -gt 6000 ]; do sleep 0.1; done
        shift 3 ;;
    remove)
        tries=0
        until rmdir "$2" || [ $((tries += 1)) -gt 6000 ]; do sleep 0.1; done
        shift 2 ;;
    interrupt) kill -INT 0; shift ;;
    esac
done 2>/dev/null
"#;

/// How long the recorder waits until all is undone.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// One thing to undo.
#[derive(Clone, Debug)]
pub enum Undo {
    /// Write a text to a file.
    Write(PathBuf, String),
    /// Remove a folder, as an instance of tracefs is removed.
    RemoveFolder(PathBuf),
    /// Send SIGINT to what was started by [`Guard::adopt`].
    Interrupt,
}

/// Undoes when dropped.
#[derive(Debug)]
pub struct Guard {
    shell: Child,
}

impl Guard {
    /// Arms the guard. The undo steps are carried out in order, under `lock`.
    ///
    /// # Errors
    /// No shell can be started.
    pub fn arm(undo: &[Undo], lock: Option<&Lock>) -> Result<Guard> {
        let mut shell = tool::command("sh")?;
        shell.arg("-c").arg(SCRIPT).arg("mostrace-guard");
        for step in undo {
            match step {
                Undo::Write(path, text) => {
                    shell.args([OsString::from("write"), path.into(), text.into()])
                }
                Undo::RemoveFolder(path) => shell.args([OsString::from("remove"), path.into()]),
                Undo::Interrupt => shell.arg("interrupt"),
            };
        }
        let stdout = lock.map_or(Ok(Stdio::null()), Lock::for_child)?;
        // A process group of its own: Ctrl-C must reach the recorder alone.
        let shell = shell
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::null())
            .spawn()
            .at("sh")?;
        Ok(Guard { shell })
    }

    /// Has a program start in the guard's process group.
    pub fn adopt<'c>(&self, program: &'c mut Command) -> &'c mut Command {
        // A pid fits: pid_t is signed.
        program.process_group(self.shell.id().cast_signed())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let since = Instant::now();
        // A shell that cannot be waited for has undone, or never will.
        while let Ok(None) = self.shell.try_wait() {
            if since.elapsed() > PATIENCE {
                log::warn!(
                    "what was set for tracing cannot be put back yet; process {} goes on trying",
                    self.shell.id()
                );
                return;
            }
            sleep(LOOK_AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn undoes_in_order_when_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a b'c");
        std::fs::write(&file, "on").unwrap();
        let steps = [
            Undo::Write(file.clone(), "1".into()),
            Undo::Write(file.clone(), "$(id) off".into()),
        ];
        let guard = Guard::arm(&steps, None).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "on");
        drop(guard);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "$(id) off\n");
    }

    #[test]
    fn a_folder_goes_once_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, other) = (dir.path().join("instance"), dir.path().join("f"));
        std::fs::create_dir(&folder).unwrap();
        let steps = [
            Undo::RemoveFolder(folder.clone()),
            Undo::Write(other.clone(), "done".into()),
        ];
        drop(Guard::arm(&steps, None).unwrap());
        assert!(!folder.exists() && other.exists());
    }

    /// As the tracer's is for as long as a killed recorder has not ended. The recorder does not wait for it.
    #[test]
    fn what_is_refused_for_long_is_tried_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("refused");
        let file = folder.join("f");
        let guard = Guard::arm(&[Undo::Write(file.clone(), "off".into())], None).unwrap();
        let begun = Instant::now();
        drop(guard);
        let waited = begun.elapsed();
        assert!(waited >= PATIENCE && waited < 3 * PATIENCE, "{waited:?}");
        sleep(Duration::from_secs(1));
        std::fs::create_dir(folder).unwrap();
        test_support::wait::until("it is undone", || {
            std::fs::read_to_string(&file).is_ok_and(|text| text == "off\n")
        });
    }

    /// One that has ended, and was waited for, is no longer in the group: its number is not used.
    #[test]
    fn interrupts_what_it_adopted_and_nothing_else() {
        let guard = Guard::arm(&[Undo::Interrupt], None).unwrap();
        let sleep = || {
            // A job in the background is started with the signal ignored.
            let mut sleep = Command::new("env");
            sleep.args(["--default-signal=INT", "sleep", "600"]);
            sleep
        };
        let mut adopted = guard.adopt(&mut sleep()).spawn().unwrap();
        let mut ended = guard.adopt(&mut Command::new("true")).spawn().unwrap();
        assert!(ended.wait().unwrap().success());
        let mut other = sleep().spawn().unwrap();
        drop(guard);
        assert_eq!(adopted.wait().unwrap().signal(), Some(2));
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
