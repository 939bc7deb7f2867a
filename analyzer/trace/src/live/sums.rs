// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sums over the segments by cause. They grow with the processes and paths up to a bound, not with time.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::time::Duration;

use mostrace_bundle::entry::{CallKind, RawCall};
use mostrace_bundle::manifest::Manifest;
use mostrace_map::class::Class;

use super::paths::Paths;
use super::view::{Amount, Latency, Line, View};
use crate::attribute::{
    self, File, FileId, HashMap, Loops, Op, Process, ProcessId, Registry, Row, Task, called,
};
use crate::causes::{Cause, CauseId, Verdicts};
use crate::pipeline::{Step, Stretch};
use crate::sums::{Sort, Totals};
use crate::tally::Tally;
use crate::text::escape;

/// The sums of the current segment and of all.
#[derive(Default)]
pub(super) struct Sums {
    /// The device's completions in this segment.
    now: Totals,
    write_latency: Latency,
    read_latency: Latency,
    /// The shares of this segment.
    by_cause: HashMap<Whose, Amount>,
    /// The bytes that each process's calls wrote in this segment.
    asked: HashMap<Named, u64>,
    /// The same by cgroup.
    asked_in: HashMap<Place, u64>,
    since: Duration,
    device: Totals,
    classes: [u64; Class::ALL.len()],
    asked_in_all: u64,
    lost: u64,
    /// The lines by process.
    processes: HashMap<Who, Line>,
    /// The lines by path, or by inode as long as no path is known; None if neither is.
    files: HashMap<Option<Which>, Line>,
    /// The lines by the cgroup of the process.
    cgroups: HashMap<Place, Line>,
    paths: Paths,
    loops: Loops,
}

/// The owner of a share of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Whose {
    Cause(CauseId),
    /// The submitter and the file, if the cause is unknown.
    Submitter(ProcessId, FileId),
}

impl Whose {
    fn of(cause: CauseId, row: &Row) -> Whose {
        match cause {
            CauseId::UNKNOWN => Whose::Submitter(row.process, row.file),
            cause => Whose::Cause(cause),
        }
    }
}

/// A process under one name, which is escaped for a terminal.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Named {
    tgid: u32,
    name: String,
}

/// A process that has a line.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Who {
    Process(Named),
    /// A submitter, by its marked name.
    Submitter(String),
    Nobody,
    Others,
}

/// The key of a cgroup's line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Cgroup(Box<[u8]>),
    Unknown,
    Others,
}

impl Place {
    fn of(cgroup: Option<&[u8]>) -> Place {
        cgroup.map_or(Place::Unknown, |path| Place::Cgroup(path.into()))
    }

    fn name(&self) -> String {
        match self {
            Place::Cgroup(path) => escape(path),
            Place::Unknown => UNKNOWN.into(),
            Place::Others => OTHERS.into(),
        }
    }
}

/// The key of a file's line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Which {
    Path(Box<[u8]>),
    /// Inode and generation; the latter is kept only as long as a path may become known.
    Inode(u64, Option<u32>),
    Others,
}

impl Sums {
    /// Forgets which file each number was: the numbers begin anew.
    pub fn begin(&mut self) {
        self.paths.begin();
    }

    /// Adds a system call.
    pub fn call(&mut self, call: &RawCall, registry: &Registry<'_>) {
        let kind = CallKind::of(call.kind.get());
        if matches!(kind, CallKind::Write | CallKind::Splice) && call.result.get() >= 0 {
            let (task, time_ns) = (Task::from(call), call.head.time_ns.get());
            let place = Place::of(registry.cgroup(task.tgid, time_ns));
            let asked = self.asked_in.entry(place).or_default();
            asked.tally(call.bytes.get());
            let named = Named {
                tgid: task.tgid,
                name: called(registry.process_names().of_task(&task, time_ns)),
            };
            self.asked.entry(named).or_default().tally(call.bytes.get());
        }
    }

    /// Adds a completion.
    pub fn step(&mut self, step: &Step<'_, '_>) {
        let Step {
            request,
            rows,
            registry,
            ..
        } = step;
        let verdicts = step.verdicts.into_iter().flat_map(Verdicts::iter);
        self.now.count(Sort::of(request), 1, request.bytes.into());
        match request.op {
            Op::Write => self.write_latency.count(request),
            Op::Read => self.read_latency.count(request),
            _ => {}
        }
        for (row, (_, shares)) in rows.iter().zip(verdicts) {
            self.paths.learn(row.file, || registry.file(row.file));
            match row.op {
                Op::Write => {
                    let class = row.class().unwrap_or(Class::Unknown) as usize;
                    for share in shares {
                        let amount = self.amount(share.cause, row);
                        amount.classes[class].tally(share.bytes.into());
                    }
                }
                Op::Read => {
                    for share in shares {
                        self.amount(share.cause, row).read.tally(share.bytes.into());
                    }
                }
                Op::Flush => {
                    let cause = shares.first().map_or(CauseId::UNKNOWN, |s| s.cause);
                    self.amount(cause, row).flushes.tally(1);
                }
                _ => {}
            }
        }
    }

