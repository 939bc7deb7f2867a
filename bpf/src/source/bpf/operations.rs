// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the system calls that the probes record to operations: numbers the open files, and finds the paths of names.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use mostrace_bundle::entry::{Flags, NONE, RawHead, Stage, UNKNOWN_ID};
use mostrace_bundle::operation::{
    OperationKind as Kind, OperationRef, RawOperation, normal_path, operation_flags,
};

use super::call_shapes::{Does, does};
use super::raw_call::{Named, RawCall, RawFile, RawName, Stage as CallStage};
use crate::error::{Error, Result};
use crate::machine::dev::parse_dev;
use crate::machine::device::Device;
use crate::machine::members;
use crate::machine::mountinfo::{self, Mounted};

const AT_REMOVEDIR: u32 = 0x200;
/// `O_CREAT | O_WRONLY | O_TRUNC`
const CREAT: u32 = 0o1101;
/// `<linux/fs.h>`
const FICLONE: u32 = 0x4004_9409;
const FICLONERANGE: u32 = 0x4020_940d;
/// `<linux/f2fs.h>`
const F2FS_START: u32 = 0xf501;
const F2FS_COMMIT: u32 = 0xf502;
const F2FS_ABORT: u32 = 0xf505;

/// Makes records for the table of operations.
pub(super) struct Operations {
    /// The recorder, whose own calls are not part of the recording.
    recorder: u32,
    disk_dev: u32,
    /// The filesystems of the traced device.
    filesystems: Vec<u32>,
    mounts: Vec<Mounted>,
    /// The numbers of the open files, by the address of their `struct file`.
    files: HashMap<u64, u64>,
    next: u64,
    /// Operations in flight, by [`RawCall::request`].
    held: HashMap<u64, Vec<Held>>,
}

/// An operation in flight: a request to io_uring, or a descriptor that is closed if its process executes a program.
struct Held {
    draft: Draft,
    does: Does,
    /// The address of the file that it closes; 0 if it closes none.
    closes: u64,
    /// True if it counts as successful unless a failure is reported.
    is_silent: bool,
}

/// The place to which a name leads.
enum Place {
    /// It leads to this path in the traced filesystem.
    Ours(Vec<u8>),
    Elsewhere,
    Unknown,
}

impl Operations {
    /// Makes a translator. It looks up absolute names in this process's present mounts.
    pub fn new(device: &Device) -> Operations {
        Operations {
            recorder: std::process::id(),
            disk_dev: device.disk_dev,
            filesystems: members::filesystems(device),
            mounts: mountinfo::reachable(),
            files: HashMap::new(),
            next: 1,
            held: HashMap::new(),
        }
    }

    /// Takes a record of the probes, and passes the records of its operations to `put`, one by one.
    ///
    /// # Errors
    /// Returns an error if the record is malformed, or if `put` fails.
    pub fn take(&mut self, record: &[u8], mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let malformed = || Error::malformed("operations", "malformed call");
        let (call, names) = RawCall::parse(record).ok_or_else(malformed)?;
        if call.tgid == self.recorder {
            return Ok(());
        }
        let does = does(call.number).ok_or_else(malformed)?;
        let stage = call.stage().ok_or_else(malformed)?;
        if stage != CallStage::Completed && call.request != 0 && does != Does::Close {
            // The request that had this number before has reported nothing since, so it succeeded.
            self.succeed(call.request, &mut put)?;
        }
        for (file, name) in call.files.iter().zip(names) {
            if file.is_new == 0 {
                continue;
            }
            self.files.insert(file.address, self.next);
            self.next = self.next.saturating_add(1);
            if !matches!(does, Does::Open(..) | Does::Creat) {
                put(&self.opened_before(call, does, file, name).encode()?)?;
            }
        }
        match stage {
            CallStage::Completed => self.complete(call, names, put),
            CallStage::Submitted | CallStage::Silent => {
                self.hold(call, does, names, stage == CallStage::Silent);
                Ok(())
            }
            CallStage::Returned => {
                if let Some(draft) = self.operation(call, does, names) {
                    put(&draft.encode()?)?;
                }
                if does == Does::Close {
                    self.files.remove(&call.files[0].address);
                }
                Ok(())
            }
        }
    }

