// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restores what a recorder changes on the machine, even if the recorder is killed.
//!
//! A shell waits on a pipe from the recorder. The pipe closes when the recorder closes it or ends in any way, including SIGKILL;
//! then the shell undoes the changes. There is no other way to undo, so this one is used every time. If the shell itself was
//! killed, another one takes its place when the recorder ends. If both were killed, the next recorder undoes what they left
//! (`leftovers`). Steps are retried for ten minutes: an instance cannot be removed as long as the ending recorder still has its pipes
//! open, and a killed recorder that waits for a busy disk ends only when the disk has answered. The recorder itself waits only
//! briefly. What no longer exists is left alone.
//!
//! The recorder and the shell (as its standard output) hold the lock of what is undone, so that nobody else gets it before.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::error::{At, Result};
use crate::machine::lock::Lock;
use crate::machine::tool;

const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r _
again() {
    [ $((tries += 1)) -le 6000 ] && sleep 0.1
}
while [ $# -gt 0 ]; do
    tries=0
    case $1 in
    write)
        while [ -e "$2" ] && ! printf '%s\n' "$3" >"$2" && again; do :; done
        shift 3 ;;
    remove)
        while [ -e "$2" ] && ! rmdir "$2" && again; do :; done
        shift 2 ;;
    esac
done 2>/dev/null
"#;

/// The time that the recorder waits until everything is undone.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// The most shells that are started; whoever kills them all intends it.
const SHELLS: usize = 3;

/// One thing to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Write a text to a file.
    Write(PathBuf, String),
    /// Remove a folder, in the way in which an instance of tracefs is removed.
    RemoveFolder(PathBuf),
}

impl Undo {
    fn words(&self) -> Vec<OsString> {
        match self {
            Undo::Write(path, text) => vec!["write".into(), path.into(), text.into()],
            Undo::RemoveFolder(path) => vec!["remove".into(), path.into()],
        }
    }
}

/// The state of a shell.
enum Found {
    /// The shell has undone what can be undone.
    Ended,
    /// The shell is still trying.
    Late,
    /// It was killed by this signal.
    Killed(i32),
}

/// Undoes the changes when it is dropped.
#[derive(Debug)]
pub struct Guard {
    /// The shell; None once it has undone the changes.
    shell: Option<Child>,
    undo: Vec<Undo>,
    lock: Option<Lock>,
}

impl Guard {
    /// Arms the guard. The undo steps are carried out in order, under `lock`.
    ///
    /// # Errors
    /// Returns an error if no shell can be started.
    pub fn arm(undo: Vec<Undo>, lock: Option<Lock>) -> Result<Guard> {
        let shell = shell(&undo, lock.as_ref())?;
        Ok(Guard {
            shell: Some(shell),
            undo,
            lock,
        })
    }

    /// Undoes the changes. Returns what a reader of the recording should know, if there is something: that somebody killed the
    /// shell.
    pub fn end(mut self) -> Option<String> {
        self.undo()
    }

    fn undo(&mut self) -> Option<String> {
        let mut told = None;
        let mut shell = self.shell.take()?;
        for left in (0..SHELLS).rev() {
            drop(shell.stdin.take());
            match wait_for(&shell) {
                Found::Killed(signal) if left > 0 => {
                    told = Some(format!(
                        "the process that puts back what tracing has changed was killed (signal {signal}): \
                         another one was started to do it"
                    ));
                    // It has ended.
                    let _ = shell.wait();
                    match self::shell(&self.undo, self.lock.as_ref()) {
                        Ok(next) => shell = next,
                        Err(e) => {
                            return Some(format!("what tracing has changed is not put back: {e}"));
                        }
                    }
                }
                Found::Late => {
                    log::warn!(
                        "what was set for tracing cannot be put back yet; process {} goes on trying",
                        shell.id()
                    );
                    return told;
                }
                Found::Killed(_) => {
                    let why = "what tracing has changed is not put back: the processes that do so were killed";
                    told = Some(why.to_owned());
                    break;
                }
                Found::Ended => break,
            }
        }
        // The shell has ended.
        let _ = shell.wait();
        told
    }
}

