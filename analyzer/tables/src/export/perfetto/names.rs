// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the name that a file had when a call was made on it.

use std::collections::HashMap;

use super::calls::FileKey;
use mostrace_trace::attribute::File;
use mostrace_trace::text::escape;

/// A name that a file had for a while, until the last request that shows it.
struct Name {
    until_ns: u64,
    path: String,
}

/// The names of all files, by inode and generation.
#[derive(Default)]
pub struct Names {
    /// Names that requests show, in time order.
    seen: HashMap<FileKey, Vec<Name>, foldhash::fast::RandomState>,
    /// Names of files without requests.
    others: HashMap<FileKey, String, foldhash::fast::RandomState>,
}

impl Names {
    /// Takes all files that the trace names.
    pub fn new(files: &[File]) -> Names {
        let other = |file: &File| {
            let key = FileKey {
                inode: file.inode?,
                generation: file.generation,
            };
            Some((key, escape(file.path.as_deref()?)))
        };
        Names {
            others: files.iter().filter_map(other).collect(),
            ..Names::default()
        }
    }

    /// Notes the name of a request's file; requests must come in time order.
    pub fn see(&mut self, file: FileKey, time_ns: u64, path: &str) {
        let names = self.seen.entry(file).or_default();
        match names.last_mut().filter(|last| last.path == path) {
            Some(last) => last.until_ns = time_ns,
            None => names.push(Name {
                until_ns: time_ns,
                path: path.to_owned(),
            }),
        }
    }

    /// Returns the file's name in the first request at or after `time_ns`, or else in the last one before it; if that
    /// generation has no name, the name of the inode without a generation.
    pub fn at(&self, file: FileKey, time_ns: u64) -> Option<&str> {
        let of_inode = FileKey {
            generation: None,
            ..file
        };
        let keys = [file, of_inode];
        let seen = keys.iter().find_map(|key| self.seen_at(key, time_ns));
        let other = || keys.iter().find_map(|key| self.others.get(key));
        seen.or_else(|| other().map(String::as_str))
    }

    fn seen_at(&self, file: &FileKey, time_ns: u64) -> Option<&str> {
        let names = self.seen.get(file)?;
        let next = names.partition_point(|name| name.until_ns < time_ns);
        let name = names.get(next).or(names.last())?;
        Some(&name.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_files_of_that_time() {
        let file = |generation| FileKey {
            inode: 12,
            generation,
        };
        let mut names = Names::default();
        names.see(file(Some(1)), 100, "/a.db-journal");
        names.see(file(Some(2)), 200, "/b.db-journal");
        names.see(file(Some(3)), 300, "/new");
        names.see(file(Some(3)), 400, "/new");
        names.see(file(Some(3)), 500, "/old");
        names.see(file(None), 600, "/of some time");
        for (generation, time_ns, path) in [
            (1, 90, "/a.db-journal"),
            (1, 250, "/a.db-journal"),
            (2, 90, "/b.db-journal"),
            (3, 350, "/new"),
            (3, 401, "/old"),
            (3, 900, "/old"),
            (4, 100, "/of some time"),
        ] {
            assert_eq!(names.at(file(Some(generation)), time_ns), Some(path));
        }
    }
}
