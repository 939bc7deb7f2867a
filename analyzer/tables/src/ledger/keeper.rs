// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums the segments of a running recording by the hour.

use std::collections::HashSet;
use std::io;

use mostrace_bundle::entry::{CallKind, RawCall};
use mostrace_bundle::health::Gauges;
use mostrace_bundle::manifest::Manifest;
use mostrace_bundle::{Packages, Total};
use mostrace_map::class::Kind;

use super::hour::{Figures, Gap, Hour, Key, Reading, Watched, since};
use super::running::Running;
use super::uid_io::UidIo;
use crate::facts::package;
use mostrace_trace::attribute::role::Roles;
use mostrace_trace::attribute::{
    FileId, HashMap, Op, ProcessId, Registry, Task, called, database_of,
};
use mostrace_trace::causes::{Cause, CauseId, Verdicts, asks};
use mostrace_trace::live::Paths;
use mostrace_trace::origins::Base;
use mostrace_trace::pipeline::{Fold, Step, Stretch};
use mostrace_trace::sums::Label;
use mostrace_trace::sums::layer::Layer;
use mostrace_trace::tally::Tally;
use mostrace_trace::text::escape;

/// Reads a drive's own counters; none if it has none.
pub type Drive = Box<dyn FnMut() -> Gauges + Send>;