    /// Passes the operations that are in flight at the end to `put`, if they succeeded or would have reported a failure.
    ///
    /// # Errors
    /// Returns an error if `put` fails.
    pub fn finish(&mut self, mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let requests: Vec<u64> = self.held.keys().copied().collect();
        for request in requests {
            self.succeed(request, &mut put)?;
        }
        Ok(())
    }

    fn hold(&mut self, call: &RawCall, does: Does, names: [Option<&RawName>; 2], is_silent: bool) {
        let Some(draft) = self.operation(call, does, names) else {
            return;
        };
        let is_close = does == Does::Close;
        self.held.entry(call.request).or_default().push(Held {
            draft,
            does,
            closes: if is_close { call.files[0].address } else { 0 },
            is_silent,
        });
    }

    /// Passes on the operations of a request that reported nothing when it ended.
    fn succeed(&mut self, request: u64, put: &mut impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let held = self.held.remove(&request).unwrap_or_default();
        for mut held in held.into_iter().filter(|held| held.is_silent) {
            if matches!(held.does, Does::Write(..) | Does::Read(..) | Does::Copy(..)) {
                let asked = i64::try_from(held.draft.raw.bytes.get());
                held.draft.raw.result = asked.unwrap_or(0).into();
            }
            put(&held.draft.encode()?)?;
        }
        Ok(())
    }

    /// Passes on the operations of what has ended. `names` holds the path of the file that it opened.
    fn complete(
        &mut self,
        call: &RawCall,
        names: [Option<&RawName>; 2],
        mut put: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let file = &call.files[0];
        for mut held in self.held.remove(&call.request).unwrap_or_default() {
            held.draft.raw.head.time_ns = call.end_ns.into();
            held.draft.raw.result = call.result.into();
            match held.does {
                // The program was not executed.
                Does::Close if call.result < 0 => continue,
                Does::Close => {
                    let own = self.files.get(&held.closes) == Some(&held.draft.raw.file.get());
                    if own {
                        self.files.remove(&held.closes);
                    }
                }
                // The opened file is on another filesystem.
                Does::Open(..) if call.result >= 0 && file.address == 0 => continue,
                Does::Open(..) if call.result >= 0 => {
                    held.draft.is_of(file, self.id(file));
                    held.draft.raw.head.flags = Flags(0);
                    let asked = [held.draft.raw.flags.get(), held.draft.raw.mode.get()];
                    held.draft.open(asked, file, path_of(names[0], self));
                    // The flags were already translated.
                    held.draft.raw.flags = asked[0].into();
                }
                _ => {}
            }
            put(&held.draft.encode()?)?;
        }
        Ok(())
    }

    fn id(&self, file: &RawFile) -> u64 {
        self.files.get(&file.address).copied().unwrap_or(0)
    }

    fn place(&self, name: &RawName) -> Place {
        let path = match name.named() {
            Named::Unknown => return Place::Unknown,
            Named::Elsewhere => None,
            Named::Ours(path) => normal_path(&path),
            Named::Absolute(path) => self.below_mount(&path),
        };
        path.map_or(Place::Elsewhere, Place::Ours)
    }

    /// Returns the path in the traced filesystem, given a path from the root of all mounts.
    fn below_mount(&self, path: &[u8]) -> Option<Vec<u8>> {
        let path = normal_path(path)?;
        let whole = [b"/", &path[..]].concat();
        let whole = Path::new(OsStr::from_bytes(&whole));
        let mounted = mountinfo::holding(&self.mounts, whole)?;
        let rest = whole.strip_prefix(&mounted.point).ok()?;
        let ours = self.filesystems.contains(&parse_dev(&mounted.dev)?);
        let path = mounted.root.join(rest);
        ours.then(|| normal_path(path.as_os_str().as_bytes()))?
    }

    /// Returns the record of a file that had been opened before its first use was seen.
    fn opened_before(
        &self,
        call: &RawCall,
        does: Does,
        file: &RawFile,
        name: Option<&RawName>,
    ) -> Draft {
        let mut draft = Draft::new(call, self.disk_dev, Kind::Opened);
        draft.is_of(file, self.id(file));
        draft.found(file);
        draft.raw.flags = generic_flags(file.flags).into();
        let moves = matches!(
            does,
            Does::Write(_, false) | Does::Read(_, false) | Does::Copy(..)
        );
        let moved = if moves { call.moved() } else { 0 };
        draft.raw.offset = file.position.saturating_sub(moved).into();
        draft.raw.head.time_ns = call.start_ns.into();
        draft.raw.result = 0.into();
        match name.map(|name| self.place(name)) {
            Some(Place::Ours(path)) => draft.path = path,
            _ => draft.flag(operation_flags::NO_PATH),
        }
        draft
    }

