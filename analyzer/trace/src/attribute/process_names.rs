// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells what a process was called, which is the name of its main thread (the thread group's leader).

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{EntryRef, comm_flags};
use mostrace_bundle::table::TableReader;

use super::HashMap;
use super::task::{Task, text};

/// The number of a name in [`ProcessNames`].
pub(super) type NameId = u32;

/// A name that a process had from a time on.
#[derive(Clone, Copy, Debug)]
struct Since {
    time_ns: u64,
    name: NameId,
    /// True if the process began then, or had another name before.
    is_new: bool,
}

/// The names of processes, as the recorder reported them. It reports those of processes whose other threads did something.
#[derive(Clone, Debug, Default)]
pub struct ProcessNames {
    /// The history of each process number in time order.
    processes: HashMap<u32, Vec<Since>>,
    names: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, NameId>,
    /// True if the recording has the table.
    are_told: bool,
}

impl ProcessNames {
    /// Reads the table to its present end.
    pub fn read<R: Read>(&mut self, table: &mut TableReader<R>) -> Result<(), Error> {
        self.are_told = true;
        while let Some(entry) = table.next_if(|_| true)? {
            let EntryRef::Comm(raw) = entry else { continue };
            let flags = raw.head.flags;
            let since = Since {
                time_ns: raw.head.time_ns.get(),
                name: self.number(text(&raw.comm)),
                is_new: flags.has(comm_flags::STARTED) || flags.has(comm_flags::CHANGED),
            };
            let history = self.processes.entry(raw.tgid.get()).or_default();
            let at = history.partition_point(|before| before.time_ns <= since.time_ns);
            let before = at.checked_sub(1).and_then(|at| history.get(at));
            // A segment repeats what those before it have.
            if before.is_none_or(|before| before.name != since.name) {
                history.insert(at, since);
            }
        }
        Ok(())
    }

    fn number(&mut self, name: &[u8]) -> NameId {
        if let Some(&id) = self.numbers.get(name) {
            return id;
        }
        let next = u32::try_from(self.names.len()).unwrap_or(NameId::MAX);
        self.names.push(name.into());
        self.numbers.insert(name.into(), next);
        next
    }

