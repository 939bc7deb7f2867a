// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls, and which of them led to a request.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::ops::Range;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, EntryRef};
use mostrace_bundle::table::TableReader;

use mostrace_trace::attribute::Task;

/// Bytes of a page, in which calls and requests are compared.
const PAGE: u64 = 4096;
/// The number of sizes of runs of pages by which calls are indexed: powers of two, up to the largest file.
const LEVELS: u32 = 53;

/// A file's inode, and its generation if known, because inode numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    pub inode: u64,
    pub generation: Option<u32>,
}

impl FileKey {
    /// Returns true if both may be the same file, as far as generations are known.
    fn may_be(self, other: FileKey) -> bool {
        let known = self.generation.zip(other.generation);
        self.inode == other.inode && known.is_none_or(|(one, another)| one == another)
    }
}

/// A system call.
#[derive(Clone, Debug)]
pub struct Call {
    pub kind: CallKind,
    pub task: Task,
    pub file: FileKey,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
}

/// All calls of a trace in the order of their returns, with indexes.
#[derive(Default)]
pub struct Calls {
    pub list: Vec<Call>,
    /// Indices of the calls that wrote a run of pages of a file, by the run's size and number, in the order of their starts.
    /// A call is removed when one that began earlier returns later, because that one always takes precedence.
    by_run: HashMap<(FileKey, u32, u64), Vec<usize>, foldhash::fast::RandomState>,
    /// The files with each inode number that were written to.
    by_inode: HashMap<u64, HashSet<FileKey>, foldhash::fast::RandomState>,
    /// Indices of the calls of a thread on an inode.
    by_thread: HashMap<(u32, u64), Vec<usize>, foldhash::fast::RandomState>,
}

impl Calls {
    /// Reads the table of calls.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub fn read(table: &mut TableReader<impl Read>) -> Result<Calls, Error> {
        let mut calls = Calls::default();
        while let Some(entry) = table.next_if(|_| true)? {
            let EntryRef::Call(raw) = entry else { continue };
            let kind = CallKind::of(raw.kind.get());
            let at = calls.list.len();
            let (inode, bytes) = (raw.ino.get(), raw.bytes.get());
            let file = FileKey {
                inode,
                generation: Some(raw.generation.get()),
            };
            if matches!(kind, CallKind::Write | CallKind::Splice)
                && let Some(end) = raw.offset.get().checked_add(bytes)
            {
                calls.by_inode.entry(inode).or_default().insert(file);
                let pages = raw.offset.get() / PAGE..end.div_ceil(PAGE);
                for (level, run) in runs(pages) {
                    let found = calls.by_run.entry((file, level, run)).or_default();
                    let is_later = |&&at: &&usize| calls.list[at].start_ns >= raw.start_ns.get();
                    let later = found.iter().rev().take_while(is_later).count();
                    found.truncate(found.len().saturating_sub(later));
                    found.push(at);
                }
            }
            let thread = (raw.pid.get(), inode);
            calls.by_thread.entry(thread).or_default().push(at);
            calls.list.push(Call {
                kind,
                task: Task::from(raw),
                file,
                start_ns: raw.start_ns.get(),
                end_ns: raw.head.time_ns.get(),
                bytes,
            });
        }
        Ok(calls)
    }

    /// Returns the last call that wrote this page of the file and began before `before_ns`.
    pub fn wrote(&self, file: FileKey, offset: u64, before_ns: u64) -> Option<usize> {
        let last_of = |file: FileKey, level: u32| {
            let run = (offset / PAGE) >> level;
            let calls = self.by_run.get(&(file, level, run))?;
            let before = calls.partition_point(|&at| self.list[at].start_ns <= before_ns);
            calls[..before].last().copied()
        };
        let files = self.by_inode.get(&file.inode)?.iter();
        let may_be = files.filter(|known| known.may_be(file));
        may_be
            .flat_map(|&known| (0..LEVELS).filter_map(move |level| last_of(known, level)))
            .max()
    }

    /// Returns the last call by which a thread did this to a file and that began before `before_ns`.
    pub fn did(&self, pid: u32, operation: &str, file: FileKey, before_ns: u64) -> Option<usize> {
        let calls = self.by_thread.get(&(pid, file.inode))?;
        let is = |&&at: &&usize| {
            let call = &self.list[at];
            call.start_ns <= before_ns && does(call.kind, operation) && call.file.may_be(file)
        };
        calls.iter().rev().find(is).copied()
    }
}

/// Divides a range of pages into the fewest runs whose sizes are powers of two and whose starts are multiples of their
/// sizes: at most two of each size, however long the range is. Returns each run's log2 of the size and its number among runs
/// of that size.
fn runs(pages: Range<u64>) -> Vec<(u32, u64)> {
    let mut runs = Vec::new();
    let Range { mut start, end } = pages;
    while let Some(fitting) = end.saturating_sub(start).checked_ilog2() {
        let level = start.trailing_zeros().min(fitting);
        runs.push((level, start >> level));
        start = start.saturating_add(1 << level);
    }
    runs
}

/// Returns true if a call of this kind can do the operation of a cause.
fn does(kind: CallKind, operation: &str) -> bool {
    match operation {
        "create" => matches!(kind, CallKind::Open | CallKind::Link),
        "mkdir" => kind == CallKind::Mkdir,
        "unlink" => kind == CallKind::Unlink,
        "rename" => kind == CallKind::Rename,
        "truncate" => matches!(kind, CallKind::Truncate | CallKind::Open),
        "allocate" => matches!(
            kind,
            CallKind::Write | CallKind::Splice | CallKind::Fallocate
        ),
        "write" | "time" => matches!(kind, CallKind::Write | CallKind::Splice),
        "xattr" => kind == CallKind::Xattr,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_the_range(start in 0u64..1 << 20, pages in 0u64..1 << 14) {
            let mut at = start;
            for (level, run) in runs(start..start + pages) {
                prop_assert_eq!(run << level, at);
                at += 1 << level;
            }
            prop_assert_eq!(at, start + pages);
        }
    }

    #[test]
    fn a_long_range_is_made_of_few_runs() {
        for end in [u64::MAX / PAGE, u64::MAX / PAGE - 1, 1 << 51] {
            let runs = runs(1..end);
            assert!(
                runs.len() <= 2 * LEVELS as usize && runs.iter().all(|(level, _)| *level < LEVELS)
            );
        }
    }
}