    fn amount(&mut self, cause: CauseId, row: &Row) -> &mut Amount {
        self.by_cause.entry(Whose::of(cause, row)).or_default()
    }

    /// Returns the submitter that stands in for an unknown cause, and its name.
    fn submitter(&self, id: ProcessId, file: FileId, registry: &Registry<'_>) -> (Who, String) {
        let process = registry.process(id);
        let device = self.loops.of(registry.file(file));
        let name = || called(process.process_comm.as_deref());
        match attribute::submitter(process, device, name) {
            Some(name) => (Who::Submitter(name.clone()), name),
            None => (Who::Nobody, UNKNOWN.into()),
        }
    }

    fn which(&self, file: &File) -> Option<Which> {
        let path = file.path.clone().map(Which::Path);
        path.or_else(|| Some(self.named(file.inode?, file.generation)))
    }

    /// Returns the file's key: its path if one is known.
    fn named(&self, inode: u64, generation: Option<u32>) -> Which {
        let path = self.paths.of(inode, generation);
        path.map_or(Which::Inode(inode, generation), |path| {
            Which::Path(path.into())
        })
    }

    /// Moves lines to paths that have become known since; a file that still has none and caused nothing in this segment
    /// loses its generation.
    fn name_files(&mut self) {
        let of_inodes = self.files.iter().filter_map(|(which, line)| match which {
            &Some(Which::Inode(inode, Some(generation))) => {
                Some((inode, generation, line.now == Amount::default()))
            }
            _ => None,
        });
        for (inode, generation, is_idle) in of_inodes.collect::<Vec<_>>() {
            let which = match self.named(inode, Some(generation)) {
                Which::Inode(..) if !is_idle => continue,
                Which::Inode(..) => Which::Inode(inode, None),
                path => path,
            };
            let nameless = Some(Which::Inode(inode, Some(generation)));
            if let Some(line) = self.files.remove(&nameless) {
                let name = name_of_file(Some(&which));
                let named = self.files.entry(Some(which)).or_insert_with(|| Line {
                    name,
                    ..Line::default()
                });
                named.add(&line);
            }
        }
    }

    /// Ends the segment of this manifest and returns its view.
    pub fn end(&mut self, segment: &Stretch<'_>, manifest: &Manifest) -> View {
        let registry = segment.registry;
        self.loops = Loops::new(&manifest.loops);
        let clock = &manifest.clock;
        let lasted = clock.stop_mono_ns.saturating_sub(clock.start_mono_ns);
        let lasted = Duration::from_nanos(lasted);
        self.since = self.since.saturating_add(lasted);
        let lines = self.processes.values_mut().chain(self.files.values_mut());
        let lines = lines.chain(self.cgroups.values_mut());
        lines.for_each(|line| line.now = Amount::default());
        let mut classes = [0_u64; Class::ALL.len()];
        for (whose, amount) in std::mem::take(&mut self.by_cause) {
            let (who, name, process, file) = match whose {
                Whose::Cause(id) => {
                    let Cause { process, file, .. } = segment.cause(id);
                    let (who, name) = process_of(registry.process(process));
                    (who, name, process, file)
                }
                Whose::Submitter(process, file) => {
                    let (who, name) = self.submitter(process, file, registry);
                    (who, name, process, file)
                }
            };
            add(&mut self.processes, who, amount, || name);
            let place = Place::of(registry.process(process).cgroup.as_deref());
            let name = place.name();
            add(&mut self.cgroups, place, amount, || name);
            let which = self.which(registry.file(file));
            let name = || name_of_file(which.as_ref());
            add(&mut self.files, which.clone(), amount, name);
            classes.tally(amount.classes);
        }
        self.name_files();
        self.paths.end_segment();
        let mut asked_now = 0_u64;
        for (named, asked) in self.asked.drain() {
            asked_now.tally(asked);
            let amount = Amount {
                asked,
                ..Amount::default()
            };
            let name = named.name.clone();
            add(&mut self.processes, Who::Process(named), amount, || name);
        }
        for (place, asked) in self.asked_in.drain() {
            let amount = Amount {
                asked,
                ..Amount::default()
            };
            let name = place.name();
            add(&mut self.cgroups, place, amount, || name);
        }
        self.asked_in_all.tally(asked_now);
        sum_up(&mut self.processes, MOST_LINES, Who::Others);
        sum_up(&mut self.files, MOST_LINES, Some(Which::Others));
        sum_up(&mut self.cgroups, MOST_LINES, Place::Others);
        let now = std::mem::take(&mut self.now);
        self.device.tally(now);
        self.classes.tally(classes);
        let losses = manifest.losses.values();
        losses.for_each(|lost| self.lost.tally(*lost));
        let mut both = [(0, 0); Class::ALL.len()];
        for (at, both) in both.iter_mut().enumerate() {
            *both = (classes[at], self.classes[at]);
        }
        View {
            lasted,
            since: self.since,
            now,
            device: self.device,
            classes: both,
            asked: segment.has_calls.then_some((asked_now, self.asked_in_all)),
            write_latency: std::mem::take(&mut self.write_latency),
            read_latency: std::mem::take(&mut self.read_latency),
            processes: first(by_command(&self.processes)),
            files: first(by_name(self.files.values())),
            cgroups: first(by_name(self.cgroups.values())),
            lost: self.lost,
            interference: manifest.interference.clone(),
        }
    }
}