    /// Returns the operation of a call; None if it concerns another filesystem.
    fn operation(&self, call: &RawCall, does: Does, names: [Option<&RawName>; 2]) -> Option<Draft> {
        let mut draft = Draft::new(call, self.disk_dev, Kind::Unknown);
        let [file, source] = &call.files;
        let has_path = file.address == 0;
        if has_path {
            draft.raw.s_dev = self.filesystems.first().copied().unwrap_or(0).into();
        } else {
            draft.is_of(file, self.id(file));
        }
        let [path, other] = names.map(|name| name.map(|name| self.place(name)));
        if has_path && does != Does::Sync(Kind::Sync) {
            draft.place(path?)?;
        }
        match does {
            Does::Open(flags, mode) => {
                draft.open(
                    [call.word(flags), call.word(mode)],
                    file,
                    path_of(names[0], self),
                );
            }
            Does::Creat => draft.open([CREAT, call.word(1)], file, path_of(names[0], self)),
            Does::Rename(flags) => {
                draft.second(Kind::Rename, other?)?;
                draft.raw.flags = flags.map_or(0, |at| call.word(at)).into();
            }
            Does::Link(flags) => {
                draft.second(Kind::Link, other?)?;
                draft.raw.flags = flags.map_or(0, |at| call.word(at)).into();
            }
            Does::Symlink => {
                draft.kind(Kind::Symlink);
                draft.other = names[1]?.text().to_vec();
            }
            Does::Setxattr | Does::Removexattr => {
                draft.other = names[1]?.text().to_vec();
                draft.attribute(call, does);
            }
            Does::Copy(length, positioned) => {
                draft.copied(call, self.id(source), length, positioned);
            }
            Does::Ioctl => draft.ioctl(call, self.id(source))?,
            _ => draft.plain(call, does),
        }
        Some(draft)
    }
}

/// Returns the path of an opened file; None if the open failed, so that the file is named only in the caller's words.
fn path_of(name: Option<&RawName>, operations: &Operations) -> Option<Vec<u8>> {
    match operations.place(name?) {
        Place::Ours(path) => Some(path),
        _ => None,
    }
}

/// Converts `O_…` flags to the values of asm-generic/fcntl.h.
fn generic_flags(flags: u32) -> u32 {
    if !cfg!(any(target_arch = "aarch64", target_arch = "arm")) {
        return flags;
    }
    // arch/arm64/include/uapi/asm/fcntl.h: O_DIRECTORY, O_NOFOLLOW, O_DIRECT, O_LARGEFILE
    const HERE: [(u32, u32); 4] = [
        (0o40_000, 0o200_000),
        (0o100_000, 0o400_000),
        (0o200_000, 0o40_000),
        (0o400_000, 0o100_000),
    ];
    let moved = HERE
        .iter()
        .map(|(here, _)| here)
        .fold(0, |all, bit| all | bit);
    let set = HERE.iter().filter(|(here, _)| flags & here != 0);
    set.fold(flags & !moved, |all, (_, generic)| all | generic)
}

/// An operation that is being built.
struct Draft {
    raw: RawOperation,
    path: Vec<u8>,
    other: Vec<u8>,
}

