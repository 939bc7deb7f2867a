// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers of ftrace of a test's own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Returns where tracefs is mounted. It is mounted if it is not yet; without root it may be missing all the same.
#[must_use]
pub fn folder() -> &'static Path {
    let folder = Path::new("/sys/kernel/tracing");
    if !folder.join("instances").exists() {
        let mut mount = Command::new("mount");
        // If this fails, whoever needs the folder says that it is missing.
        let _ = mount.args(["-t", "tracefs", "nodev"]).arg(folder).output();
    }
    folder
}

/// A buffer whose times are those of recordings. It is removed when it is dropped.
pub struct Instance(PathBuf);

impl Instance {
    /// Makes the instance of this test.
    ///
    /// # Panics
    /// Panics if the kernel refuses it.
    #[must_use]
    pub fn of(test: &str) -> Instance {
        let name = format!("{test}-{}", std::process::id());
        let instance = Instance(folder().join("instances").join(name));
        fs::create_dir(&instance.0).unwrap();
        instance.put("trace_clock", "mono");
        instance
    }

    /// Writes to one of its files.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn put(&self, file: &str, value: &str) {
        let path = self.0.join(file);
        fs::write(&path, value).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Returns its name in `instances`.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        self.0.file_name().unwrap_or_default()
    }

    /// Returns the events so far.
    ///
    /// # Panics
    /// Panics if they cannot be read.
    #[must_use]
    pub fn text(&self) -> String {
        fs::read_to_string(self.0.join("trace")).unwrap()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A program that another thread is starting has a file of it open until its exec.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
