// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the operations of a bundle.

use std::collections::BTreeMap;
use std::path::Path;

use mostrace_bundle::entry::{EntryRef, NONE};
use mostrace_bundle::operation::{OperationKind, OperationRef, operation_flags as flags};
use mostrace_bundle::{Bundle, layout};

use crate::operation::{Call, Change, FileCall, FileId, Opened, Operation, Range, Target, Unknown};
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
    let of = |call| file().map(|file| Call::Of(file, call));
    let change = |change| target().map(|target| Call::Change(target, change));
    use OperationKind as Kind;
    match OperationKind::of(raw.kind.get()) {
        Kind::Unknown => Err("a newer recorder made it"),
        Kind::Open => Ok(Call::Open(opened(entry, path().ok()))),
        Kind::Opened => Ok(Call::Opened(opened(entry, path().ok()))),
        Kind::Close => of(FileCall::Close),
        Kind::Read => of(FileCall::Read { offset, bytes }),
        Kind::Write => of(FileCall::Write { offset, bytes }),
        Kind::Truncate => change(Change::Truncate(bytes)),
        Kind::Fallocate => Ok(Call::Of(file()?, FileCall::Fallocate(range()?, flags))),
        Kind::Fsync => of(FileCall::Fsync),
        Kind::Fdatasync => of(FileCall::Fdatasync),
        Kind::SyncRange => Ok(Call::Of(file()?, FileCall::SyncRange(range()?, flags))),
        Kind::Fadvise => Ok(Call::Of(file()?, FileCall::Fadvise(range()?, flags))),
        Kind::Sync => Ok(Call::Sync),
        Kind::Syncfs => of(FileCall::Syncfs),
        Kind::Msync => Ok(Call::Of(file()?, FileCall::Msync(range()?, flags))),
        Kind::Store => Ok(Call::Of(file()?, FileCall::Store(range()?))),
        Kind::Rename => Ok(Call::Rename {
            from: path()?,
            to: other()?,
            flags,
        }),
        Kind::Link => Ok(Call::Link {
            from: match raw.file.get() {
                0 => Target::Path(path()?),
                _ => target()?,
            },
            to: other()?,
            follow: flags & AT_SYMLINK_FOLLOW != 0,
        }),
        Kind::Symlink => Ok(Call::Symlink {
            target: name(),
            path: path()?,
        }),
        Kind::Unlink => path().map(Call::Unlink),
        Kind::Rmdir => path().map(Call::Rmdir),
        Kind::Mkdir => path().map(|path| Call::Mkdir { path, mode }),
        Kind::Mknod => path().map(|path| Call::Mknod { path, mode }),
        Kind::Chmod => change(Change::Chmod(mode)),
        Kind::Chown => change(Change::Chown {
            uid: raw.uid.get(),
            gid: raw.gid.get(),
        }),
        Kind::Utimes => change(Change::Utimes),
        Kind::Setxattr => change(Change::Setxattr {
            name: name(),
            bytes,
            flags,
        }),
        Kind::Removexattr => change(Change::Removexattr(name())),
        Kind::Copy => of(FileCall::Copy {
            from: self::file(raw.other_file.get()),
            from_offset: known(raw.other_offset.get()),
            offset,
            bytes,
        }),
        Kind::Clone => {
            let from = self::file(raw.other_file.get()).ok_or(NO_FILE)?;
            let from_offset = known(raw.other_offset.get()).ok_or(NO_RANGE)?;
            let (file, range) = (file()?, range()?);
            let call = FileCall::Clone {
                from,
                from_offset,
                range,
            };
            Ok(Call::Of(file, call))
        }
        Kind::AtomicStart => of(FileCall::AtomicStart),
        Kind::AtomicCommit => of(FileCall::AtomicCommit),
        Kind::AtomicAbort => of(FileCall::AtomicAbort),
    }
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
