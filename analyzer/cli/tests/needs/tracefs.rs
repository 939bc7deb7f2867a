// SPDX-License-Identifier: MIT OR Apache-2.0
//! A buffer of ftrace of a test's own, whose times are those of recordings.

use std::fs;
use std::path::PathBuf;

pub struct Instance(pub PathBuf);

impl Instance {
    /// Makes the instance of this test.
    pub fn of(test: &str) -> Instance {
        let name = format!("{test}-{}", std::process::id());
        let instance = Instance(PathBuf::from("/sys/kernel/tracing/instances").join(name));
        fs::create_dir(&instance.0).unwrap();
        instance.put("trace_clock", "mono");
        instance
    }

    /// Writes to one of its files.
    pub fn put(&self, file: &str, value: &str) {
        let path = self.0.join(file);
        fs::write(&path, value).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Returns the events so far.
    pub fn text(&self) -> String {
        fs::read_to_string(self.0.join("trace")).unwrap()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
