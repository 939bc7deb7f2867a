// SPDX-License-Identifier: MIT OR Apache-2.0
//! /proc/kallsyms, opened so that it shows the addresses of the kernel's symbols.
//!
//! The kernel decides when the file is opened whether it will show them. With `kernel.kptr_restrict` = 2, which Android's init sets,
//! it shows them to nobody. So the setting is 1 while the file is opened, and the file is kept for later. A [`Guard`] puts the
//! setting back, also if the recorder is killed. If the guard is killed too, the next recorder does it: the value to put back is in
//! the file of the lock.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use crate::error::{At, Result, read_line};
use crate::machine::guard::{Guard, Undo};
use crate::machine::lock::Lock;

const KALLSYMS: &str = "/proc/kallsyms";
const SETTING: &str = "/proc/sys/kernel/kptr_restrict";

/// The value with which root, if it has CAP_SYSLOG, sees addresses.
const LOWERED: &str = "1";

/// Returns the text of the file; empty if it cannot be read.
pub(super) fn read() -> String {
    let mut text = String::new();
    with_file(|file| file.read_to_string(&mut text)).unwrap_or_default();
    text
}

/// Returns true if the kernel hides all addresses: every symbol is 0.
pub(crate) fn are_hidden() -> bool {
    let is_hidden = |file: &mut &File| {
        let mut lines = BufReader::new(file).lines();
        let shows = |line: std::io::Result<String>| {
            line.is_ok_and(|line| !line.starts_with("0000000000000000 "))
        };
        Ok(!lines.any(shows))
    };
    with_file(is_hidden).unwrap_or(true)
}

/// Returns the value of `kernel.kptr_restrict`.
pub(crate) fn restriction() -> String {
    read_line(SETTING).unwrap_or_else(|_| "unknown".into())
}

/// Reads from the beginning of the file, which is opened once.
fn with_file<T>(read: impl FnOnce(&mut &File) -> std::io::Result<T>) -> Option<T> {
    static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let file = FILE.get_or_init(|| open().ok().map(Mutex::new)).as_ref()?;
    let file = file.lock().ok()?;
    let mut file = &*file;
    file.rewind().ok()?;
    read(&mut file).ok()
}

fn open() -> Result<File> {
    // Without root nothing can be lowered, and nothing has to be.
    let lowered = Setting::of_kernel().and_then(|setting| setting.lower());
    if let Err(why) = &lowered {
        log::debug!("kernel.kptr_restrict stays: {why}");
    }
    File::open(KALLSYMS).at(KALLSYMS)
}

/// Puts the setting back if killed recorders left it lowered. Returns what a reader of the recording should know.
pub(super) fn put_back() -> Option<String> {
    let left = Setting::of_kernel().and_then(|setting| setting.put_back());
    let value = left.ok().flatten()?;
    Some(format!(
        "kernel.kptr_restrict, which a killed recorder had left at {LOWERED}, was set to {value} again before this recording"
    ))
}

/// `kernel.kptr_restrict`, and the file of its lock.
struct Setting {
    path: PathBuf,
    lock: PathBuf,
}

impl Setting {
    fn of_kernel() -> Result<Setting> {
        Ok(Setting {
            path: SETTING.into(),
            lock: Lock::file_of("kptr_restrict")?,
        })
    }

    /// Lowers the setting, unless it is low, until the guard is dropped. The lock is held for as long, because another recorder
    /// would take the lowered value for the one to put back.
    ///
    /// # Errors
    /// Returns an error if the setting cannot be changed.
    fn lower(&self) -> Result<Option<Guard>> {
        let (lock, _) = self.locked()?;
        let value = read_line(&self.path)?;
        if value.parse().unwrap_or(0) < 2 {
            return Ok(None);
        }
        // A guard would try for long to put back what nobody here may set.
        write(&self.path, &value)?;
        let undo = vec![
            Undo::Write(self.path.clone(), value.clone()),
            Undo::Write(self.lock.clone(), String::new()),
        ];
        let guard = Guard::arm(undo, Some(lock))?;
        fs::write(&self.lock, &value).at(&self.lock)?;
        write(&self.path, LOWERED)?;
        Ok(Some(guard))
    }

