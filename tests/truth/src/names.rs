// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of files over time. The writers log each change: before a name is added and after one was removed, so that
//! both count while it changes.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;

use crate::stamp::now_ns;

/// An inode number and generation, unique over the filesystem's life.
pub type Inode = (u64, u32);

/// The log to which writers append.
pub struct Writer {
    out: File,
    /// The folder that the paths are in, as `/…`, or an empty string.
    folder: String,
}

impl Writer {
    pub fn open(path: &Path, folder: &str) -> io::Result<Writer> {
        let out = OpenOptions::new().append(true).create(true).open(path)?;
        let folder = folder.to_owned();
        Ok(Writer { out, folder })
    }

    /// Logs that the file has this name from now on.
    pub fn gains(&self, inode: Inode, path: &str) -> io::Result<()> {
        self.put(inode, '+', path)
    }

    /// Logs that the file no longer has this name.
    pub fn loses(&self, inode: Inode, path: &str) -> io::Result<()> {
        self.put(inode, '-', path)
    }

    /// Appends a line with a single write, so that lines of several processes stay whole.
    fn put(&self, (ino, generation): Inode, sign: char, path: &str) -> io::Result<()> {
        let line = format!(
            "{} {ino} {generation} {sign} {}{path}\n",
            now_ns(),
            self.folder
        );
        (&self.out).write_all(line.as_bytes())
    }
}

struct Name {
    path: String,
    from_ns: u64,
    to_ns: Option<u64>,
}

/// All names of all files.
#[derive(Default)]
pub struct Names {
    files: HashMap<Inode, Vec<Name>>,
}

impl Names {
    pub fn read(path: &Path) -> anyhow::Result<Names> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut names = Names::default();
        for line in text.lines() {
            names.take(line).with_context(|| line.to_owned())?;
        }
        Ok(names)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut fields = line.splitn(5, ' ');
        let time_ns = fields.next()?.parse().ok()?;
        let inode = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (sign, path) = (fields.next()?, fields.next()?);
        let names = self.files.entry(inode).or_default();
        match sign {
            "+" => names.push(Name {
                path: path.to_owned(),
                from_ns: time_ns,
                to_ns: None,
            }),
            _ => {
                let name = names
                    .iter_mut()
                    .rfind(|n| n.path == path && n.to_ns.is_none())?;
                name.to_ns = Some(time_ns);
            }
        }
        Some(())
    }

    /// Returns true if the file had this name at some time between the two. If it had no name then, its last one
    /// counts.
    pub fn fits(&self, inode: Inode, path: &str, from_ns: u64, to_ns: u64) -> bool {
        let Some(names) = self.files.get(&inode) else {
            return false;
        };
        let then = |n: &&Name| n.from_ns <= to_ns && n.to_ns.is_none_or(|end| end >= from_ns);
        if names.iter().any(|n| then(&n)) {
            return names.iter().filter(then).any(|n| n.path == path);
        }
        let gone = names.iter().filter(|n| n.from_ns <= to_ns);
        gone.max_by_key(|n| n.to_ns).is_some_and(|n| n.path == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_while_it_is_there_and_the_last_one_afterwards() {
        let mut names = Names::default();
        for line in [
            "10 12 1 + /a.tmp",
            "20 12 1 + /a b",
            "25 12 1 - /a.tmp",
            "50 12 1 - /a b",
        ] {
            names.take(line).unwrap();
        }
        let fits = |path, from, to| names.fits((12, 1), path, from, to);
        assert!(fits("/a.tmp", 11, 12) && !fits("/a b", 11, 12));
        assert!(fits("/a.tmp", 22, 30) && fits("/a b", 22, 30));
        assert!(!fits("/a.tmp", 30, 40) && fits("/a b", 30, 40));
        assert!(!fits("/a.tmp", 60, 70) && fits("/a b", 60, 70));
        assert!(!names.fits((12, 2), "/a b", 30, 40));
    }
}
