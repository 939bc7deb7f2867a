// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that keep their names in the tables.

use std::fmt;
use std::str::FromStr;

use glob::Pattern;

use crate::error::{Error, Result};

/// Patterns for the names of SQLite's temporary files, and of files that a phone keeps beside them.
pub const TEMPORARY: &[&str] = &[
    "*-journal",
    "*-wal",
    "*-shm",
    "*-mj*",
    "*.bak",
    "*.tmp",
    "etilqs_*",
];

/// `temp`, `all` or a glob on the last path component.
#[derive(Clone, Debug)]
pub struct NameFilter {
    spelling: String,
    globs: Option<Vec<Pattern>>,
}

impl Default for NameFilter {
    /// Keeps all names.
    fn default() -> Self {
        NameFilter {
            spelling: "all".into(),
            globs: None,
        }
    }
}

impl FromStr for NameFilter {
    type Err = Error;

    fn from_str(spelling: &str) -> Result<NameFilter> {
        let globs = match spelling {
            "all" => None,
            "temp" => Some(set(TEMPORARY)?),
            glob => Some(set(&[glob])?),
        };
        Ok(NameFilter {
            spelling: spelling.to_owned(),
            globs,
        })
    }
}

impl fmt::Display for NameFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelling)
    }
}

impl NameFilter {
    /// Returns the filter as the user wrote it.
    pub fn spelling(&self) -> &str {
        &self.spelling
    }

    /// Returns true if files of this name keep it. Bytes that are not UTF-8 match `?` and `*`.
    pub fn keeps(&self, name: &[u8]) -> bool {
        let name = String::from_utf8_lossy(name);
        self.globs
            .as_ref()
            .is_none_or(|globs| globs.iter().any(|g| g.matches(&name)))
    }
}

fn set(globs: &[&str]) -> Result<Vec<Pattern>> {
    let parse = |glob: &&str| {
        Pattern::new(glob).map_err(|source| Error::Files {
            glob: (*glob).to_owned(),
            source,
        })
    };
    globs.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_of_sqlite() {
        let temp = "temp".parse::<NameFilter>().unwrap();
        for name in [
            "a.db-journal",
            "a.db-wal",
            "a.db-shm",
            "a.db-mj01",
            "p.xml.bak",
            "x.tmp",
        ] {
            assert!(temp.keeps(name.as_bytes()), "{name}");
        }
        assert!(!temp.keeps(b"a.db"));
        assert!(NameFilter::default().keeps(b"a.db"));
        let glob = "*.db".parse::<NameFilter>().unwrap();
        assert!(glob.keeps(b"\xff.db") && !glob.keeps(b"a.txt"));
        assert!("[".parse::<NameFilter>().is_err());
    }
}
