// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bundles made by hand: events as blktrace v7 writes them, entries as the probes deliver them.
#![allow(dead_code)] // each test binary uses its own share

use std::path::{Path, PathBuf};

use mostrace_bundle::entry::{
    CallKind, Flags, Jbd2, NONE, Origin, RawCall, RawDirtied, RawDirtier, RawF2fs, RawFile,
    RawFreed, RawHandle, RawHead, RawProcess, Stage, Step, TYPE_CALL, TYPE_DIRTIED, TYPE_DIRTIER,
    TYPE_F2FS, TYPE_FILE, TYPE_FREED, TYPE_HANDLE, TYPE_PROCESS, What, call_flags, dirtied_flags,
    handle_flags,
};
use mostrace_bundle::manifest::{Device, Filesystem, SCHEMA, State};
use mostrace_bundle::table::TableWriter;
use mostrace_bundle::{Manifest, Writer, layout};
use zerocopy::IntoBytes;

pub const READ: u32 = 1 << 16;
pub const WRITE: u32 = 1 << 17;
pub const FLUSH: u32 = 1 << 18;
pub const SYNC: u32 = 1 << 19;
pub const DISCARD: u32 = 1 << 29;

pub const DEVICE: u32 = 7 << 20;

/// The losses of entries of causes.
const LOSSES: [&str; 3] = ["causes_ring", "causes_tasks", "causes_misses"];

/// A thread as entries describe it.
#[derive(Clone, Copy)]
pub struct Thread {
    pub pid: u32,
    pub tgid: u32,
    pub comm: &'static str,
}

impl Thread {
    pub const fn new(pid: u32, tgid: u32, comm: &'static str) -> Thread {
        Thread { pid, tgid, comm }
    }
}

pub const SQLITE: Thread = Thread::new(101, 100, "sqlite3");
pub const JBD2: Thread = Thread::new(50, 50, "jbd2/loop0-8");
pub const KWORKER: Thread = Thread::new(60, 60, "kworker/u8:1");
pub const OTHER: Thread = Thread::new(201, 200, "other");

/// Returns one v7 record.
pub fn record(time_ns: u64, action: u32, sector: u64, bytes: u32, pid: u32, pdu: &[u8]) -> Vec<u8> {
    let mut r = Vec::new();
    r.extend(0x6561_7407_u32.to_le_bytes());
    r.extend(0_u32.to_le_bytes());
    r.extend(time_ns.to_le_bytes());
    r.extend(sector.to_le_bytes());
    for word in [bytes, action, pid, DEVICE, 0] {
        r.extend(word.to_le_bytes());
    }
    r.extend(0_u16.to_le_bytes());
    r.extend((pdu.len() as u16).to_le_bytes());
    r.extend(pdu);
    r
}

/// Events and entries of consecutive requests.
#[derive(Default)]
pub struct Scene {
    pub events: Vec<u8>,
    pub processes: Vec<Vec<u8>>,
    pub files: Vec<Vec<u8>>,
    /// None if the table is missing.
    pub dirtiers: Option<Vec<Vec<u8>>>,
    /// None if the recorder does not report freed blocks.
    pub freed: Option<Vec<Vec<u8>>>,
    /// The tables of causes; None if they are missing.
    pub handles: Option<Vec<Vec<u8>>>,
    pub dirtied: Option<Vec<Vec<u8>>>,
    pub calls: Option<Vec<Vec<u8>>>,
    pub f2fs: Option<Vec<Vec<u8>>>,
    /// The packages of an Android device.
    pub packages: Option<&'static str>,
    /// The number of jbd2's running transaction.
    pub tid: u32,
    /// `i_generation` of the files of further entries and calls.
    pub generation: u32,
    pub manifest: Manifest,
    /// True if the tables have each modification of a block, and each thread and purpose that took part in a transaction.
    pub tells_each: bool,
    /// The time from one step to the next, µs.
    pub step_us: u64,
    now_us: u64,
}

