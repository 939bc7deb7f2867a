// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the operations of a bundle.

use std::collections::BTreeMap;
use std::path::Path;

use mostrace_bundle::entry::{EntryRef, NONE};
use mostrace_bundle::operation::{OperationKind, OperationRef, operation_flags as flags};
use mostrace_bundle::{Bundle, layout};

use crate::operation::{Call, FileId, Opened, Operation, Range, Target, Unknown};
use crate::{Error, Name, Result};

/// The operations of a recording on one filesystem, read for a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The operations, ordered by the time at which they began.
    pub operations: Vec<Operation>,
    /// The number of operations that cannot be replayed, by the reason why.
    pub left_out: BTreeMap<&'static str, u64>,
    /// What the recording does not tell.
    pub unknown: Unknown,
}

impl Recorded {
    pub(crate) fn leave_out(&mut self, why: &'static str, operations: u64) {
        if operations > 0 {
            let count = self.left_out.entry(why).or_default();
            *count = count.saturating_add(operations);
        }
    }

    /// Returns true if there is no call that can be replayed.
    pub fn is_empty(&self) -> bool {
        let mut operations = self.operations.iter();
        operations.all(|operation| matches!(operation.call, Call::Opened(_)))
    }
}

/// Reads the operations of a bundle.
///
/// # Errors
/// Returns an error if the bundle has no table of operations, or the table is damaged.
pub fn read_bundle(path: &Path, bundle: &Bundle) -> Result<Recorded> {
    let table = bundle.table(layout::OPERATION, false)?;
    let mut table = table.ok_or_else(|| Error::NoOperations(path.to_owned()))?;
    let mut recorded = Recorded::default();
    while let Some(entry) = table.next_if(|_| true)? {
        let EntryRef::Operation(entry) = entry else {
            continue;
        };
        match operation(&entry) {
            Ok(operation) => recorded.operations.push(operation),
            Err(why) => recorded.leave_out(why, 1),
        }
    }
    recorded
        .operations
        .sort_by_key(|operation| operation.begin_ns);
    Ok(recorded)
}