/// Starts a shell that will undo the changes. It gets a process group of its own: Ctrl-C must reach only the recorder.
fn shell(undo: &[Undo], lock: Option<&Lock>) -> Result<Child> {
    let stdout = lock.map_or(Ok(Stdio::null()), Lock::for_child)?;
    tool::command("sh")?
        .arg("-c")
        .arg(SCRIPT)
        .arg("mostrace-guard")
        .args(undo.iter().flat_map(Undo::words))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
        .at("sh")
}

/// Waits briefly for the shell to end, but does not reap it.
fn wait_for(shell: &Child) -> Found {
    let since = Instant::now();
    while since.elapsed() <= PATIENCE {
        if let Some(found) = look_at(shell) {
            return found;
        }
        sleep(LOOK_AGAIN);
    }
    Found::Late
}

fn look_at(shell: &Child) -> Option<Found> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(shell)), options) {
        Ok(None) => None,
        Ok(Some(status)) => match status.terminating_signal() {
            Some(signal) => Some(Found::Killed(signal)),
            None => Some(Found::Ended),
        },
        // A shell that cannot be waited for has undone the changes, or never will.
        Err(_) => Some(Found::Ended),
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(told) = self.undo() {
            log::warn!("{told}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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
        let guard = Guard::arm(steps.to_vec(), None).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "on");
        drop(guard);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "$(id) off\n");
    }

    #[test]
    fn a_folder_goes_once_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, other) = (dir.path().join("instance"), dir.path().join("f"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&other, "on").unwrap();
        let steps = [
            Undo::RemoveFolder(folder.clone()),
            Undo::Write(other.clone(), "done".into()),
        ];
        drop(Guard::arm(steps.to_vec(), None).unwrap());
        assert!(!folder.exists());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "done\n");
    }

    /// tracefs refuses to remove an instance like this as long as a killed recorder has its pipes open. The recorder does not
    /// wait for that.
    #[test]
    fn what_is_refused_for_long_is_tried_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (file, kept) = (at("setting"), at("kept"));
        // A folder cannot be written to; a file takes its place later.
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("file"), "on").unwrap();
        std::fs::write(&kept, "steps").unwrap();
        symlink(at("folder"), &file).unwrap();
        let steps = vec![
            Undo::Write(file.clone(), "off".into()),
            Undo::Write(kept.clone(), "nobody".into()),
        ];
        let guard = Guard::arm(steps, None).unwrap();
        let begun = Instant::now();
        drop(guard);
        let waited = begun.elapsed();
        assert!(waited >= PATIENCE && waited < 3 * PATIENCE, "{waited:?}");
        sleep(Duration::from_secs(1));
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "steps");
        symlink(at("file"), at("other")).unwrap();
        std::fs::rename(at("other"), &file).unwrap();
        test_support::wait::until("it is undone", || {
            std::fs::read_to_string(&kept).is_ok_and(|text| text == "nobody\n")
        });
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "off\n");
    }

    /// The settings of a disk that was pulled out vanish like this.
    #[test]
    fn what_is_no_longer_there_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "on").unwrap();
        let steps = vec![
            Undo::Write(dir.path().join("gone/f"), "0".into()),
            Undo::RemoveFolder(dir.path().join("gone")),
            Undo::Write(file.clone(), "off".into()),
        ];
        assert_eq!(Guard::arm(steps, None).unwrap().end(), None);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "off\n");
    }

    #[test]
    fn of_a_shell_that_was_killed_another_one_takes_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "on").unwrap();
        let steps = vec![Undo::Write(file.clone(), "off".into())];
        let mut guard = Guard::arm(steps, None).unwrap();
        guard.shell.as_mut().unwrap().kill().unwrap();
        let told = guard.end().unwrap();
        assert!(told.contains("was killed (signal 9)"), "{told}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "off\n");
    }

    /// The undoing is refused until every shell has been killed.
    #[test]
    fn it_is_said_that_nothing_was_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("folder", &link).unwrap();
        let guard = Guard::arm(vec![Undo::Write(link.clone(), "off".into())], None).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let killer = std::thread::spawn(move || {
            while !ends.load(Relaxed) {
                let mut pkill = Command::new("pkill");
                pkill.args(["-KILL", "-f"]).arg(&link).status().unwrap();
            }
        });
        let told = guard.end();
        over.store(true, Relaxed);
        killer.join().unwrap();
        let told = told.unwrap();
        assert!(
            told.starts_with("what tracing has changed is not put back: "),
            "{told}"
        );
    }
}
