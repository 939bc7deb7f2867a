// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sums over the segments by cause. They grow with the processes and paths up to a bound, not with time.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::io::Read;
use std::time::Duration;

use mostrace_bundle::entry::{CallKind, RawCall};
use mostrace_bundle::manifest::Manifest;
use mostrace_map::class::Class;

use super::paths::Paths;
use super::view::{Amount, Device, Latency, Line, View};
use crate::attribute::{self, File, FileId, HashMap, Loops, Op, ProcessId, Registry, Row};
use crate::causes::{Cause, CauseId, Verdicts};
use crate::pipeline::{Pipeline, Step};
use crate::tally::Tally;
use crate::text::escape;

/// The sums of the current segment and of all.
#[derive(Default)]
pub(super) struct Sums {
    /// The device's completions in this segment.
    now: Device,
    write_latency: Latency,
    read_latency: Latency,
    /// The shares of this segment.
    by_cause: HashMap<Whose, Amount>,
    /// The bytes that each process's calls wrote in this segment, and its name.
    asked: HashMap<u32, (u64, [u8; 16])>,
    since: Duration,
    device: Device,
    classes: [u64; Class::ALL.len()],
    asked_in_all: u64,
    lost: u64,
    /// The lines by process; a process is named after its command.
    processes: HashMap<Who, Line>,
    /// The lines by path, or by inode as long as no path is known; None if neither is.
    files: HashMap<Option<Which>, Line>,
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

/// A process that has a line.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Who {
    Process(u32),
    /// A submitter, by its marked name.
    Submitter(String),
    Nobody,
    Others,
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
    pub fn begin_anew(&mut self) {
        self.paths.begin_anew();
    }

    /// Adds a system call.
    pub fn call(&mut self, call: &RawCall) {
        let writes = matches!(
            CallKind::of(call.kind.get()),
            CallKind::Write | CallKind::Splice
        );
        if writes && call.result.get() >= 0 {
            let (bytes, _) = self.asked.entry(call.tgid.get()).or_insert((0, call.comm));
            bytes.tally(call.bytes.get());
        }
    }

    /// Adds a completion.
    pub fn push(&mut self, step: &Step<'_, '_>) {
        let Step {
            request,
            rows,
            registry,
            ..
        } = step;
        let verdicts = step.verdicts.into_iter().flat_map(Verdicts::iter);
        self.now.count(request);
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
                        let whose = Whose::of(share.cause, row);
                        let amount = self.by_cause.entry(whose).or_default();
                        amount.classes[class].tally(share.bytes.into());
                    }
                }
                Op::Read => {
                    for share in shares {
                        let whose = Whose::of(share.cause, row);
                        let amount = self.by_cause.entry(whose).or_default();
                        amount.read.tally(share.bytes.into());
                    }
                }
                Op::Flush => {
                    let cause = shares.first().map_or(CauseId::UNKNOWN, |s| s.cause);
                    let whose = Whose::of(cause, row);
                    self.by_cause.entry(whose).or_default().flushes.tally(1);
                }
                _ => {}
            }
        }
    }

    /// Returns the submitter that stands in for an unknown cause, and its name.
    fn submitter(&self, id: ProcessId, file: FileId, registry: &Registry<'_>) -> (Who, String) {
        let process = registry.process(id);
        let device = self.loops.of(registry.file(file));
        let name = || name_of_process(id, registry);
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
                named.now.tally(line.now);
                named.all.tally(line.all);
            }
        }
    }

    /// Ends the segment of this manifest and returns its view.
    pub fn end_segment<R: Read>(
        &mut self,
        manifest: &Manifest,
        pipeline: &Pipeline<'_, R>,
        has_calls: bool,
    ) -> View {
        let registry = pipeline.registry();
        self.loops = Loops::new(&manifest.loops);
        let clock = &manifest.clock;
        let lasted = clock.stop_mono_ns.saturating_sub(clock.start_mono_ns);
        let lasted = Duration::from_nanos(lasted);
        self.since = self.since.saturating_add(lasted);
        let lines = self.processes.values_mut().chain(self.files.values_mut());
        lines.for_each(|line| line.now = Amount::default());
        let mut classes = [0_u64; Class::ALL.len()];
        for (whose, amount) in std::mem::take(&mut self.by_cause) {
            let (who, name, file) = match whose {
                Whose::Cause(id) => {
                    let Cause { process, file, .. } = pipeline.cause(id);
                    let who = tgid(process, registry).map_or(Who::Nobody, Who::Process);
                    (who, name_of_process(process, registry), file)
                }
                Whose::Submitter(process, file) => {
                    let (who, name) = self.submitter(process, file, registry);
                    (who, name, file)
                }
            };
            add(&mut self.processes, who, amount, || name);
            let which = self.which(registry.file(file));
            let name = || name_of_file(which.as_ref());
            add(&mut self.files, which.clone(), amount, name);
            classes.tally(amount.classes);
        }
        self.name_files();
        self.paths.end_segment();
        let mut asked_now = 0_u64;
        for (tgid, (asked, comm)) in self.asked.drain() {
            asked_now.tally(asked);
            let amount = Amount {
                asked,
                ..Amount::default()
            };
            let comm = comm.split(|&b| b == 0).next().unwrap_or_default();
            let who = Who::Process(tgid);
            add(&mut self.processes, who, amount, || command(comm));
        }
        self.asked_in_all.tally(asked_now);
        sum_up(&mut self.processes, MOST_LINES, Who::Others);
        sum_up(&mut self.files, MOST_LINES, Some(Which::Others));
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
            asked: has_calls.then_some((asked_now, self.asked_in_all)),
            write_latency: std::mem::take(&mut self.write_latency),
            read_latency: std::mem::take(&mut self.read_latency),
            processes: first(by_command(&self.processes)),
            files: first(by_name(self.files.values())),
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
        sum.now.tally(line.now);
        sum.all.tally(line.all);
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
        sum.now.tally(line.now);
        sum.all.tally(line.all);
        sum.name.clone_from(&line.name);
    }
    by_name.into_values().collect()
}

/// Merges processes of the same command and appends their number, or the process ID if there is only one.
fn by_command(processes: &HashMap<Who, Line>) -> Vec<Line> {
    let mut tgids: HashMap<&str, (u32, usize)> = HashMap::default();
    for (who, line) in processes {
        if let Who::Process(tgid) = who {
            let (one, count) = tgids.entry(&line.name).or_default();
            *one = *tgid;
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

fn tgid(id: ProcessId, registry: &Registry<'_>) -> Option<u32> {
    let process = registry.process(id);
    process.tgid.or(process.pid)
}

fn name_of_process(id: ProcessId, registry: &Registry<'_>) -> String {
    match tgid(id, registry) {
        Some(_) => command(registry.process(id).comm.as_deref().unwrap_or_default()),
        None => UNKNOWN.into(),
    }
}

/// Returns a name that is escaped for a terminal.
fn command(comm: &[u8]) -> String {
    match comm {
        [] => "?".into(),
        comm => escape(comm),
    }
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