/// The fields of a handle that differ between tests.
#[derive(Clone, Copy)]
pub struct HandleOf {
    pub thread: Thread,
    pub function: &'static str,
    pub inode: u64,
    pub call: CallKind,
    /// Its duration, µs.
    pub lasted_us: u64,
    /// True if another handle was open meanwhile.
    pub overlaps: bool,
    /// The filesystem's device number.
    pub s_dev: u32,
}

impl HandleOf {
    /// The same by another thread.
    pub const fn by(self, thread: Thread) -> HandleOf {
        HandleOf { thread, ..self }
    }
}

/// The fields of a system call that differ between tests.
#[derive(Clone, Copy)]
pub struct CallOf {
    pub thread: Thread,
    pub kind: CallKind,
    pub inode: u64,
    pub offset: u64,
    pub bytes: u64,
    pub first_bytes: Option<[u8; 8]>,
    /// Its duration, µs.
    pub lasted_us: u64,
}

impl CallOf {
    /// The same by another thread.
    pub const fn by(self, thread: Thread) -> CallOf {
        CallOf { thread, ..self }
    }
}

/// The handle of a file that is created.
pub const CREATE: HandleOf = HandleOf {
    thread: SQLITE,
    function: "__ext4_new_inode",
    inode: 12,
    call: CallKind::Open,
    lasted_us: 50,
    overlaps: false,
    s_dev: DEVICE,
};

pub const UNLINK: HandleOf = HandleOf {
    function: "__ext4_unlink",
    call: CallKind::Unlink,
    ..CREATE
};
pub const FLUSHER: HandleOf = HandleOf {
    function: "ext4_do_writepages",
    call: CallKind::Other,
    ..CREATE.by(KWORKER)
};

pub const FSYNC: CallOf = CallOf {
    thread: SQLITE,
    kind: CallKind::Fsync,
    inode: 12,
    offset: NONE,
    bytes: 0,
    first_bytes: None,
    lasted_us: 100,
};

/// Saves a scene in a folder of its own, which goes with the first value.
pub fn saved(scene: &Scene) -> (tempfile::TempDir, String) {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene.save(tmp.path()).to_str().unwrap().to_owned();
    (tmp, path)
}

impl Scene {
    /// Makes a scene with a first transaction, within which the recording may have begun.
    pub fn begun() -> Scene {
        let mut s = Scene::new();
        s.handle(CREATE, &[]);
        s.tid += 1;
        s
    }

    pub fn new() -> Scene {
        let manifest = Manifest {
            schema: SCHEMA,
            tool: "scene".into(),
            state: State::Complete,
            device: Device {
                name: "loop0".into(),
                dev: "7:0".into(),
                ..Device::default()
            },
            filesystem: Some(Filesystem {
                kind: "ext4".into(),
                ..Filesystem::default()
            }),
            losses: LOSSES.map(|name| (name.to_owned(), 0)).into(),
            ..Manifest::default()
        };
        Scene {
            manifest,
            tells_each: true,
            tid: 1,
            generation: 1,
            step_us: 1000,
            now_us: 1000,
            ..Scene::default()
        }
    }

    /// Adds a PROCESS note.
    pub fn note(&mut self, thread: Thread) {
        let mut pdu = thread.comm.as_bytes().to_vec();
        pdu.resize(16, 0);
        let time = self.now_us * 1000;
        self.events
            .extend(record(time, 1 << 26, 0, 0, thread.pid, &pdu));
    }

    /// Adds a message, as blkcg writes them.
    pub fn message(&mut self, text: &str) {
        let time = self.now_us * 1000;
        let message = record(time, 1 << 26 | 2, 0, 0, 0, text.as_bytes());
        self.events.extend(message);
    }

    /// Adds Q, G, I, D and C of one request, a step after the one before.
    pub fn request(&mut self, flags: u32, sector: u64, bytes: u32, thread: Thread) {
        self.now_us += self.step_us;
        for (act, at, pid) in [
            (1, 0, thread.pid),
            (4, 1, thread.pid),
            (12, 10, thread.pid),
            (7, 20, 9),
            (8, 100, 0),
        ] {
            let time = self.now_us * 1000 + at * self.step_us;
            self.events
                .extend(record(time, flags | act, sector, bytes, pid, &[]));
        }
    }

