// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting until nobody else uses ftrace's `blk` tracer, of which a machine has one.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The file that mostrace locks while it uses the tracer, or while nobody may use it.
const LOCK: &str = "/run/mostrace/blk-tracer";
const CURRENT_TRACER: &str = "/sys/kernel/tracing/current_tracer";
/// The longest time to wait for another recording, which is far longer than any of the tests.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Returns when the tracer is free.
///
/// # Errors
/// Returns an error that names the holder if the tracer is not free after some minutes.
pub fn wait_until_free() -> Result<(), String> {
    wait_for(
        || holder(Path::new(LOCK), Path::new(CURRENT_TRACER)),
        PATIENCE,
    )
}

fn wait_for(mut holder: impl FnMut() -> Option<String>, patience: Duration) -> Result<(), String> {
    let begun = Instant::now();
    while let Some(holder) = holder() {
        if begun.elapsed() > patience {
            return Err(holder);
        }
        thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// Returns the holder of the tracer, if there is one.
fn holder(lock: &Path, current_tracer: &Path) -> Option<String> {
    let is_locked = is_locked(lock);
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let said = text(lock).lines().next().unwrap_or_default().to_owned();
    match text(current_tracer).trim() {
        _ if is_locked && !said.is_empty() => Some(said),
        _ if is_locked => Some("another recording by mostrace".into()),
        // Before tracefs is mounted there is no tracer either.
        "" | "nop" => None,
        tracer => Some(format!("another program, by the tracer {tracer}")),
    }
}

/// Returns true if anybody has locked a file, according to the kernel's list. Trying the lock instead could get in the way of a
/// process that takes it just then.
fn is_locked(path: &Path) -> bool {
    let Ok(file) = path.metadata() else {
        return false;
    };
    // `1: FLOCK  ADVISORY  WRITE 4711 00:1a:815 0 EOF`
    let (major, minor) = (file.dev() >> 8 & 0xfff, file.dev() & 0xff);
    let inode = format!(" {major:02x}:{minor:02x}:{} ", file.ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut locks = locks.lines().filter(|line| line.contains("FLOCK"));
    locks.any(|line| line.contains(&inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_it_is_named() {
        let folder = std::env::temp_dir().join(format!("tracer-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (lock, tracer) = (folder.join("lock"), folder.join("tracer"));
        assert_eq!(holder(&lock, &tracer), None);
        std::fs::write(&lock, "mostrace (7) records /dev/x\n").unwrap();
        std::fs::write(&tracer, "nop\n").unwrap();
        assert_eq!(holder(&lock, &tracer), None);
        std::fs::write(&tracer, "function\n").unwrap();
        let other = "another program, by the tracer function".to_owned();
        assert_eq!(holder(&lock, &tracer), Some(other));
        let held = std::fs::File::open(&lock).unwrap();
        held.lock().unwrap();
        let named = "mostrace (7) records /dev/x".to_owned();
        assert_eq!(holder(&lock, &tracer), Some(named));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn patience_has_an_end() {
        let mut left = 2;
        let freed = || {
            left -= 1;
            (left > 0).then(String::new)
        };
        assert_eq!(wait_for(freed, PATIENCE), Ok(()));
        let never = || Some("somebody".to_owned());
        assert_eq!(wait_for(never, Duration::ZERO), Err("somebody".into()));
    }
}
