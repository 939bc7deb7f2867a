// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small bundle, made with the crate's own writers.

use std::path::{Path, PathBuf};

use mostrace_bundle::entry::stack::{RawStack, TYPE_STACK};
use mostrace_bundle::entry::{
    CallKind, Flags, NONE, Origin, RawCall, RawCgroup, RawComm, RawDirtied, RawDirtier, RawF2fs,
    RawFile, RawFork, RawFreed, RawHandle, RawHead, RawProcess, RawServed, Stage, Step, TYPE_CALL,
    TYPE_CGROUP, TYPE_COMM, TYPE_DIRTIED, TYPE_DIRTIER, TYPE_F2FS, TYPE_FILE, TYPE_FORK,
    TYPE_FREED, TYPE_HANDLE, TYPE_PROCESS, TYPE_SERVED, What, comm_flags, cp, fork_flags,
};
use mostrace_bundle::manifest::{SCHEMA, State};
use mostrace_bundle::operation::{OperationKind, OperationRef, RawOperation, TYPE_OPERATION};
use mostrace_bundle::sparse::SparseWriter;
use mostrace_bundle::table::TableWriter;
use mostrace_bundle::{Manifest, Writer, layout};
use zerocopy::IntoBytes;

fn head(kind: u16, size: u16, sector: u64) -> RawHead {
    RawHead {
        kind: kind.into(),
        size: size.into(),
        dev: (7 << 20).into(),
        time_ns: 1_000.into(),
        sector: sector.into(),
        bytes: 4096.into(),
        cpu: 1.into(),
        stage: Stage::ISSUE,
        flags: Flags::UNLINKED,
    }
}

/// A process entry as the kernel's side produces it.
pub fn process(sector: u64) -> Vec<u8> {
    let raw = RawProcess {
        head: head(TYPE_PROCESS, 88, sector),
        submit_ns: 900.into(),
        home_sector: NONE.into(),
        pid: 7.into(),
        tgid: 6.into(),
        uid: 5.into(),
        opf: 1.into(),
        origin: Origin::FILE,
        comm: *b"sqlite3\0\0\0\0\0\0\0\0\0",
        ..RawProcess::default()
    };
    raw.as_bytes().to_vec()
}

/// A file entry with a name, padded to a multiple of 8.
pub fn file(sector: u64, name: &[u8]) -> Vec<u8> {
    let size = 72 + name.len().next_multiple_of(8);
    let raw = RawFile {
        head: head(TYPE_FILE, size as u16, sector),
        ino: 12.into(),
        offset: 0.into(),
        parent: 2.into(),
        generation: 3.into(),
        s_dev: (7 << 20).into(),
        nlink: 1.into(),
        name_len: (name.len() as u16).into(),
        origin: Origin::FILE,
        what: What::REGULAR,
    };
    let mut record = raw.as_bytes().to_vec();
    record.extend_from_slice(name);
    record.resize(size, 0);
    record
}

/// A dirtier entry.
pub fn dirtier(sector: u64) -> Vec<u8> {
    let raw = RawDirtier {
        head: head(TYPE_DIRTIER, 72, sector),
        dirty_ns: 800.into(),
        pid: 9.into(),
        tgid: 8.into(),
        uid: 5.into(),
        pad: 0.into(),
        comm: *b"writer\0\0\0\0\0\0\0\0\0\0",
    };
    raw.as_bytes().to_vec()
}

/// A handle's entry: 3 blocks dirtied in transaction 40.
pub fn handle() -> Vec<u8> {
    let raw = RawHandle {
        head: head(TYPE_HANDLE, 120, NONE),
        id: 21.into(),
        start_ns: 900.into(),
        ino: 12.into(),
        function: 0.into(),
        generation: 4.into(),
        s_dev: (7 << 20).into(),
        tid: 40.into(),
        pid: 9.into(),
        tgid: 8.into(),
        uid: 5.into(),
        requested: 30.into(),
        dirtied: 3.into(),
        named: 2.into(),
        kind: 4.into(),
        call: (CallKind::Unlink as u16).into(),
        comm: *b"writer\0\0\0\0\0\0\0\0\0\0",
    };
    raw.as_bytes().to_vec()
}

/// An entry for a block that the handle dirtied.
pub fn dirtied(sector: u64) -> Vec<u8> {
    let raw = RawDirtied {
        head: head(TYPE_DIRTIED, 48, sector),
        handle: 21.into(),
        tid: 40.into(),
        ..RawDirtied::default()
    };
    raw.as_bytes().to_vec()
}

/// A call's entry: 512 bytes written.
pub fn call() -> Vec<u8> {
    let raw = RawCall {
        head: head(TYPE_CALL, 120, NONE),
        start_ns: 850.into(),
        ino: 12.into(),
        offset: 4096.into(),
        bytes: 512.into(),
        result: 512.into(),
        generation: 4.into(),
        s_dev: (7 << 20).into(),
        pid: 9.into(),
        tgid: 8.into(),
        uid: 5.into(),
        kind: (CallKind::Write as u16).into(),
        comm: *b"writer\0\0\0\0\0\0\0\0\0\0",
        ..RawCall::default()
    };
    raw.as_bytes().to_vec()
}

/// An entry for blocks that a file freed.
pub fn freed(sector: u64) -> Vec<u8> {
    let raw = RawFreed {
        head: head(TYPE_FREED, 56, sector),
        ino: 12.into(),
        generation: 4.into(),
        s_dev: (7 << 20).into(),
        tid: 40.into(),
        ..RawFreed::default()
    };
    raw.as_bytes().to_vec()
}