    /// Adds a request of two bios of equal length: the first one was queued `ago_us` µs before the second one, which was merged into
    /// its request.
    pub fn merged(&mut self, flags: u32, sector: u64, bytes: u32, thread: Thread, ago_us: u64) {
        self.now_us += self.step_us;
        let behind = sector + u64::from(bytes / 512);
        let first = self.now_us - ago_us;
        for (act, us, sector, bytes) in [
            (1, first, sector, bytes),
            (4, first + 1, sector, bytes),
            (1, self.now_us, behind, bytes),
            (2, self.now_us + 1, behind, bytes),
            (7, self.now_us + 20, sector, 2 * bytes),
            (8, self.now_us + 100, sector, 2 * bytes),
        ] {
            let record = record(us * 1000, flags | act, sector, bytes, thread.pid, &[]);
            self.events.extend(record);
        }
    }

    /// Adds a bio that the disk takes in two requests of equal length.
    pub fn halved(&mut self, flags: u32, sector: u64, bytes: u32, thread: Thread) {
        self.now_us += self.step_us;
        let half = bytes / 2;
        let behind = sector + u64::from(half / 512);
        for (act, us, sector, bytes) in [
            (1, 0, sector, bytes),
            (13, 1, sector, bytes),
            (7, 20, sector, half),
            (7, 30, behind, half),
            (8, 100, sector, half),
            (8, 110, behind, half),
        ] {
            let pdu = if act == 13 {
                behind.to_be_bytes().to_vec()
            } else {
                vec![]
            };
            let time = (self.now_us + us) * 1000;
            let record = record(time, flags | act, sector, bytes, thread.pid, &pdu);
            self.events.extend(record);
        }
    }

    /// Adds a cache flush that the device executes: a lone C.
    pub fn device_flush(&mut self) {
        self.now_us += self.step_us;
        self.events
            .extend(record(self.now_us * 1000, READ | FLUSH | 8, 0, 0, 0, &[]));
    }

    fn head(&self, kind: u16, size: usize, sector: u64, bytes: u32) -> RawHead {
        RawHead {
            kind: kind.into(),
            size: (size as u16).into(),
            dev: DEVICE.into(),
            time_ns: (self.now_us * 1000 + 10 * self.step_us + self.step_us / 2).into(),
            sector: sector.into(),
            bytes: bytes.into(),
            stage: Stage::INSERT,
            ..RawHead::default()
        }
    }

    /// Adds a request and the entry of its process.
    pub fn owned(&mut self, flags: u32, sector: u64, bytes: u32, thread: Thread, origin: Origin) {
        self.request(flags, sector, bytes, thread);
        self.process(sector, bytes, thread, origin);
    }

    /// Adds the process entry of the last request.
    pub fn process(&mut self, sector: u64, bytes: u32, thread: Thread, origin: Origin) {
        self.journal(sector, bytes, thread, origin, Jbd2::NONE, NONE);
    }

    /// Adds the process entry of the last request for a jbd2 block.
    pub fn journal(
        &mut self,
        sector: u64,
        bytes: u32,
        thread: Thread,
        origin: Origin,
        jbd2: Jbd2,
        home: u64,
    ) {
        let comm = comm_of(thread);
        let raw = RawProcess {
            head: self.head(TYPE_PROCESS, 88, sector, bytes),
            submit_ns: (self.now_us * 1000).into(),
            home_sector: home.into(),
            pid: thread.pid.into(),
            tgid: thread.tgid.into(),
            uid: uid_of(thread).into(),
            opf: 1.into(),
            tid: if jbd2 == Jbd2::NONE { 0 } else { self.tid }.into(),
            origin,
            jbd2,
            comm,
            ..RawProcess::default()
        };
        self.processes.push(raw.as_bytes().to_vec());
    }

    /// Sets flags of the last process entry.
    pub fn flag_process(&mut self, flags: Flags) {
        flag_last(&mut self.processes, flags);
    }

    /// Sets flags of the last dirtier entry.
    pub fn flag_dirtier(&mut self, flags: Flags) {
        flag_last(self.dirtiers.get_or_insert_default(), flags);
    }

