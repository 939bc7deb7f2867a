// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the processes that have a file open.

use std::fmt;
use std::fs;
use std::path::Path;

/// A process other than this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opener {
    pid: u32,
    comm: String,
}

impl Opener {
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl fmt::Display for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {} ({})", self.pid, self.comm)
    }
}

/// Returns the processes that have a file open for which `is_it` is true, as far as they can be examined.
pub(crate) fn of(is_it: impl Fn(&Path) -> bool) -> Vec<Opener> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|&pid: &u32| pid != std::process::id() && has_open(pid, &is_it))
        .map(|pid| Opener {
            pid,
            comm: comm(pid),
        })
        .collect()
}

/// Returns these processes as one text; None if there are none.
pub(crate) fn named(is_it: impl Fn(&Path) -> bool) -> Option<String> {
    let openers: Vec<_> = of(is_it).iter().map(Opener::to_string).collect();
    (!openers.is_empty()).then(|| openers.join(", "))
}

fn has_open(pid: u32, is_it: impl Fn(&Path) -> bool) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    let mut files = files.into_iter().flatten().flatten();
    files.any(|file| fs::read_link(file.path()).is_ok_and(|target| is_it(&target)))
}

fn comm(pid: u32) -> String {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn who_has_a_file_open_is_found_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let file = fs::File::create(&path).unwrap();
        assert_eq!(named(|open| open == path), None, "not this process");
        let mut cat = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(file)
            .spawn()
            .unwrap();
        let expected = format!("pid {} (cat)", cat.id());
        assert_eq!(named(|open| open == path), Some(expected));
        cat.kill().unwrap();
        cat.wait().unwrap();
        assert_eq!(named(|open| open == path), None);
    }
}
