// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls that change neither a descriptor nor a position.

use super::args::{field, number};
use super::calls::{Asked, HARMLESS, Made, NO_PATH, NOT_READ, Reader, Why};
use crate::Name;
use crate::operation::{Call, Change, FileCall, Range, Target};
use crate::words::{AT, FADVISE, FALLOCATE, MODE, RENAME, SYNC_RANGE, XATTR};

const AT_REMOVEDIR: u64 = 0x200;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
/// `<linux/fs.h>`
const FICLONE: &[(&str, u64)] = &[("FICLONE", 0x4004_9409), ("FICLONERANGE", 0x4020_940d)];
const IOCTL: &str = "a replay does not make this ioctl";

impl Reader<'_> {
    /// Takes the calls that change neither a descriptor nor a position.
    pub(super) fn other(&mut self, asked: &Asked<'_>, result: i64) -> Result<Option<Call>, Why> {
        let args = &asked.args;
        let wide = |n, words| args.number(n, words).ok_or(NOT_READ);
        let flags = |n, words| wide(n, words).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let optional = |n, words| {
            args.number(n, words)
                .and_then(|value| u32::try_from(value).ok())
                .unwrap_or(0)
        };
        // -1 leaves a user or a group as it is.
        let owner = |n| {
            let id = args.plain(n).and_then(|id| u32::try_from(id).ok());
            id.unwrap_or(u32::MAX)
        };
        let range = |offset, bytes| -> Result<Range, Why> {
            Ok(Range {
                offset: wide(offset, &[])?,
                bytes: wide(bytes, &[])?,
            })
        };
        // The first argument of mkdirat and its like is the folder from which the path counts.
        let at = usize::from(asked.name.trim_end_matches('2').ends_with("at"));
        let call = match asked.name {
            "fsync" => Call::Of(self.id(asked)?, FileCall::Fsync),
            "fdatasync" => Call::Of(self.id(asked)?, FileCall::Fdatasync),
            "sync" => Call::Sync,
            "syncfs" => Call::Of(self.id(asked)?, FileCall::Syncfs),
            "sync_file_range" => {
                let file = self.id(asked)?;
                Call::Of(
                    file,
                    FileCall::SyncRange(range(1, 2)?, flags(3, SYNC_RANGE)?),
                )
            }
            "fadvise64" => {
                let file = self.id(asked)?;
                Call::Of(file, FileCall::Fadvise(range(1, 2)?, flags(3, FADVISE)?))
            }
            "sync_file_range2" => {
                let file = self.id(asked)?;
                Call::Of(
                    file,
                    FileCall::SyncRange(range(2, 3)?, flags(1, SYNC_RANGE)?),
                )
            }
            "arm_fadvise64_64" => {
                let file = self.id(asked)?;
                Call::Of(file, FileCall::Fadvise(range(2, 3)?, flags(1, FADVISE)?))
            }
            "fallocate" => {
                let (file, mode) = (self.id(asked)?, flags(1, FALLOCATE)?);
                Call::Of(file, FileCall::Fallocate(range(2, 3)?, mode))
            }
            "truncate" | "ftruncate" => {
                if at_file(asked.name, at) {
                    self.file(asked, 0)?.changed.set(true);
                }
                Call::Change(self.target(asked, at)?, Change::Truncate(wide(1, &[])?))
            }
            "rename" | "renameat" | "renameat2" => {
                self.renamed |= result >= 0;
                let [from, to] = self.both(asked, at)?;
                let flags = optional(4, RENAME);
                Call::Rename { from, to, flags }
            }
            "link" | "linkat" => Call::Link {
                from: self.named(asked, at)?,
                to: self.path(asked, (at > 0).then_some(2), 1 + 2 * at)?,
                follow: at > 0 && wide(4, AT)? & AT_SYMLINK_FOLLOW != 0,
            },
            "symlink" | "symlinkat" => Call::Symlink {
                target: args.string(0).ok_or(NO_PATH)?,
                path: self.path(asked, (at > 0).then_some(1), at + 1)?,
            },
            "unlinkat" if wide(2, AT)? & AT_REMOVEDIR != 0 => Call::Rmdir(self.path_at(asked, at)?),
            "unlink" | "unlinkat" => Call::Unlink(self.path_at(asked, at)?),
            "rmdir" => Call::Rmdir(self.path_at(asked, at)?),
            "mkdir" | "mkdirat" => Call::Mkdir {
                path: self.path_at(asked, at)?,
                mode: flags(at + 1, MODE)?,
            },
            "mknod" | "mknodat" => Call::Mknod {
                path: self.path_at(asked, at)?,
                mode: flags(at + 1, MODE)?,
            },
            "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => {
                let target = self.target(asked, at)?;
                Call::Change(target, Change::Chmod(flags(at + 1, MODE)?))
            }
            "chown" | "lchown" | "fchown" | "fchownat" => {
                let (uid, gid) = (owner(at + 1), owner(at + 2));
                Call::Change(self.target(asked, at)?, Change::Chown { uid, gid })
            }
            "utimensat" | "futimesat" if args.text(1) == "NULL" => {
                Call::Change(Target::File(self.id(asked)?), Change::Utimes)
            }
            "utime" | "utimes" | "utimensat" | "futimesat" => {
                Call::Change(self.named(asked, at)?, Change::Utimes)
            }
            "setxattr" | "lsetxattr" | "fsetxattr" => {
                let target = self.target(asked, at)?;
                let set = Change::Setxattr {
                    name: args.string(1).ok_or(NOT_READ)?,
                    bytes: wide(3, &[])?,
                    flags: optional(4, XATTR),
                };
                Call::Change(target, set)
            }
            "removexattr" | "lremovexattr" | "fremovexattr" => {
                let target = self.target(asked, at)?;
                let name = args.string(1).ok_or(NOT_READ)?;
                Call::Change(target, Change::Removexattr(name))
            }
            _ => return Ok(None),
        };
        Ok(Some(call))
    }

    /// Takes an ioctl; of those on files, a replay makes FICLONE and FICLONERANGE.
    pub(super) fn controlled(&mut self, asked: &Asked<'_>, result: i64) -> Made {
        let to = self.file(asked, 0)?;
        let command = asked.args.text(1);
        let number_of = |(name, number): &&(&str, u64)| {
            *name == command || asked.args.plain(1) == Some(*number)
        };
        let (from, from_offset, range) = match FICLONE.iter().find(number_of) {
            Some(("FICLONE", _)) => (
                self.file(asked, 2)?,
                0,
                Range {
                    offset: 0,
                    bytes: 0,
                },
            ),
            Some(_) => {
                let told = |name| field(asked.args.text(2), name);
                let value_of = |name| told(name).and_then(number).ok_or(NOT_READ);
                let source = super::args::Args::split(told("src_fd").ok_or(NOT_READ)?);
                let asked = Asked {
                    args: source,
                    ..*asked
                };
                let range = Range {
                    offset: value_of("dest_offset")?,
                    bytes: value_of("src_length")?,
                };
                (self.file(&asked, 0)?, value_of("src_offset")?, range)
            }
            None if result < 0 || READS.contains(&command) => return Err(HARMLESS),
            None => return Err(IOCTL),
        };
        to.changed.set(true);
        let clone = FileCall::Clone {
            from: from.id,
            from_offset,
            range,
        };
        Ok(Some(Call::Of(to.id, clone)))
    }

    /// Returns the two paths of a call, each behind its folder if `at` is 1.
    fn both(&mut self, asked: &Asked<'_>, at: usize) -> Result<[Name; 2], Why> {
        let from = self.path_at(asked, at)?;
        let to = self.path(asked, (at > 0).then_some(2), 1 + 2 * at)?;
        Ok([from, to])
    }

    /// Returns what a call changes: the open file of its descriptor, or the file at its path.
    fn target(&mut self, asked: &Asked<'_>, at: usize) -> Result<Target, Why> {
        match at_file(asked.name, at) {
            true => self.id(asked).map(Target::File),
            false => self.named(asked, at),
        }
    }
}

/// Requests to a filesystem that only read.
const READS: &[&str] = &[
    "FIBMAP",
    "FIGETBSZ",
    "FIONREAD",
    "FS_IOC_FIEMAP",
    "FS_IOC_FSGETXATTR",
    "FS_IOC_GETFLAGS",
    "FS_IOC_GETVERSION",
    "TCGETS",
    "TIOCGPGRP",
    "TIOCGWINSZ",
];

/// Returns true if a call such as fchmod names its file by a descriptor; fchmodat does not.
fn at_file(name: &str, at: usize) -> bool {
    at == 0 && name.starts_with('f')
}