    /// Sets flags of the last call.
    pub fn flag_call(&mut self, flags: Flags) {
        flag_last(self.calls.get_or_insert_default(), flags);
    }

    /// Lets time pass.
    pub fn wait(&mut self, us: u64) {
        self.now_us += us;
    }

    /// Sets flags of the last handle.
    pub fn flag_handle(&mut self, flags: Flags) {
        flag_last(self.handles.get_or_insert_default(), flags);
    }

    /// Adds a file entry of the last request.
    pub fn file(&mut self, sector: u64, bytes: u32, inode: u64, offset: u64, name: &[u8]) {
        let size = 72 + name.len().next_multiple_of(8);
        let raw = RawFile {
            head: self.head(TYPE_FILE, size, sector, bytes),
            ino: inode.into(),
            offset: offset.into(),
            parent: 2.into(),
            generation: self.generation.into(),
            s_dev: DEVICE.into(),
            nlink: 1.into(),
            name_len: (name.len() as u16).into(),
            origin: Origin::FILE,
            what: What::REGULAR,
        };
        let mut record = raw.as_bytes().to_vec();
        record.extend_from_slice(name);
        record.resize(size, 0);
        self.files.push(record);
    }

    /// Adds a dirtier entry of the last request, for a page that was dirty for half a second.
    pub fn dirtier(&mut self, sector: u64, bytes: u32, thread: Thread) {
        self.dirtier_since(sector, bytes, thread, 500);
    }

    /// The same for a thread that made the first page dirty `ago_us` µs ago.
    pub fn dirtier_since(&mut self, sector: u64, bytes: u32, thread: Thread, ago_us: u64) {
        let comm = comm_of(thread);
        let raw = RawDirtier {
            head: self.head(TYPE_DIRTIER, 72, sector, bytes),
            dirty_ns: (self.now_us.saturating_sub(ago_us) * 1000).into(),
            pid: thread.pid.into(),
            tgid: thread.tgid.into(),
            uid: uid_of(thread).into(),
            pad: 0.into(),
            comm,
        };
        let record = raw.as_bytes().to_vec();
        self.dirtiers.get_or_insert_default().push(record);
    }

    /// Adds a handle of the running transaction that ends a step later; it dirties blocks of 4096 bytes at these home
    /// sectors.
    pub fn handle(&mut self, of: HandleOf, homes: &[u64]) {
        self.now_us += self.step_us;
        let functions = &mut self.manifest.functions;
        let known = functions.iter().position(|name| name == of.function);
        let function = known.unwrap_or_else(|| {
            functions.push(of.function.to_owned());
            functions.len() - 1
        });
        let handles = self.handles.get_or_insert_default();
        let id = handles.len() as u64 + 1;
        let mut head = head_at(TYPE_HANDLE, 120, self.now_us);
        head.flags = match (of.overlaps, self.tells_each) {
            (true, _) => handle_flags::OVERLAP,
            (false, true) => handle_flags::EACH_CAUSE,
            (false, false) => Flags(0),
        };
        let raw = RawHandle {
            head,
            id: id.into(),
            start_ns: (self.now_us.saturating_sub(of.lasted_us).max(1) * 1000).into(),
            ino: of.inode.into(),
            function: (function as u64).into(),
            generation: self.generation.into(),
            s_dev: of.s_dev.into(),
            tid: self.tid.into(),
            pid: of.thread.pid.into(),
            tgid: of.thread.tgid.into(),
            uid: uid_of(of.thread).into(),
            requested: 8.into(),
            dirtied: (homes.len() as u32).into(),
            named: (homes.len() as u32).into(),
            kind: 0.into(),
            call: (of.call as u16).into(),
            comm: comm_of(of.thread),
        };
        handles.push(raw.as_bytes().to_vec());
        for &home in homes {
            let mut head = head_at(TYPE_DIRTIED, 48, self.now_us);
            (head.sector, head.bytes) = (home.into(), 4096.into());
            if self.tells_each {
                head.flags = dirtied_flags::EACH;
            }
            let raw = RawDirtied {
                head,
                handle: id.into(),
                tid: self.tid.into(),
                ..RawDirtied::default()
            };
            let record = raw.as_bytes().to_vec();
            self.dirtied.get_or_insert_default().push(record);
        }
    }