/// Returns the operation of a record, or the reason why it cannot be replayed.
fn operation(entry: &OperationRef<'_>) -> std::result::Result<Operation, &'static str> {
    let raw = entry.raw;
    let end_ns = raw.head.time_ns.get();
    Ok(Operation {
        thread: raw.pid.get(),
        process: raw.tgid.get(),
        begin_ns: raw.start_ns.get().min(end_ns),
        end_ns,
        call: call(entry)?,
        result: raw.result.get(),
    })
}

/// `<linux/fcntl.h>`
const AT_SYMLINK_FOLLOW: u32 = 0x400;
const NO_FILE: &str = "its open file is not known";
const NO_PATH: &str = "its path is not known";
const NO_RANGE: &str = "its range is not known";

fn call(entry: &OperationRef<'_>) -> std::result::Result<Call, &'static str> {
    let raw = entry.raw;
    let file = || file(raw.file.get()).ok_or(NO_FILE);
    let path = || match raw.head.flags.has(flags::NO_PATH) {
        true => Err(NO_PATH),
        false => Name::new(entry.path).ok_or(NO_PATH),
    };
    let other = || Name::new(entry.other).ok_or(NO_PATH);
    let target = || match raw.head.flags.has(flags::BY_PATH) {
        true => path().map(Target::Path),
        false => file().map(Target::File),
    };
    let name = || entry.other.to_vec();
    let (bytes, flags, mode) = (raw.bytes.get(), raw.flags.get(), raw.mode.get());
    let offset = known(raw.offset.get());
    let range = || offset.map(|offset| Range { offset, bytes }).ok_or(NO_RANGE);
    use OperationKind as Kind;
    Ok(match OperationKind::of(raw.kind.get()) {
        Kind::Unknown => return Err("a newer recorder made it"),
        Kind::Open => Call::Open(opened(entry, path().ok())),
        Kind::Opened => Call::Opened(opened(entry, path().ok())),
        Kind::Close => Call::Close { file: file()? },
        Kind::Read => Call::Read {
            file: file()?,
            offset,
            bytes,
        },
        Kind::Write => Call::Write {
            file: file()?,
            offset,
            bytes,
        },
        Kind::Truncate => Call::Truncate {
            target: target()?,
            length: bytes,
        },
        Kind::Fallocate => Call::Fallocate {
            file: file()?,
            mode: flags,
            range: range()?,
        },
        Kind::Fsync => Call::Fsync { file: file()? },
        Kind::Fdatasync => Call::Fdatasync { file: file()? },
        Kind::SyncRange => Call::SyncRange {
            file: file()?,
            range: range()?,
            flags,
        },
        Kind::Fadvise => Call::Fadvise {
            file: file()?,
            range: range()?,
            advice: flags,
        },
        Kind::Sync => Call::Sync,
        Kind::Syncfs => Call::Syncfs { file: file()? },
        Kind::Msync => Call::Msync {
            file: file()?,
            range: range()?,
            flags,
        },
        Kind::Store => Call::Store {
            file: file()?,
            range: range()?,
        },
        Kind::Rename => Call::Rename {
            from: path()?,
            to: other()?,
            flags,
        },
        Kind::Link => Call::Link {
            // Older recordings have no file here, and no such flag.
            from: match raw.file.get() {
                0 => Target::Path(path()?),
                _ => target()?,
            },
            to: other()?,
            follow: flags & AT_SYMLINK_FOLLOW != 0,
        },
        Kind::Symlink => Call::Symlink {
            target: name(),
            path: path()?,
        },
        Kind::Unlink => Call::Unlink { path: path()? },
        Kind::Rmdir => Call::Rmdir { path: path()? },
        Kind::Mkdir => Call::Mkdir {
            path: path()?,
            mode,
        },
        Kind::Mknod => Call::Mknod {
            path: path()?,
            mode,
        },
        Kind::Chmod => Call::Chmod {
            target: target()?,
            mode,
        },
        Kind::Chown => Call::Chown {
            target: target()?,
            uid: raw.uid.get(),
            gid: raw.gid.get(),
        },
        Kind::Utimes => Call::Utimes { target: target()? },
        Kind::Setxattr => Call::Setxattr {
            target: target()?,
            name: name(),
            bytes,
            flags,
        },
        Kind::Removexattr => Call::Removexattr {
            target: target()?,
            name: name(),
        },
        Kind::Copy => Call::Copy {
            from: self::file(raw.other_file.get()),
            from_offset: known(raw.other_offset.get()),
            to: file()?,
            offset,
            bytes,
        },
        Kind::Clone => Call::Clone {
            from: self::file(raw.other_file.get()).ok_or(NO_FILE)?,
            from_offset: known(raw.other_offset.get()).ok_or(NO_RANGE)?,
            to: file()?,
            range: range()?,
        },
        Kind::AtomicStart => Call::AtomicStart { file: file()? },
        Kind::AtomicCommit => Call::AtomicCommit { file: file()? },
        Kind::AtomicAbort => Call::AtomicAbort { file: file()? },
    })
}

fn opened(entry: &OperationRef<'_>, path: Option<Name>) -> Opened {
    let raw = entry.raw;
    Opened {
        file: file(raw.file.get()),
        path,
        flags: raw.flags.get(),
        mode: raw.mode.get(),
        i_mode: raw.i_mode.get().into(),
        size: known(raw.size.get()),
        created: raw.head.flags.has(flags::CREATED),
        inode: (raw.ino.get(), raw.generation.get()),
    }
}

fn file(number: u64) -> Option<FileId> {
    (number != 0).then_some(FileId(number))
}

fn known(value: u64) -> Option<u64> {
    (value != NONE).then_some(value)
}
