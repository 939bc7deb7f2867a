// SPDX-License-Identifier: MIT OR Apache-2.0
//! Undoes what is left of a killed recorder whose guard was killed too: ftrace's settings, and instances of tracefs.
//!
//! Before a recorder changes anything, it stores what must be undone in its lock's file. The next holder of the lock first lets a
//! guard undo that, and so finds the settings as they were before both. Each instance has a lock of its own.

use std::fs;
use std::path::{Component, Path, PathBuf};

use mostrace_bundle::manifest::Device;

use crate::error::{Error, Result};
use crate::machine::guard::{Guard, Undo};
use crate::machine::lock::{self, Lock};
use crate::machine::mounts::{Mount, TRACEFS};

/// The settings that a recorder changes.
const SETTINGS: [&str; 4] = [
    "current_tracer",
    "tracing_on",
    "trace_clock",
    "buffer_size_kb",
];
/// The most bytes that are written to a setting.
const LONGEST: usize = 32;

/// Stores the writes among these steps in the lock's file. Returns the steps, with one more that removes them from the file.
///
/// # Errors
/// Returns an error if the lock's file cannot be written.
pub(crate) fn keep(mut undo: Vec<Undo>, lock: &Lock) -> Result<Vec<Undo>> {
    lock.keep(&to_line(&undo))?;
    undo.push(forget(lock));
    Ok(undo)
}

fn forget(lock: &Lock) -> Undo {
    let (path, holder) = lock.said();
    Undo::Forget(path.to_owned(), holder.to_owned())
}

/// Undoes the changes that an earlier holder of the lock has stored. Returns true if there were any.
///
/// # Errors
/// Returns an error if there is no tracefs, or no shell.
pub(crate) fn put_back(lock: &Lock) -> Result<bool> {
    let Some(line) = lock.kept() else {
        return Ok(false);
    };
    Mount::tracefs()?;
    let mut undo = from_line(&line);
    undo.push(forget(lock));
    drop(Guard::arm(undo, Some(lock.clone()))?);
    Ok(true)
}

/// Finds what is left and undoes it. Returns what a reader of the recording should know.
pub(crate) fn sweep(device: &Device) -> Vec<String> {
    let mut notes = Vec::new();
    if lock::is_blk_tracer_left() {
        let undone = Lock::of_blk_tracer(device).and_then(|lock| put_back(&lock));
        match undone {
            Ok(true) => notes.push(
                "a recorder that was killed had left ftrace's settings changed: they were put back before this recording"
                    .into(),
            ),
            // Another recorder came first.
            Ok(false) | Err(Error::Busy { .. }) => {}
            Err(e) => notes.push(format!(
                "a recorder that was killed has left ftrace's settings changed, and they cannot be put back: {e}"
            )),
        }
    }
    let gone = remove_instances(&Path::new(TRACEFS).join("instances"));
    if gone > 0 {
        notes.push(format!(
            "instances of tracefs that killed recorders had left were removed before this recording: {gone}"
        ));
    }
    notes
}

/// Removes the instances that nobody uses. Returns their number.
fn remove_instances(folder: &Path) -> usize {
    let instances = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = instances.filter(|i| i.file_name().to_str().is_some_and(is_instance));
    ours.filter(|instance| {
        let lock = Lock::of_folder(&instance.path());
        // An instance of an older recorder is not locked, but its pipes are open, so it stays.
        matches!(lock, Ok(Some(_))) && fs::remove_dir(instance.path()).is_ok()
    })
    .count()
}

/// Returns true for a name of the form `mostrace-PID-purpose`.
fn is_instance(name: &str) -> bool {
    let rest = name.strip_prefix("mostrace-");
    let pid = rest.and_then(|rest| rest.split_once('-'));
    pid.is_some_and(|(pid, _)| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

fn to_line(undo: &[Undo]) -> String {
    let writes = undo.iter().filter_map(|step| match step {
        Undo::Write(path, text) => Some((path.to_string_lossy(), text)),
        _ => None,
    });
    serde_json::json!(writes.collect::<Vec<_>>()).to_string()
}

/// Parses the steps in the lock's file. Only root can write the file; even so, only writes to these settings are accepted. A line
/// that was cut short is ignored, because nothing had been changed by then.
fn from_line(line: &str) -> Vec<Undo> {
    let writes: Vec<(PathBuf, String)> = serde_json::from_str(line).unwrap_or_default();
    let known = writes
        .into_iter()
        .filter(|(path, text)| is_setting(path) && is_value(text));
    known.map(|(path, text)| Undo::Write(path, text)).collect()
}

/// Returns true for a setting of ftrace, or the switch of a disk's block tracer.
fn is_setting(path: &Path) -> bool {
    let plain = |c| matches!(c, Component::RootDir | Component::Normal(_));
    let is_ftraces = SETTINGS
        .iter()
        .any(|name| path == Path::new(TRACEFS).join(name));
    let is_switch = path.starts_with("/sys/devices") && path.ends_with("trace/enable");
    is_ftraces || is_switch && path.components().all(plain)
}

fn is_value(text: &str) -> bool {
    let is_of_one = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_of_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &str, text: &str) -> Undo {
        Undo::Write(path.into(), text.into())
    }

    #[test]
    fn what_is_kept_comes_back() {
        let steps = [
            write("/sys/devices/virtual/block/loop0/trace/enable", "0"),
            write("/sys/kernel/tracing/trace_clock", "x86-tsc"),
            write("/sys/kernel/tracing/buffer_size_kb", "1408"),
        ];
        assert_eq!(from_line(&to_line(&steps)), steps);
        assert_eq!(from_line(r#"[["/sys/kernel/tracing/tra"#), []);
    }

    #[test]
    fn nothing_else_is_written() {
        let bad = [
            write("/etc/passwd", "0"),
            write("/sys/kernel/tracing/../../../etc/passwd", "0"),
            write("/sys/devices/../../etc/trace/enable", "0"),
            write("/sys/kernel/tracing/set_event", "0"),
            write("/sys/kernel/tracing/current_tracer", ""),
            write("/sys/kernel/tracing/current_tracer", "nop\nblk"),
            write("/sys/kernel/tracing/buffer_size_kb", &"9".repeat(33)),
        ];
        assert_eq!(from_line(&to_line(&bad)), []);
    }

    #[test]
    fn only_instances_of_recorders_that_are_gone_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (left, held) = (make("mostrace-17-events"), make("mostrace-1-entries"));
        for name in [
            "mostrace-x-events",
            "mostrace-",
            "mostrace-17",
            "other-17-events",
        ] {
            make(name);
        }
        let _lock = Lock::of_own_folder(&held).unwrap();
        assert_eq!(remove_instances(dir.path()), 1);
        assert!(!left.exists() && held.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
    }
}