/// The key by which calls are summed up: user, name of the process, path of the cgroup, and operation.
type Caller = (u32, String, Option<Box<[u8]>>, &'static str);

/// Gives `tell` each hour when it is over. A segment counts for the hour in which it begins by the wall clock.
pub struct Keeper<F> {
    every: u64,
    packages: Packages,
    uid_io: UidIo,
    drive: Drive,
    tell: F,
    running: Running,
    /// The kernel's counters at the end of each hour that the ledger already has; empty after the first segment.
    before: Vec<Reading>,
    /// What the kernel had counted when the last segment ended.
    total: Option<Total>,
    /// The segment's shares; they are named at its end, because names may be known late.
    shares: HashMap<(CauseId, Option<Kind>, FileId), Figures>,
    /// The segment's calls.
    calls: HashMap<Caller, Figures>,
    paths: Paths,
    /// The temporary files of databases, which tell what the files beside them are.
    companions: HashSet<Box<[u8]>>,
}

impl<F: FnMut(Hour)> Keeper<F> {
    /// Makes hours of `every` seconds. The users of apps are named after these packages. `drive` is read when an hour is over.
    /// `before` are the ends of the ledger's hours so far. The hour that is not over is in `running`.
    pub fn new(
        every: u64,
        packages: Packages,
        uid_io: UidIo,
        drive: Drive,
        before: Vec<Reading>,
        running: Running,
        tell: F,
    ) -> Keeper<F> {
        Keeper {
            every: every.max(1),
            packages,
            uid_io,
            drive,
            tell,
            running,
            before,
            total: None,
            shares: HashMap::default(),
            calls: HashMap::default(),
            paths: Paths::default(),
            companions: HashSet::default(),
        }
    }

    /// Gives the last hour, which may not be over.
    pub fn finish(mut self) {
        self.end_hour();
    }

    fn end_hour(&mut self) {
        let mut hour = self.running.with(std::mem::take);
        if hour.watched.ns > 0 || !hour.rows.is_empty() {
            hour.watched.drive = (self.drive)();
            (self.tell)(hour);
        }
    }

    /// Returns the key of a task, without what it did.
    fn task(&self, uid: Option<u32>, command: Option<String>) -> Key {
        Key {
            uid,
            package: uid.and_then(|uid| package(&self.packages, uid)),
            command,
            ..Key::default()
        }
    }

    fn process(&self, id: ProcessId, registry: &Registry<'_>) -> Key {
        let process = registry.process(id);
        let number = process.tgid.or(process.pid);
        let command = number.map(|_| called(process.process_comm.as_deref()));
        Key {
            cgroup: process.cgroup.as_deref().map(escape),
            ..self.task(process.uid, command)
        }
    }

    /// Adds what is known of the segment as a whole and its rows, after it has ended the hour before.
    fn watch(&mut self, manifest: &Manifest, rows: Vec<(Key, Figures)>) {
        let clock = &manifest.clock;
        let seconds = clock.start_unix_ns / 1_000_000_000;
        let into = seconds.checked_rem(self.every).unwrap_or(0);
        let begin = seconds.saturating_sub(into);
        if begin != self.running.with(|hour| hour.begin) {
            self.end_hour();
        }
        // All at once, because others look.
        let running = self.running.clone();
        running.with(|hour| {
            hour.begin = begin;
            hour.device.clone_from(&manifest.device.dev);
            self.count(manifest, &mut hour.watched);
            for (key, figures) in rows {
                hour.add(key, figures);
            }
        });
    }

    fn count(&mut self, manifest: &Manifest, watched: &mut Watched) {
        let clock = &manifest.clock;
        let totals = manifest.totals.as_ref();
        let reading = |unix_ns: u64, total| Reading {
            unix_ms: unix_ns / 1_000_000,
            total,
            epoch: totals.map(|totals| totals.epoch.clone()),
        };
        let begin = reading(clock.start_unix_ns, totals.map(|totals| totals.began));
        let before = std::mem::take(&mut self.before);
        watched.gap = watched.gap.or(Gap::before(&begin, before));
        let ns = clock.stop_mono_ns.saturating_sub(clock.start_mono_ns);
        watched.ns.tally(ns);
        for (what, lost) in manifest.losses.iter().filter(|(_, lost)| **lost > 0) {
            log::info!("lost in a segment: {what} {lost}");
            watched.lost.tally(*lost);
        }
        if let Some(totals) = totals {
            // From the end of the segment before, so that nothing between two segments is left out.
            let counted = since(self.total.unwrap_or(totals.began), totals.ended);
            let kernel = watched.kernel.get_or_insert_default();
            kernel.write_bytes.tally(counted.write_bytes);
            kernel.read_bytes.tally(counted.read_bytes);
            self.total = Some(totals.ended);
        }
        watched.end = reading(clock.start_unix_ns.saturating_add(ns), self.total);
    }
}

impl<F: FnMut(Hour)> Fold for Keeper<F> {
    fn begin(&mut self, _: Base) {
        self.paths.begin();
        self.companions.clear();
    }

    fn call(&mut self, call: &RawCall, registry: &Registry<'_>) {
        let kind = CallKind::of(call.kind.get());
        let writes = matches!(kind, CallKind::Write | CallKind::Splice);
        let mut figures = Figures::default();
        if writes && call.result.get() >= 0 {
            figures.asked_bytes = call.bytes.get();
        }
        if asks(call) {
            let took = call.head.time_ns.get().saturating_sub(call.start_ns.get());
            figures.durable.count(took);
        }
        if figures == Figures::default() {
            return;
        }
        let (task, time_ns) = (Task::from(call), call.head.time_ns.get());
        let cgroup = registry.cgroup(task.tgid, time_ns).map(Into::into);
        let command = called(registry.process_names().of_task(&task, time_ns));
        let whose = (task.uid, command, cgroup, kind.into());
        self.calls.entry(whose).or_default().tally(figures);
    }

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        let verdicts = step.verdicts.into_iter().flat_map(Verdicts::iter);
        let mut is_first = true;
        for (row, (_, shares)) in step.rows.iter().zip(verdicts) {
            self.paths.learn(row.file, || step.registry.file(row.file));
            // Only the contents of regular files have roles.
            let is_regular = row.kind == Some(Kind::Regular);
            let file = if is_regular { row.file } else { FileId::NONE };
            let nobody = [(CauseId::UNKNOWN, row.bytes)];
            let shares = shares.iter().map(|share| (share.cause, share.bytes));
            let nobody = nobody.into_iter().take(usize::from(shares.len() == 0));
            for (cause, bytes) in shares.chain(nobody) {
                let figures = figures(row.op, bytes, std::mem::take(&mut is_first));
                let what = (cause, row.kind, file);
                self.shares.entry(what).or_default().tally(figures);
            }
        }
        Ok(())
    }

    fn end(&mut self, segment: &Stretch<'_>) -> io::Result<()> {
        let Some(manifest) = segment.manifest else {
            return Ok(());
        };
        let filesystem = manifest.filesystem.as_ref();
        let filesystem = filesystem.map_or("the filesystem", |fs| fs.kind.as_str());
        let registry = segment.registry;
        let shares = std::mem::take(&mut self.shares);
        let mut paths: HashMap<FileId, Box<[u8]>> = HashMap::default();
        for (.., id) in shares.keys() {
            let file = registry.file(*id);
            let by_inode = || self.paths.of(file.inode?, file.generation);
            if let Some(path) = file.path.as_deref().or_else(by_inode) {
                paths.insert(*id, path.into());
            }
        }
        let of_databases = paths.values().filter(|path| database_of(path).is_some());
        self.companions.extend(of_databases.cloned());
        let all = paths.values().chain(&self.companions);
        let roles = Roles::new(all.map(|path| &**path), None);
        self.paths.end_segment();
        let mut rows = Vec::new();
        for ((cause, kind, file), figures) in shares {
            let Cause {
                process, operation, ..
            } = segment.cause(cause);
            let class = kind.map(|kind| kind.class().as_str());
            let role = paths.get(&file).map(|path| roles.of(path).as_str());
            let labels = [class, kind.map(Kind::as_str), role, None];
            let layer = Layer::of(
                &labels.map(|word| word.map_or(Label::Empty, |word| Label::Text(word.into()))),
            );
            let key = Key {
                operation: operation.map(Into::into),
                class,
                role,
                layer: layer.map(|layer| layer.name(filesystem)),
                ..self.process(process, registry)
            };
            rows.push((key, figures));
        }
        for (uid, charged_bytes) in self.uid_io.since_last() {
            let figures = Figures {
                charged_bytes,
                ..Figures::default()
            };
            let key = self.task(Some(uid), None);
            rows.push((key, figures));
        }
        for ((uid, command, cgroup, operation), figures) in std::mem::take(&mut self.calls) {
            let key = Key {
                operation: Some(operation),
                cgroup: cgroup.as_deref().map(escape),
                ..self.task(Some(uid), Some(command))
            };
            rows.push((key, figures));
        }
        self.watch(manifest, rows);
        Ok(())
    }
}

/// Returns the figures of a share. A request is counted with its first share.
fn figures(op: Op, bytes: u32, is_first: bool) -> Figures {
    let (bytes, one) = (u64::from(bytes), u64::from(is_first));
    let mut figures = Figures::default();
    match op {
        Op::Write => (figures.write_bytes, figures.writes) = (bytes, one),
        Op::Read => (figures.read_bytes, figures.reads) = (bytes, one),
        Op::WriteZeroes => figures.zeroed_bytes = bytes,
        Op::Discard => figures.discard_bytes = bytes,
        Op::Flush => figures.flushes = one,
        _ => {}
    }
    figures
}