    /// Lets an inode free the block of 4096 bytes at this home sector in the running transaction, a step later.
    pub fn free(&mut self, home: u64, inode: u64) {
        self.now_us += self.step_us;
        let mut head = head_at(TYPE_FREED, 56, self.now_us);
        (head.sector, head.bytes) = (home.into(), 4096.into());
        let raw = RawFreed {
            head,
            ino: inode.into(),
            generation: self.generation.into(),
            s_dev: DEVICE.into(),
            tid: self.tid.into(),
            ..RawFreed::default()
        };
        self.manifest.sources.entries = "bpf".into();
        let record = raw.as_bytes().to_vec();
        self.freed.get_or_insert_default().push(record);
    }

    /// Adds a call that returns a step later.
    pub fn call(&mut self, of: CallOf) {
        self.now_us += self.step_us;
        let mut head = head_at(TYPE_CALL, 120, self.now_us);
        if of.first_bytes.is_some() {
            head.flags = call_flags::FIRST;
        }
        let raw = RawCall {
            head,
            start_ns: (self.now_us.saturating_sub(of.lasted_us).max(1) * 1000).into(),
            ino: of.inode.into(),
            offset: of.offset.into(),
            bytes: of.bytes.into(),
            result: match of.kind {
                CallKind::Write => of.bytes as i64,
                _ => 0,
            }
            .into(),
            first_bytes: of.first_bytes.unwrap_or_default(),
            generation: self.generation.into(),
            s_dev: DEVICE.into(),
            pid: of.thread.pid.into(),
            tgid: of.thread.tgid.into(),
            uid: uid_of(of.thread).into(),
            kind: (of.kind as u16).into(),
            cp_reason: 0.into(),
            comm: comm_of(of.thread),
        };
        let record = raw.as_bytes().to_vec();
        self.calls.get_or_insert_default().push(record);
    }

    /// Adds a step of f2fs that a thread takes, a step later.
    pub fn f2fs(&mut self, step: Step, thread: Thread) {
        self.now_us += self.step_us;
        let mut head = head_at(TYPE_F2FS, 72, self.now_us);
        if thread.pid < 100 {
            head.flags = Flags::KERNEL_THREAD;
        }
        let raw = RawF2fs {
            head,
            s_dev: DEVICE.into(),
            pid: thread.pid.into(),
            tgid: thread.tgid.into(),
            uid: uid_of(thread).into(),
            step: (step as u16).into(),
            reason: 0.into(),
            call: (CallKind::Fsync as u16).into(),
            pad: 0.into(),
            comm: comm_of(thread),
        };
        let record = raw.as_bytes().to_vec();
        self.f2fs.get_or_insert_default().push(record);
    }

    /// Commits the running transaction: a descriptor, copies of blocks with these homes and the commit block, each of 4096
    /// bytes from `sector` on, then the end of its flush; starts the next transaction.
    pub fn commit(&mut self, sector: u64, homes: &[u64]) {
        let blocks = homes.len() as u64 + 1;
        self.request(WRITE | SYNC, sector, blocks as u32 * 4096, JBD2);
        let o = Origin::JOURNAL;
        self.journal(sector, 4096, JBD2, o, Jbd2::DESCRIPTOR, NONE);
        for (at, &home) in (1..).zip(homes) {
            self.journal(sector + at * 8, 4096, JBD2, o, Jbd2::METADATA_COPY, home);
        }
        let commit = sector + blocks * 8;
        self.request(WRITE | SYNC | FLUSH, commit, 4096, JBD2);
        self.journal(commit, 4096, JBD2, o, Jbd2::COMMIT, NONE);
        self.request(WRITE | SYNC | FLUSH, commit, 0, JBD2);
        self.tid += 1;
    }