impl Draft {
    fn new(call: &RawCall, disk_dev: u32, kind: Kind) -> Draft {
        let head = RawHead {
            kind: 0.into(),
            size: 0.into(),
            dev: disk_dev.into(),
            time_ns: call.end_ns.into(),
            sector: NONE.into(),
            bytes: 0.into(),
            cpu: 0.into(),
            stage: Stage::QUEUE,
            flags: Flags(0),
        };
        Draft {
            raw: RawOperation {
                head,
                start_ns: call.start_ns.into(),
                file: 0.into(),
                other_file: 0.into(),
                offset: NONE.into(),
                other_offset: NONE.into(),
                bytes: 0.into(),
                result: call.result.into(),
                ino: 0.into(),
                size: NONE.into(),
                generation: 0.into(),
                s_dev: 0.into(),
                pid: call.pid.into(),
                tgid: call.tgid.into(),
                flags: 0.into(),
                mode: 0.into(),
                uid: UNKNOWN_ID.into(),
                gid: UNKNOWN_ID.into(),
                kind: (kind as u16).into(),
                i_mode: 0.into(),
                path_len: 0.into(),
                other_len: 0.into(),
            },
            path: Vec::new(),
            other: Vec::new(),
        }
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let (raw, path, other) = (&self.raw, &self.path, &self.other);
        let record = OperationRef { raw, path, other }.encode();
        record.map_err(|why| Error::malformed("operations", why))
    }

    fn kind(&mut self, kind: Kind) {
        self.raw.kind = (kind as u16).into();
    }

    fn flag(&mut self, flag: Flags) {
        self.raw.head.flags.0 |= flag.0;
    }

    fn is_of(&mut self, file: &RawFile, id: u64) {
        self.raw.file = id.into();
        self.raw.ino = file.ino.into();
        self.raw.generation = file.generation.into();
        self.raw.s_dev = file.s_dev.into();
    }

    /// Fills in what was found when a file was opened or first seen.
    fn found(&mut self, file: &RawFile) {
        self.raw.size = file.size.into();
        self.raw.i_mode = file.mode.into();
    }

    /// Sets the path; None if it belongs to another filesystem.
    fn place(&mut self, place: Place) -> Option<()> {
        match place {
            Place::Ours(path) => self.path = path,
            Place::Unknown => self.flag(operation_flags::NO_PATH),
            Place::Elsewhere => return None,
        }
        self.flag(operation_flags::BY_PATH);
        Some(())
    }

    fn second(&mut self, kind: Kind, place: Place) -> Option<()> {
        self.kind(kind);
        match place {
            Place::Ours(path) => self.other = path,
            Place::Unknown => self.flag(operation_flags::NO_PATH),
            Place::Elsewhere => return None,
        }
        Some(())
    }

    fn open(&mut self, [flags, mode]: [u32; 2], file: &RawFile, path: Option<Vec<u8>>) {
        self.kind(Kind::Open);
        self.raw.flags = generic_flags(flags).into();
        self.raw.mode = mode.into();
        if file.address == 0 {
            return;
        }
        self.raw.result = 0.into();
        self.found(file);
        if file.created != 0 {
            self.flag(operation_flags::CREATED);
        }
        match path {
            Some(path) => self.path = path,
            None => self.flag(operation_flags::NO_PATH),
        }
    }

    fn range(&mut self, kind: Kind, offset: u64, bytes: u64) {
        self.kind(kind);
        self.raw.offset = offset.into();
        self.raw.bytes = bytes.into();
    }

    fn attribute(&mut self, call: &RawCall, does: Does) {
        match does {
            Does::Setxattr => {
                self.kind(Kind::Setxattr);
                self.raw.bytes = call.arg(3).into();
                self.raw.flags = call.word(4).into();
            }
            _ => self.kind(Kind::Removexattr),
        }
    }

    fn copied(&mut self, call: &RawCall, source: u64, length: usize, positioned: bool) {
        let [to, from] = &call.files;
        let position = |file: &RawFile| file.position.checked_sub(call.moved());
        let target = call.offset_before(0).filter(|_| positioned);
        self.kind(Kind::Copy);
        self.raw.bytes = call.arg(length).into();
        self.raw.offset = target.or(position(to)).unwrap_or(NONE).into();
        self.raw.other_file = source.into();
        if source != 0 {
            let offset = call.offset_before(1).or(position(from));
            self.raw.other_offset = offset.unwrap_or(NONE).into();
        }
    }

    fn ioctl(&mut self, call: &RawCall, source: u64) -> Option<()> {
        match call.word(1) {
            FICLONE => self.range(Kind::Clone, 0, 0),
            FICLONERANGE => self.range(Kind::Clone, call.arg(7), call.arg(6)),
            F2FS_START => self.kind(Kind::AtomicStart),
            F2FS_COMMIT => self.kind(Kind::AtomicCommit),
            F2FS_ABORT => self.kind(Kind::AtomicAbort),
            _ => return None,
        }
        self.raw.other_file = source.into();
        let is_range = call.word(1) == FICLONERANGE;
        self.raw.other_offset = if is_range { call.arg(5) } else { 0 }.into();
        Some(())
    }

