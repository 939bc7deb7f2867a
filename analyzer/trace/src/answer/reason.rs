// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the filesystem wrote what it writes for itself: what was done to files, in everyday words.

use std::cmp::Reverse;

use super::words::is_part;
use crate::tally::{Tally, sum};

/// A reason is given if it is that of at least this share of the bytes, per cent, and without `mostly` from the second on.
const MOST_OF_IT: u64 = 50;
const NEARLY_ALL: u64 = 95;
/// The most deeds of a reason.
const MOST_DEEDS: usize = 2;

/// The files that something was done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Database,
    RollbackJournal,
    Wal,
    Files,
    Directories,
}

/// Bytes by what was done to which files.
#[derive(Debug, Default)]
pub struct Deeds(Vec<((Whose, &'static str), u64)>);

impl Deeds {
    /// Adds bytes that an operation on a file of this role caused. Bytes of an unknown cause have no deed.
    pub fn add(&mut self, role: Option<&str>, operation: Option<&str>, bytes: u64) {
        let Some(deed) = operation.and_then(|operation| deed(role, operation)) else {
            return;
        };
        match self.0.iter_mut().find(|(known, _)| *known == deed) {
            Some((_, sum)) => sum.tally(bytes),
            None => self.0.push((deed, bytes)),
        }
    }

    /// Returns `mostly because the WAL grew`; None if no one or two deeds on the same files caused most of `all` bytes.
    pub fn words(&self, all: u64) -> Option<String> {
        let of = |whose: Whose| self.0.iter().filter(move |((of, _), _)| *of == whose);
        let whose = self.0.iter().map(|((whose, _), _)| *whose);
        let whose = whose.max_by_key(|whose| sum(of(*whose).map(|(_, bytes)| *bytes)))?;
        let mut deeds: Vec<(&str, u64)> =
            of(whose).map(|((_, act), bytes)| (*act, *bytes)).collect();
        deeds.sort_by_key(|(act, bytes)| (Reverse(*bytes), *act));
        // The second deed is named only where the first is not most of it.
        let named = match deeds.first() {
            Some((_, bytes)) if is_part(*bytes, all, MOST_OF_IT) => 1,
            _ => MOST_DEEDS,
        };
        deeds.truncate(named);
        let caused = sum(deeds.iter().map(|(_, bytes)| *bytes));
        let mostly = match caused {
            _ if is_part(caused, all, NEARLY_ALL) => "",
            _ if is_part(caused, all, MOST_OF_IT) => "mostly ",
            _ => return None,
        };
        let acts: Vec<&str> = deeds.iter().map(|(act, _)| *act).collect();
        Some(format!("{mostly}because {}", whose.clause(&acts)))
    }
}

/// Returns what was done to which files; None if the file is unknown.
fn deed(role: Option<&str>, operation: &str) -> Option<(Whose, &'static str)> {
    let whose = match (role, operation) {
        (Some("db"), _) => Whose::Database,
        (Some("rollback_journal"), _) => Whose::RollbackJournal,
        (Some("wal"), _) => Whose::Wal,
        (Some("unknown"), _) => return None,
        (Some(_), _) => Whose::Files,
        (None, "mkdir" | "rmdir") => Whose::Directories,
        (None, _) => return None,
    };
    let act = match operation {
        "create" | "mkdir" => "created",
        "unlink" | "rmdir" => "deleted",
        "truncate" => "truncated",
        "rename" => "renamed",
        "allocate" => "grew",
        "write" => "written",
        "time" => "times",
        "xattr" => "attributes",
        _ => return None,
    };
    Some((whose, act))
}

impl Whose {
    fn name(self) -> &'static str {
        match self {
            Whose::Database => "the database",
            Whose::RollbackJournal => "the rollback journal",
            Whose::Wal => "the WAL",
            Whose::Files => "files",
            Whose::Directories => "directories",
        }
    }

    fn is_many(self) -> bool {
        matches!(self, Whose::Files | Whose::Directories)
    }

    /// Returns `the WAL grew and was truncated`, or `the times of files changed`.
    fn clause(self, acts: &[&str]) -> String {
        let property = |act: &str| matches!(act, "times" | "attributes");
        let were = if self.is_many() { "were" } else { "was" };
        let its = if self.is_many() { "their" } else { "its" };
        let name = self.name();
        // A property comes last, because its verb has another subject.
        let (properties, deeds): (Vec<&str>, Vec<&str>) =
            acts.iter().partition(|act| property(act));
        let verbs: Vec<String> = deeds
            .iter()
            .map(|act| match *act {
                "grew" => "grew".to_owned(),
                act => format!("{were} {act}"),
            })
            .collect();
        let properties: Vec<String> = properties
            .iter()
            .map(|what| match deeds.is_empty() {
                true => format!("the {what} of {name} changed"),
                false => format!("{its} {what} changed"),
            })
            .collect();
        let verbs = (!verbs.is_empty()).then(|| format!("{name} {}", verbs.join(" and ")));
        let all: Vec<String> = verbs.into_iter().chain(properties).collect();
        all.join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(deeds: &[(&str, &str, u64)], all: u64) -> Option<String> {
        let mut sums = Deeds::default();
        for (role, operation, bytes) in deeds {
            let known = |word: &'_ str| Some(word.to_owned()).filter(|word| !word.is_empty());
            sums.add(known(role).as_deref(), known(operation).as_deref(), *bytes);
        }
        sums.words(all)
    }

    #[test]
    fn a_reason_is_that_of_most_bytes() {
        let deeds = [
            ("wal", "allocate", 55),
            ("wal", "time", 20),
            ("db", "write", 25),
        ];
        assert_eq!(said(&deeds, 100).unwrap(), "mostly because the WAL grew");
        // The growth alone is less than half of 111 bytes; with the times it is more.
        assert_eq!(
            said(&deeds, 111).unwrap(),
            "mostly because the WAL grew and its times changed"
        );
        assert_eq!(
            said(&[("wal", "allocate", 95)], 100).unwrap(),
            "because the WAL grew"
        );
        assert_eq!(said(&[("wal", "allocate", 49)], 100), None);
    }

    #[test]
    fn two_deeds_on_the_same_files_are_one_reason() {
        let saves = [
            ("other", "rename", 45),
            ("other", "unlink", 44),
            ("other", "write", 11),
        ];
        assert_eq!(
            said(&saves, 100).unwrap(),
            "mostly because files were renamed and were deleted"
        );
        assert_eq!(
            said(&[("wal", "time", 40), ("wal", "allocate", 30)], 100).unwrap(),
            "mostly because the WAL grew and its times changed"
        );
    }

    #[test]
    fn a_property_alone_has_its_owner() {
        assert_eq!(
            said(&[("other", "time", 100)], 100).unwrap(),
            "because the times of files changed"
        );
    }

    #[test]
    fn unknown_files_and_operations_are_no_reason() {
        let rows = [
            ("", "create", 40),
            ("unknown", "create", 40),
            ("other", "", 20),
        ];
        assert_eq!(said(&rows, 100), None);
        assert_eq!(
            said(&[("", "mkdir", 100)], 100).unwrap(),
            "because directories were created"
        );
    }
}
