// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts a machine's tracing settings back, even if the recorder is killed.
//!
//! A shell waits on a pipe from the recorder. The pipe closes when the recorder
//! closes it, or ends in whatever way, SIGKILL included; then the shell undoes.
//! There is no second way to undo, so that the one there is, is used every time.
//! A write is tried again for a while: ftrace refuses a change of tracer as long as
//! the ending recorder still has its pipes open.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::error::{At, Result};
use crate::tool;

const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r _
while [ $# -gt 0 ]; do
    case $1 in
    write)
        tries=0
        until printf '%s\n' "$3" >"$2" || [ $((tries += 1)) -gt 50 ]; do sleep 0.1; done
        shift 3 ;;
    interrupt) kill -INT "$2"; shift 2 ;;
    esac
done 2>/dev/null
"#;

/// One thing to undo.
#[derive(Clone, Debug)]
pub enum Undo {
    /// Write a text to a file.
    Write(PathBuf, String),
    /// Send SIGINT to a process.
    Interrupt(u32),
}

/// Undoes when dropped.
#[derive(Debug)]
pub struct Guard {
    shell: Child,
}

impl Guard {
    /// Arms the guard. The undo steps are carried out in order.
    ///
    /// # Errors
    /// No shell can be started.
    pub fn arm(undo: &[Undo]) -> Result<Guard> {
        let mut shell = tool::command("sh")?;
        shell.arg("-c").arg(SCRIPT).arg("mostrace-guard");
        for step in undo {
            match step {
                Undo::Write(path, text) => {
                    shell.args([OsString::from("write"), path.into(), text.into()])
                }
                Undo::Interrupt(pid) => shell.args(["interrupt", &pid.to_string()]),
            };
        }
        // A process group of its own: Ctrl-C must reach the recorder alone.
        let shell = shell
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .at("sh")?;
        Ok(Guard { shell })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // A shell that cannot be waited for has undone, or never will.
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undoes_in_order_when_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a b'c");
        std::fs::write(&file, "on").unwrap();
        let guard = Guard::arm(&[
            Undo::Write(file.clone(), "1".into()),
            Undo::Write(file.clone(), "$(id) off".into()),
        ])
        .unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "on");
        drop(guard);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "$(id) off\n");
    }
}