    /// Adds a write of a file by its process, with both entries.
    pub fn write_file(&mut self, sector: u64, bytes: u32, inode: u64, name: &[u8]) {
        self.owned(WRITE | SYNC, sector, bytes, SQLITE, Origin::FILE);
        self.file(sector, bytes, inode, 0, name);
    }

    /// Writes `NAME.most` into `dir`.
    pub fn save(&self, dir: &Path) -> PathBuf {
        let folder = dir.join("scene.most");
        let writer = Writer::create(&folder).unwrap();
        writer.put_manifest(&self.manifest).unwrap();
        std::fs::write(writer.path(&layout::trace_of_cpu(0)), &self.events).unwrap();
        let tables = [
            (layout::PROCESS, Some(&self.processes)),
            (layout::FILE, Some(&self.files)),
            (layout::DIRTIER, self.dirtiers.as_ref()),
            (layout::FREED, self.freed.as_ref()),
            (layout::HANDLE, self.handles.as_ref()),
            (layout::DIRTIED, self.dirtied.as_ref()),
            (layout::CALL, self.calls.as_ref()),
            (layout::F2FS, self.f2fs.as_ref()),
        ];
        for (name, records) in tables {
            let Some(records) = records else { continue };
            let mut table = TableWriter::create(&writer.path(name)).unwrap();
            records
                .iter()
                .for_each(|record| table.push(record).unwrap());
            table.flush().unwrap();
        }
        if let Some(packages) = self.packages {
            std::fs::write(writer.path(layout::PACKAGES), packages).unwrap();
        }
        folder
    }
}

/// Sets flags in the head of the last entry of a table.
fn flag_last(entries: &mut [Vec<u8>], flags: Flags) {
    let flags_at = std::mem::offset_of!(RawHead, flags);
    entries.last_mut().unwrap()[flags_at] |= flags.0;
}

/// The kernel's threads belong to root.
fn uid_of(thread: Thread) -> u32 {
    if thread.pid < 100 { 0 } else { 1000 }
}

fn comm_of(thread: Thread) -> [u8; 16] {
    let mut comm = [0; 16];
    comm[..thread.comm.len()].copy_from_slice(thread.comm.as_bytes());
    comm
}

/// Returns the head of an entry of the tables of causes.
fn head_at(kind: u16, size: u16, time_us: u64) -> RawHead {
    RawHead {
        kind: kind.into(),
        size: size.into(),
        dev: DEVICE.into(),
        time_ns: (time_us * 1000).into(),
        sector: NONE.into(),
        ..RawHead::default()
    }
}

/// Makes one SQLite transaction in rollback mode, reduced to its main requests:
///
/// | request | bytes | class, kind, role |
/// | --- | --- | --- |
/// | a.db-journal | 8192 | data, regular, rollback_journal |
/// | jbd2: descriptor, copy of an inode table block, commit: three bios, one request | 12288 | journal |
/// | cache flush, end of the flush sequence | 0 | – |
/// | a.db | 4096 | data, regular, db |
/// | inode table, from the device's page cache | 4096 | unknown without a map |
/// | a.db, read | 16384 | data, regular, db |
/// | discard | 65536 | – |
pub fn transaction() -> Scene {
    let mut s = Scene::new();
    s.write_file(800, 8192, 12, b"a.db-journal");

    s.request(WRITE | SYNC, 2000, 12288, JBD2);
    let o = Origin::JOURNAL;
    s.journal(2000, 4096, JBD2, o, Jbd2::DESCRIPTOR, NONE);
    s.journal(2008, 4096, JBD2, o, Jbd2::METADATA_COPY, 8);
    s.journal(2016, 4096, JBD2, o, Jbd2::COMMIT, NONE);
    s.device_flush();
    s.request(WRITE | SYNC, 2016, 0, JBD2);

    s.write_file(1000, 4096, 13, b"a.db");

    s.owned(WRITE, 8, 4096, KWORKER, Origin::BDEV);

    s.owned(READ, 1000, 16384, SQLITE, Origin::FILE);
    s.file(1000, 16384, 13, 0, b"a.db");

    s.request(WRITE | DISCARD, 4000, 65536, JBD2);
    s
}