/// An entry for the beginning of a checkpoint.
pub fn f2fs() -> Vec<u8> {
    let raw = RawF2fs {
        head: head(TYPE_F2FS, 72, NONE),
        s_dev: (7 << 20).into(),
        pid: 9.into(),
        tgid: 9.into(),
        step: (Step::Checkpoint as u16).into(),
        reason: cp::SYNC.into(),
        comm: *b"f2fs_ckpt-7:0\0\0\0",
        ..RawF2fs::default()
    };
    raw.as_bytes().to_vec()
}

/// An entry for a process of the command's tree.
pub fn fork() -> Vec<u8> {
    let raw = RawFork {
        head: RawHead {
            flags: fork_flags::OF_COMMAND,
            ..head(TYPE_FORK, 40, NONE)
        },
        tgid: 8.into(),
        parent: 7.into(),
    };
    raw.as_bytes().to_vec()
}

/// An entry for a request that a daemon of FUSE served.
pub fn served() -> Vec<u8> {
    let mut raw = RawServed {
        head: head(TYPE_SERVED, 88, NONE),
        pid: 9.into(),
        for_pid: 8.into(),
        for_uid: 10_001.into(),
        ..RawServed::default()
    };
    raw.for_comm[..3].copy_from_slice(b"app");
    raw.as_bytes().to_vec()
}

/// The entry of a cgroup two folders below the root.
pub fn cgroup() -> Vec<u8> {
    let path = b"app/apps/";
    let raw = RawCgroup {
        head: RawHead {
            flags: Flags(0),
            ..head(TYPE_CGROUP, 64, NONE)
        },
        id: 77.into(),
        tgid: 8.into(),
        path_len: 9.into(),
        pad: 0.into(),
    };
    let mut record = raw.as_bytes().to_vec();
    record.extend(path);
    record.resize(64, 0);
    record
}

/// The entry of a process's name.
pub fn comm() -> Vec<u8> {
    let raw = RawComm {
        head: RawHead {
            flags: comm_flags::CHANGED,
            ..head(TYPE_COMM, 56, NONE)
        },
        tgid: 8.into(),
        pad: 0.into(),
        comm: *b"java\0\0\0\0\0\0\0\0\0\0\0\0",
    };
    raw.as_bytes().to_vec()
}

/// The entry of a stack with a frame of the kernel and two of a program.
pub fn stack() -> Vec<u8> {
    let text = b"ext4_dirty_inode+0x5b\n0a1f 0x1189 /a b/app\n- - \n";
    let size = (48 + text.len()).next_multiple_of(8);
    let raw = RawStack {
        head: RawHead {
            flags: Flags(0),
            ..head(TYPE_STACK, u16::try_from(size).unwrap(), NONE)
        },
        id: 99.into(),
        tgid: 8.into(),
        kernel: 1.into(),
        user: 2.into(),
    };
    let mut record = raw.as_bytes().to_vec();
    record.extend(text);
    record.resize(size, 0);
    record
}

/// An operation's entry: a rename.
pub fn operation() -> Vec<u8> {
    let raw = RawOperation {
        head: head(TYPE_OPERATION, 0, NONE),
        start_ns: 850.into(),
        offset: NONE.into(),
        other_offset: NONE.into(),
        result: (-2).into(),
        size: NONE.into(),
        s_dev: (7 << 20).into(),
        pid: 9.into(),
        tgid: 8.into(),
        flags: 1.into(),
        kind: (OperationKind::Rename as u16).into(),
        ..RawOperation::default()
    };
    let operation = OperationRef {
        raw: &raw,
        path: b"a/old",
        other: b"b/new",
    };
    operation.encode().unwrap()
}

/// Writes a table of these records.
pub fn table(path: &Path, records: &[Vec<u8>]) {
    let mut table = TableWriter::create(path).unwrap();
    for record in records {
        table.push(record).unwrap();
    }
    table.flush().unwrap();
}

/// Adds to the manifest the sizes of all files that have been written.
pub fn listing(writer: &Writer, manifest: Manifest) -> Manifest {
    Manifest {
        files: writer.sizes().unwrap(),
        ..manifest
    }
}

/// Writes a bundle with every kind of file.
pub fn bundle(dir: &Path) -> PathBuf {
    let dir = dir.join("x.most");
    let writer = Writer::create(&dir).unwrap();
    let manifest = Manifest {
        schema: SCHEMA,
        state: State::Complete,
        ..Manifest::default()
    };
    writer.put_manifest(&manifest).unwrap();
    for cpu in [0, 2, 10] {
        std::fs::write(writer.path(&layout::trace_of_cpu(cpu)), [cpu as u8; 100]).unwrap();
    }
    table(&writer.path(layout::PROCESS), &[process(8), process(16)]);
    table(&writer.path(layout::FILE), &[file(8, b"a.db-journal")]);
    table(&writer.path(layout::DIRTIER), &[dirtier(8)]);
    table(&writer.path(layout::HANDLE), &[handle()]);
    table(&writer.path(layout::DIRTIED), &[dirtied(8), dirtied(24)]);
    table(&writer.path(layout::CALL), &[call()]);
    table(&writer.path(layout::F2FS), &[f2fs()]);
    table(&writer.path(layout::FORK), &[fork()]);
    let mut image = SparseWriter::new(Vec::new(), 1 << 20).unwrap();
    image.push(4096, &[7; 5000]).unwrap();
    std::fs::write(writer.path(layout::SNAPSHOT), image.finish().unwrap()).unwrap();
    writer.put_manifest(&listing(&writer, manifest)).unwrap();
    dir
}