    /// Completes the operation of a call whose arguments are numbers.
    fn plain(&mut self, call: &RawCall, does: Does) {
        let file = &call.files[0];
        match does {
            Does::Close => {
                self.kind(Kind::Close);
                // dup2 returns the descriptor.
                self.raw.result = 0.into();
            }
            Does::Read(length, positioned) => {
                let offset = match positioned {
                    true => call.arg(3),
                    false => file.position.saturating_sub(call.moved()),
                };
                let asked = length.map_or(call.moved(), |at| call.arg(at));
                self.range(Kind::Read, offset, asked);
            }
            Does::Write(length, positioned) => {
                // The position is now behind what was written; with O_APPEND, pwrite64 writes at the end instead of at its offset.
                let appends = file.flags & O_APPEND != 0;
                let offset = match (positioned, appends) {
                    (true, true) => NONE,
                    (true, false) => call.arg(3),
                    (false, _) => file.position.saturating_sub(call.moved()),
                };
                let asked = length.map_or(call.moved(), |at| call.arg(at));
                self.range(Kind::Write, offset, asked);
            }
            Does::Truncate => self.range(Kind::Truncate, NONE, call.arg(1)),
            Does::Fallocate => {
                self.range(Kind::Fallocate, call.arg(2), call.arg(3));
                self.raw.flags = call.word(1).into();
            }
            Does::Sync(kind) => self.kind(kind),
            Does::SyncRange => {
                self.range(Kind::SyncRange, call.arg(1), call.arg(2));
                self.raw.flags = call.word(3).into();
            }
            Does::Fadvise => {
                self.range(Kind::Fadvise, call.arg(1), call.arg(2));
                self.raw.flags = call.word(3).into();
            }
            Does::Msync => {
                self.range(Kind::Msync, call.arg(6), call.arg(1));
                self.raw.flags = call.word(2).into();
            }
            Does::Store => self.range(Kind::Store, call.arg(0), call.arg(1)),
            Does::Unlinkat(flags) if call.word(flags) & AT_REMOVEDIR != 0 => self.kind(Kind::Rmdir),
            Does::Unlinkat(_) | Does::Unlink => self.kind(Kind::Unlink),
            Does::Rmdir => self.kind(Kind::Rmdir),
            Does::Mode(kind, at) => {
                self.kind(kind);
                self.raw.mode = call.word(at).into();
            }
            Does::Owner(at) => {
                self.kind(Kind::Chown);
                self.raw.uid = call.word(at).into();
                self.raw.gid = call.word(at.saturating_add(1)).into();
            }
            Does::Utimes => self.kind(Kind::Utimes),
            // The caller completes the others.
            _ => {}
        }
    }
}

const O_APPEND: u32 = 0o2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_the_deepest_mount() {
        let mounted = |dev: &str, root: &str, point: &str| Mounted {
            dev: dev.into(),
            root: root.into(),
            point: point.into(),
            ..Mounted::default()
        };
        let operations = Operations {
            recorder: 0,
            disk_dev: 0,
            filesystems: vec![7 << 20 | 1],
            mounts: vec![
                mounted("8:1", "/", "/"),
                mounted("7:1", "/", "/mnt"),
                mounted("8:2", "/", "/mnt/other"),
                mounted("7:1", "/copy", "/home/app"),
            ],
            files: HashMap::new(),
            next: 1,
            held: HashMap::new(),
        };
        let path = |path: &str| {
            let path = operations.below_mount(path.as_bytes());
            path.map(|path| String::from_utf8(path).unwrap())
        };
        assert_eq!(path("/mnt/a/../b"), Some("b".into()));
        assert_eq!(path("/mnt"), Some(String::new()));
        assert_eq!(path("/home/app/x"), Some("copy/x".into()));
        for elsewhere in ["/mnt/other/x", "/etc/passwd", "/mntx", "/home/application"] {
            assert_eq!(path(elsewhere), None, "{elsewhere}");
        }
    }
}