fn add<K: Eq + Hash>(
    lines: &mut HashMap<K, Line>,
    key: K,
    amount: Amount,
    name: impl FnOnce() -> String,
) {
    let line = match lines.entry(key) {
        Entry::Occupied(line) => line.into_mut(),
        Entry::Vacant(place) => place.insert(Line {
            name: name(),
            ..Line::default()
        }),
    };
    line.now.tally(amount);
    line.all.tally(amount);
}

const UNKNOWN: &str = "unknown";
/// No thread has such a long name.
const OTHERS: &str = "(all other names)";

/// The most processes and the most files that have lines.
const MOST_LINES: usize = 1 << 14;

/// Sums up the lines with the fewest bytes if there are more than `most`, so that half as many are left.
fn sum_up<K: Eq + Hash>(lines: &mut HashMap<K, Line>, most: usize, others: K) {
    if lines.len() <= most {
        return;
    }
    let mut all: Vec<(K, Line)> = std::mem::take(lines).into_iter().collect();
    all.sort_by_key(|(_, line)| Reverse((line.all.bytes(), line.all.read, line.all.asked)));
    let rest = all.split_off(most / 2);
    lines.extend(all);
    let sum = lines.entry(others).or_default();
    OTHERS.clone_into(&mut sum.name);
    for (_, line) in rest {
        sum.add(&line);
    }
}

/// Number of lines that are shown for the current segment, and number of further lines for the total.
const SHOWN: usize = 100;

/// Returns the lines that caused most in this segment or in total, sorted by the total.
fn first(mut all: Vec<Line>) -> Vec<Line> {
    let key = |amount: &Amount| (amount.bytes(), amount.read, amount.flushes, amount.asked);
    all.sort_by_key(|line| Reverse(key(&line.now)));
    let now = all.len().min(SHOWN);
    all[now..].sort_by_key(|line| Reverse(key(&line.all)));
    all.truncate(now.saturating_add(SHOWN));
    all.sort_by(|a, b| {
        let most = key(&b.all).cmp(&key(&a.all));
        most.then_with(|| a.name.cmp(&b.name))
    });
    all
}

/// Merges lines of the same name.
fn by_name<'l>(lines: impl Iterator<Item = &'l Line>) -> Vec<Line> {
    let mut by_name: HashMap<&str, Line> = HashMap::default();
    for line in lines {
        let sum = by_name.entry(&line.name).or_default();
        sum.add(line);
        sum.name.clone_from(&line.name);
    }
    by_name.into_values().collect()
}

/// Merges processes of the same command and appends their number, or the process ID if there is only one.
fn by_command(processes: &HashMap<Who, Line>) -> Vec<Line> {
    let mut tgids: HashMap<&str, (u32, usize)> = HashMap::default();
    for (who, line) in processes {
        if let Who::Process(named) = who {
            let (one, count) = tgids.entry(&line.name).or_default();
            *one = named.tgid;
            count.tally(1);
        }
    }
    let mut lines = by_name(processes.values());
    for line in &mut lines {
        match tgids.get(line.name.as_str()) {
            Some((tgid, 1)) => line.name += &format!("[{tgid}]"),
            Some((_, count)) => line.name += &format!(" ×{count}"),
            None => {}
        }
    }
    lines
}

/// Returns the process that has a line, and the line's name.
fn process_of(process: &Process) -> (Who, String) {
    let Some(tgid) = process.tgid.or(process.pid) else {
        return (Who::Nobody, UNKNOWN.into());
    };
    let name = called(process.process_comm.as_deref());
    let named = Named {
        tgid,
        name: name.clone(),
    };
    (Who::Process(named), name)
}

fn name_of_file(which: Option<&Which>) -> String {
    match which {
        Some(Which::Path(path)) => escape(path),
        Some(Which::Inode(inode, _)) => format!("#{inode}"),
        Some(Which::Others) => OTHERS.into(),
        None => UNKNOWN.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_lines_are_summed_up_and_no_byte_is_lost() {
        let mut lines: HashMap<u32, Line> = HashMap::default();
        let read = |read| Amount {
            read,
            ..Amount::default()
        };
        for n in 1..=100_u32 {
            add(&mut lines, n, read(n.into()), || format!("z{n}"));
        }
        sum_up(&mut lines, 100, 0);
        assert_eq!(lines.len(), 100);
        for round in 0..2_u64 {
            add(&mut lines, 200, read(0), || "new".into());
            sum_up(&mut lines, 50, 0);
            assert!(lines.len() <= 27, "{round}: {}", lines.len());
            let sum: u64 = lines.values().map(|line| line.all.read).sum();
            assert_eq!(sum, 5050);
            assert_eq!((&*lines[&100].name, lines[&100].all.read), ("z100", 100));
            assert_eq!(lines[&0].name, OTHERS);
        }
    }
}