    /// Takes the names of threads, in the order in which they were seen, if the recording has no table. A process is then called
    /// what its main thread was called last. If that was not seen, it has the name that all its other threads share, and none if
    /// they differ. A thread begins with the name of the thread that starts it.
    pub(super) fn take_seen<'p>(&mut self, seen: impl Iterator<Item = (u32, bool, &'p [u8])>) {
        if self.are_told {
            return;
        }
        let mut names: HashMap<u32, (bool, Option<&[u8]>)> = HashMap::default();
        for (tgid, is_main, name) in seen {
            let known = names.entry(tgid).or_insert((is_main, Some(name)));
            match (known.0, is_main) {
                (_, true) => *known = (true, Some(name)),
                (false, false) if known.1 != Some(name) => known.1 = None,
                _ => {}
            }
        }
        for (tgid, (_, name)) in names {
            let Some(name) = name else { continue };
            let name = self.number(name);
            let since = Since {
                time_ns: 0,
                name,
                is_new: false,
            };
            self.processes.insert(tgid, vec![since]);
        }
    }

    /// Returns what process `tgid` was called at `time_ns`; None if it is not known. The names that processes had when the recording
    /// began were read shortly after, so such a name counts for the time before, too.
    pub(super) fn of(&self, tgid: u32, time_ns: u64) -> Option<NameId> {
        let history = self.processes.get(&tgid)?;
        let began = history.partition_point(|since| since.time_ns <= time_ns);
        let since = match began.checked_sub(1) {
            Some(at) => history.get(at),
            None => history.first().filter(|first| !first.is_new),
        };
        Some(since?.name)
    }

    /// Returns a name.
    pub(super) fn name(&self, id: NameId) -> Option<&[u8]> {
        self.names
            .get(usize::try_from(id).ok()?)
            .map(|name| &**name)
    }

    /// Returns what a thread's process was called at `time_ns`; None if it is not known. A main thread has its process's name.
    pub fn of_task<'t>(&'t self, task: &'t Task, time_ns: u64) -> Option<&'t [u8]> {
        match task.is_main() {
            true => Some(text(&task.comm)),
            false => self.name(self.of(task.tgid, time_ns)?),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use mostrace_bundle::entry::{Flags, NONE, RawComm, RawHead, TYPE_COMM};
    use mostrace_bundle::table::header;
    use zerocopy::IntoBytes;

    use super::*;

    pub(in crate::attribute) const READ: Flags = Flags(0);

    /// Makes entries known: the time (ns), the process, how the name was found out, and the name.
    pub(in crate::attribute) fn tell(
        names: &mut ProcessNames,
        entries: &[(u64, u32, Flags, &str)],
    ) {
        let mut table = header().to_vec();
        for &(time_ns, tgid, flags, name) in entries {
            let mut raw = RawComm {
                head: RawHead {
                    kind: TYPE_COMM.into(),
                    size: 56.into(),
                    time_ns: time_ns.into(),
                    sector: NONE.into(),
                    flags,
                    ..RawHead::default()
                },
                tgid: tgid.into(),
                ..RawComm::default()
            };
            raw.comm[..name.len()].copy_from_slice(name.as_bytes());
            table.extend(raw.as_bytes());
        }
        let table = TableReader::new(&table[..], Path::new("comm.entries"), false);
        names.read(&mut table.unwrap()).unwrap();
    }

    fn names(entries: &[(u64, u32, Flags, &str)]) -> ProcessNames {
        let mut names = ProcessNames::default();
        tell(&mut names, entries);
        names
    }

    fn called(names: &ProcessNames, times: [u64; 4]) -> [Option<&str>; 4] {
        let at = |time_ns| names.name(names.of(7, time_ns)?);
        times.map(|time_ns| at(time_ns).map(|name| std::str::from_utf8(name).unwrap()))
    }

    #[test]
    fn a_process_has_the_name_of_the_moment() {
        use comm_flags::{CHANGED, STARTED};
        let sh = names(&[
            (300, 7, CHANGED, "java"),
            (200, 7, STARTED, "sh"),
            (250, 8, STARTED, "other"),
            (300, 7, CHANGED, "java"),
        ]);
        let times = [199, 200, 299, 300];
        assert_eq!(
            called(&sh, times),
            [None, Some("sh"), Some("sh"), Some("java")]
        );
        // The number goes to another process.
        let reused = names(&[(200, 7, READ, "a"), (300, 7, STARTED, "b")]);
        let times = [100, 200, 299, 300];
        assert_eq!(
            called(&reused, times),
            [Some("a"), Some("a"), Some("a"), Some("b")]
        );
        // What it was called before is not known.
        let renamed = names(&[(200, 7, CHANGED, "b")]);
        assert_eq!(
            called(&renamed, times),
            [None, Some("b"), Some("b"), Some("b")]
        );
    }

    #[test]
    fn a_recording_without_the_table_knows_the_main_threads_that_it_saw() {
        let mut names = ProcessNames::default();
        let seen = [
            (7, true, &b"sh"[..]),
            (7, true, b"app"),
            (7, false, b"thread"),
        ];
        names.take_seen(seen.into_iter());
        assert_eq!(called(&names, [0; 4]), [Some("app"); 4]);
        for (threads, name) in [(["a", "a"], Some("a")), (["a", "b"], None)] {
            let mut names = ProcessNames::default();
            names.take_seen(threads.map(|name| (7, false, name.as_bytes())).into_iter());
            assert_eq!(called(&names, [0; 4]), [name; 4]);
        }
        let mut told = self::names(&[]);
        told.take_seen([(7, true, &b"sh"[..])].into_iter());
        assert_eq!(called(&told, [0; 4]), [None; 4]);
    }
}
