// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recordings that rows come from. Processes, files and causes of all recordings are numbered together: each recording's
//! numbers follow those of the one before. The unknown process, no file and the unknown cause are shared by all.

use std::borrow::Cow;

use mostrace_bundle::{Manifest, Packages};

use crate::attribute::{FileId, Loops, Names, ProcessId, ProcessNames, StackId};
use crate::causes::{Cause, CauseId};
use crate::tally::{Tally, sum};

/// The properties of one recording.
#[derive(Debug, Default)]
pub struct Origin {
    /// The recording's name.
    pub name: String,
    /// The apps of the Android device that was traced.
    pub packages: Option<Packages>,
    /// Its manifest; None for the bare files of blktrace.
    pub manifest: Option<Box<Manifest>>,
    /// Loop devices whose backing files lie on its filesystem.
    pub loops: Loops,
    /// What its processes were called.
    pub process_names: ProcessNames,
    /// One moment in the trace's clock and as Unix time, ns each.
    pub clock: Option<(u64, u64)>,
    /// The times of the first and last completion, ns.
    pub span: Option<(u64, u64)>,
    /// The bases of its own numbers.
    pub base: Base,
}

/// The bases of a recording's numbers among those of all: a base is added to each number except 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Base {
    /// Of processes.
    pub processes: u32,
    /// Of files.
    pub files: u32,
    /// Of causes.
    pub causes: u32,
    /// Of stacks.
    pub stacks: u32,
    /// Added to every request number, including 0.
    pub requests: u32,
    /// Index of the recording.
    pub origin: u32,
}

/// 0 means none in every recording.
fn moved(id: u32, base: u32) -> u32 {
    match id {
        0 => 0,
        _ => id.saturating_add(base),
    }
}

impl Base {
    /// Returns the number of a process among those of all recordings.
    pub fn process(self, ProcessId(id): ProcessId) -> ProcessId {
        ProcessId(moved(id, self.processes))
    }

    /// The same of a file.
    pub fn file(self, FileId(id): FileId) -> FileId {
        FileId(moved(id, self.files))
    }

    /// The same of a stack.
    pub fn stack(self, StackId(id): StackId) -> StackId {
        StackId(moved(id, self.stacks))
    }

    /// The same of a cause.
    pub fn cause(self, CauseId(id): CauseId) -> CauseId {
        CauseId(moved(id, self.causes))
    }
}

/// All recordings, and the names and causes that their rows refer to.
#[derive(Debug, Default)]
pub struct Origins {
    /// The recordings.
    pub list: Vec<Origin>,
    /// The names of all.
    pub names: Names,
    /// The causes of all.
    pub causes: Vec<Cause>,
}

impl Origins {
    /// Returns where the numbers of the next recording begin.
    pub fn next(&self, requests: u32) -> Base {
        let behind = |len: usize| u32::try_from(len.saturating_sub(1)).unwrap_or(u32::MAX);
        Base {
            processes: behind(self.names.processes.len()),
            files: behind(self.names.files.len()),
            causes: behind(self.causes.len()),
            stacks: behind(self.names.stacks.len()),
            requests,
            origin: u32::try_from(self.list.len()).unwrap_or(u32::MAX),
        }
    }

    /// Adds a recording with its names and causes.
    pub fn push(&mut self, origin: Origin, names: Names, causes: Vec<Cause>) {
        let base = origin.base;
        let origin = Origin {
            process_names: names.process_names,
            ..origin
        };
        // If the command's processes are unknown in one recording, they are unknown for all.
        self.names.knows_family =
            names.knows_family && (self.list.is_empty() || self.names.knows_family);
        append(&mut self.names.processes, names.processes);
        append(&mut self.names.files, names.files);
        append(&mut self.names.stacks, names.stacks);
        let causes = causes.into_iter().map(|cause| Cause {
            process: base.process(cause.process),
            stack: base.stack(cause.stack),
            file: base.file(cause.file),
            ..cause
        });
        append(&mut self.causes, causes.collect());
        let left = &mut self.names.leftovers;
        left.process_entries.tally(names.leftovers.process_entries);
        left.file_entries.tally(names.leftovers.file_entries);
        left.dirtier_entries.tally(names.leftovers.dirtier_entries);
        self.list.push(origin);
    }

    /// Returns the time from the first completion to the last, ns; for several recordings, the sum.
    pub fn duration_ns(&self) -> u64 {
        let spans = self.list.iter().filter_map(|origin| origin.span);
        sum(spans.map(|(first, last)| last.saturating_sub(first)))
    }

