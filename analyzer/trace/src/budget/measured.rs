// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mostrace_bundle::Manifest;
use mostrace_bundle::manifest::Copied;

use crate::answer::bytes_of_layers;
use crate::charged::{Charged, Counted};
use crate::sums::{Groups, Label, layer};
use crate::tally::{Tally, sum};
use crate::transactions::{Count, Database, Transactions};

/// Bytes written, by name.
pub type Parts = BTreeMap<String, u64>;

/// The program and the filesystem: runs of different kinds cannot be compared. Unknown fields are None.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The command's program, without its directory.
    pub program: Option<String>,
    /// The filesystem's type, such as `ext4`.
    pub filesystem: Option<String>,
}

impl Setup {
    fn of(manifest: Option<&Manifest>) -> Setup {
        let program = manifest.and_then(|m| m.command.as_ref()?.argv.first());
        let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
        let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
        Setup {
            program: program.map(name),
            filesystem: filesystem.map(|filesystem| filesystem.kind.clone()),
        }
    }

    /// Returns the first known field in which the two differ, as this one's and the other's value.
    #[must_use]
    pub fn difference<'k>(&'k self, other: &'k Setup) -> Option<(&'k str, &'k str)> {
        let both = [
            (&self.program, &other.program),
            (&self.filesystem, &other.filesystem),
        ];
        let known = both
            .into_iter()
            .filter_map(|(one, other)| Some((one.as_deref()?, other.as_deref()?)));
        let mut different = known.filter(|(one, other)| one != other);
        different.next()
    }
}

/// The figures of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The bundle that it was read from; empty if there is none.
    pub path: PathBuf,
    /// The program and the filesystem.
    pub setup: Setup,
    /// The part of the bytes that counts.
    pub counted: Counted,
    /// Bytes of completed writes.
    pub write_bytes: u64,
    /// Cache flushes that the device executed.
    pub flushes: u64,
    /// Transactions that were committed.
    pub transactions: Count,
    /// Bytes that the application stored, if it reported them.
    pub payload_bytes: Option<u64>,
    /// Bytes passed to write() and similar calls, if calls were recorded.
    pub called_bytes: Option<u64>,
    /// The part of the current folder that the command found on its filesystem, if it was copied.
    pub copied: Option<Copied>,
    /// The command's exit status, if there was a command and it ended.
    pub exit_status: Option<i32>,
    /// `write_bytes` by the answer's layers.
    pub layers: Parts,
    /// `write_bytes` of files' contents, by path.
    pub files: Parts,
}

impl Measured {
    /// Takes what is [charged](Charged) to the command.
    pub fn new(path: PathBuf, charged: &Charged<'_>) -> Measured {
        let filesystem = charged.manifest.and_then(|m| m.filesystem.as_ref());
        let filesystem = filesystem.map_or("the filesystem", |fs| fs.kind.as_str());
        Measured {
            path,
            counted: charged.counted,
            write_bytes: charged.total.write_bytes,
            flushes: charged.total.device_flushes,
            layers: bytes_of_layers(&charged.groups(&layer::COLUMNS), filesystem).collect(),
            files: files_of(&charged.groups(&["class", "file"])),
            ..Measured::told(charged.manifest, &charged.own_databases())
        }
    }

    /// Fills in the figures that come from the application and its calls.
    fn told(manifest: Option<&Manifest>, databases: &[Database]) -> Measured {
        let payload = manifest.and_then(|m| m.payload.as_ref());
        let command = manifest.and_then(|m| m.command.as_ref());
        // A trace may claim any length for a call.
        let called = sum(databases.iter().map(|d| d.total().bytes));
        let known = |n: u64| Some(n).filter(|&n| n > 0);
        Measured {
            setup: Setup::of(manifest),
            transactions: Transactions::new(manifest, databases).count,
            payload_bytes: payload.and_then(|p| known(p.payload_bytes)),
            called_bytes: known(called),
            copied: command.and_then(|command| command.copied),
            exit_status: command.and_then(|command| command.exit_status),
            ..Measured::default()
        }
    }
}

/// Sums up the contents of files, by path.
fn files_of(groups: &Groups) -> Parts {
    let mut parts = Parts::new();
    for (labels, totals) in groups.groups.iter().filter(|(_, t)| t.write_bytes > 0) {
        let text = |at: usize| labels.get(at).and_then(Label::text);
        if let Some(file) = text(1).filter(|_| text(0).as_deref() == Some("data")) {
            parts.entry(file).or_default().tally(totals.write_bytes);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_bundle::manifest::{Command, Filesystem};

    #[test]
    fn kinds_differ_by_what_is_known_of_both() {
        let kind = |program: Option<&str>, filesystem: Option<&str>| {
            Setup::of(Some(&Manifest {
                command: program.map(|program| Command {
                    argv: vec![program.into(), "x".into()],
                    ..Command::default()
                }),
                filesystem: filesystem.map(|kind| Filesystem {
                    kind: kind.into(),
                    ..Filesystem::default()
                }),
                ..Manifest::default()
            }))
        };
        let one = kind(Some("/a/test"), Some("ext4"));
        assert_eq!(one.difference(&kind(Some("test"), Some("ext4"))), None);
        assert_eq!(one.difference(&kind(None, None)), None);
        assert_eq!(
            one.difference(&kind(Some("./test"), Some("f2fs"))),
            Some(("ext4", "f2fs"))
        );
        assert_eq!(
            one.difference(&kind(Some("cp"), Some("f2fs"))),
            Some(("test", "cp"))
        );
    }
}