    /// Puts back what is left. Returns the value.
    fn put_back(&self) -> Result<Option<String>> {
        Ok(self.locked()?.1)
    }

    /// Takes the lock, and puts back what is left.
    fn locked(&self) -> Result<(Lock, Option<String>)> {
        let (lock, left) = Lock::waited_for(&self.lock)?;
        if left.is_empty() {
            return Ok((lock, None));
        }
        let is_lowered = read_line(&self.path)? == LOWERED;
        if is_lowered {
            write(&self.path, &left)?;
        }
        fs::write(&self.lock, "").at(&self.lock)?;
        Ok((lock, is_lowered.then_some(left)))
    }
}

/// Writes to a file that must be there.
fn write(path: &Path, value: &str) -> Result<()> {
    use std::io::Write;
    let mut file = File::options()
        .write(true)
        .truncate(true)
        .open(path)
        .at(path)?;
    file.write_all(value.as_bytes()).at(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        setting: Setting,
        _folder: tempfile::TempDir,
    }

    fn fixture(value: &str) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kptr_restrict");
        fs::write(&path, value).unwrap();
        let lock = folder.path().join("lock");
        Fixture {
            setting: Setting { path, lock },
            _folder: folder,
        }
    }

    impl Fixture {
        fn value(&self) -> String {
            read_line(&self.setting.path).unwrap()
        }

        fn left(&self) -> String {
            read_line(&self.setting.lock).unwrap()
        }
    }

    #[test]
    fn a_high_setting_is_low_while_it_is_needed() {
        for (high, lowered) in [("2\n", "1"), ("1\n", "1"), ("0\n", "0")] {
            let fixture = fixture(high);
            let guard = fixture.setting.lower().unwrap();
            assert_eq!(guard.is_some(), high == "2\n");
            assert_eq!(fixture.value(), lowered);
            drop(guard);
            assert_eq!(fixture.value(), high.trim());
            assert_eq!(fixture.left(), "");
        }
    }

    /// A recorder that waits for another's guard finds the setting as it was.
    #[test]
    fn two_recorders_put_back_the_same() {
        let fixture = fixture("2\n");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let guard = fixture.setting.lower().unwrap();
                    assert!(guard.is_some());
                    assert_eq!(fixture.value(), "1");
                });
            }
        });
        assert_eq!(fixture.value(), "2");
    }

    #[test]
    fn what_was_left_is_put_back_by_the_next_one() {
        let fixture = fixture("1\n");
        fs::write(&fixture.setting.lock, "2").unwrap();
        assert_eq!(fixture.setting.put_back().unwrap().as_deref(), Some("2"));
        assert_eq!(
            (fixture.value(), fixture.left()),
            ("2".into(), String::new())
        );
        assert_eq!(fixture.setting.put_back().unwrap(), None);
        // Somebody has set another value since.
        fs::write(&fixture.setting.path, "0\n").unwrap();
        fs::write(&fixture.setting.lock, "2").unwrap();
        assert_eq!(fixture.setting.put_back().unwrap(), None);
        assert_eq!(fixture.value(), "0");
    }

    /// This one is not to be set, not even by root.
    #[test]
    fn nothing_is_put_back_that_could_not_be_lowered() {
        let path = PathBuf::from("/proc/sys/kernel/ngroups_max");
        let Fixture { setting, _folder } = fixture("");
        let setting = Setting { path, ..setting };
        let begun = std::time::Instant::now();
        assert!(setting.lower().is_err());
        assert!(begun.elapsed() < crate::machine::guard::PATIENCE);
        assert_eq!(setting.put_back().unwrap(), None);
    }

    #[test]
    fn a_setting_that_is_not_there_is_an_error() {
        let fixture = fixture("2\n");
        fs::remove_file(&fixture.setting.path).unwrap();
        assert!(fixture.setting.lower().is_err());
        assert!(!fixture.setting.path.exists());
    }

    #[test]
    fn the_file_can_be_read_again() {
        let first = read();
        assert!(first.lines().count() > 1000);
        assert_eq!(read().lines().count(), first.lines().count());
    }
}