    /// Returns the names of a recording, by its own numbers.
    pub fn names_of(&self, nth: usize) -> Cow<'_, Names> {
        match &self.list[..] {
            [_] => Cow::Borrowed(&self.names),
            _ => Cow::Owned(self.own_names(nth)),
        }
    }

    fn own_names(&self, nth: usize) -> Names {
        let bases = [nth, nth.saturating_add(1)].map(|nth| self.list.get(nth).map(|o| o.base));
        fn part<T: Clone>(all: &[T], bases: [Option<Base>; 2], of: fn(Base) -> u32) -> Vec<T> {
            let place = |base: Base| (of(base) as usize).saturating_add(1).min(all.len());
            let [from, to] = bases.map(|base| base.map_or(all.len(), place));
            all.iter()
                .take(1)
                .chain(&all[from..to.max(from)])
                .cloned()
                .collect()
        }
        Names {
            processes: part(&self.names.processes, bases, |base| base.processes),
            files: part(&self.names.files, bases, |base| base.files),
            stacks: part(&self.names.stacks, bases, |base| base.stacks),
            ..Names::default()
        }
    }

    /// Returns the index of the recording that a process belongs to.
    pub fn of_process(&self, at: usize) -> usize {
        self.of(at, |base| base.processes)
    }

    /// Returns the index of the recording that a file belongs to.
    pub fn of_file(&self, at: usize) -> usize {
        self.of(at, |base| base.files)
    }

    /// Finds the recording; its first number is one more than its base.
    fn of(&self, at: usize, begins: fn(&Base) -> u32) -> usize {
        let begun = self
            .list
            .partition_point(|origin| begins(&origin.base) as usize <= at.saturating_sub(1));
        begun.saturating_sub(1)
    }

    /// Returns the text to append to a number that is valid only within a recording (of a process or an inode): the
    /// recording's name if there are several.
    pub fn suffix(&self, origin: usize) -> String {
        match (&self.list[..], self.list.get(origin)) {
            ([_, _, ..], Some(origin)) => format!(" ({})", origin.name),
            _ => String::new(),
        }
    }
}

/// Appends a list; its first element is the same in all lists.
fn append<T>(all: &mut Vec<T>, more: Vec<T>) {
    let skipped = usize::from(!all.is_empty());
    all.extend(more.into_iter().skip(skipped));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{File, Process, Stack};

    fn names(pids: &[u32]) -> Names {
        let process = |pid: Option<u32>| Process {
            pid,
            ..Process::default()
        };
        let processes = std::iter::once(None).chain(pids.iter().copied().map(Some));
        Names {
            processes: processes.map(process).collect(),
            ..Names::default()
        }
    }

    #[test]
    fn numbers_of_one_recording_follow_those_of_the_other() {
        let mut all = Origins::default();
        let mut pids = Vec::new();
        for of_one in [&[7, 8][..], &[], &[7]] {
            let base = all.next(0);
            let origin = Origin {
                base,
                ..Origin::default()
            };
            all.push(origin, names(of_one), vec![Cause::default()]);
            let here = (1..=of_one.len() as u32).map(|id| base.process(ProcessId(id)));
            pids.extend(here.map(|id| (all.names.process(id).pid, all.of_process(id.0 as usize))));
            assert_eq!(base.process(ProcessId(0)), ProcessId(0));
        }
        assert_eq!(pids, [(Some(7), 0), (Some(8), 0), (Some(7), 2)]);
        assert_eq!((all.causes.len(), all.names.processes.len()), (1, 4));
        for (nth, own) in [&[7, 8][..], &[], &[7]].into_iter().enumerate() {
            assert_eq!(all.names_of(nth).processes, names(own).processes);
        }
    }
    #[test]
    fn a_cause_refers_to_its_own_recordings_names() {
        let mut all = Origins::default();
        let first = Cause {
            process: ProcessId(1),
            file: FileId(1),
            stack: StackId(1),
            ..Cause::default()
        };
        for pid in [7, 8] {
            let base = all.next(0);
            let of_one = Names {
                files: vec![File::NONE, File::NONE],
                stacks: vec![Stack::default(), Stack::default()],
                ..names(&[pid])
            };
            let origin = Origin {
                base,
                ..Origin::default()
            };
            all.push(origin, of_one, vec![Cause::default(), first]);
        }
        let numbers = |cause: &Cause| (cause.process.0, cause.file.0, cause.stack.0);
        let numbers: Vec<_> = all.causes.iter().map(numbers).collect();
        assert_eq!(numbers, [(0, 0, 0), (1, 1, 1), (2, 2, 2)]);
    }
}
