// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of processes, which are those of their main threads. Every change of a name on the machine is learned, but the table has
//! only the names of processes whose other threads have entries: a main thread's entries have its name.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use foldhash::fast::RandomState;
use mostrace_bundle::entry::{RawComm, UNKNOWN_ID};
use zerocopy::{FromBytes, IntoBytes};

use super::named;

/// The most names that are kept of a process that has had no entry for another thread. Entries come at most a second or two after
/// the name that the process had.
const NAMES: usize = 8;

/// When this number of processes is exceeded, those that have ended are forgotten.
const MANY: usize = 1 << 14;

/// The names of one process number, in the order in which they came.
#[derive(Default)]
struct Names {
    latest: VecDeque<RawComm>,
    /// True if the table has them.
    is_told: bool,
}

/// All process numbers of the machine.
pub(super) struct ProcessNames {
    known: HashMap<u32, Names, RandomState>,
    many: usize,
}

impl Default for ProcessNames {
    fn default() -> ProcessNames {
        ProcessNames {
            known: HashMap::default(),
            many: MANY,
        }
    }
}

impl ProcessNames {
    /// Takes a name. Returns true if it must be in the table.
    pub fn learn(&mut self, record: &[u8]) -> bool {
        let Ok(name) = RawComm::read_from_bytes(record) else {
            return false;
        };
        if self.known.len() > self.many {
            self.known.retain(|&tgid, _| runs(tgid));
            self.many = MANY.max(2 * self.known.len());
        }
        let names = self.known.entry(name.tgid.get()).or_default();
        if names.latest.len() == NAMES {
            names.latest.pop_front();
        }
        names.latest.push_back(name);
        names.is_told
    }

    /// Returns the names that the table needs for an entry: those of its process, once, if its thread is not the main one.
    #[inline]
    pub fn needed(&mut self, entry: &[u8]) -> Option<&VecDeque<RawComm>> {
        let thread = named::of(entry)?;
        match thread.pid == thread.tgid || thread.tgid == UNKNOWN_ID {
            true => None,
            false => self.first_told(thread.tgid),
        }
    }

    fn first_told(&mut self, tgid: u32) -> Option<&VecDeque<RawComm>> {
        let names = self.known.get_mut(&tgid)?;
        let is_told = std::mem::replace(&mut names.is_told, true);
        (!is_told).then_some(&names.latest)
    }

    /// Returns the names that the next segment repeats.
    pub fn told(&self) -> impl Iterator<Item = &[u8]> {
        let told = self.known.values().filter(|names| names.is_told);
        told.flat_map(|names| &names.latest)
            .map(IntoBytes::as_bytes)
    }
}

/// Returns true if a process, or a thread, of this number runs.
fn runs(tgid: u32) -> bool {
    Path::new("/proc").join(tgid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::{RawCall, RawHead, TYPE_CALL, TYPE_COMM};

    use super::*;

    fn name(tgid: u32, comm: u8) -> Vec<u8> {
        let raw = RawComm {
            head: RawHead {
                kind: TYPE_COMM.into(),
                size: (size_of::<RawComm>() as u16).into(),
                ..RawHead::default()
            },
            tgid: tgid.into(),
            comm: [comm; 16],
            ..RawComm::default()
        };
        raw.as_bytes().to_vec()
    }

    fn call(pid: u32, tgid: u32) -> Vec<u8> {
        let raw = RawCall {
            head: RawHead {
                kind: TYPE_CALL.into(),
                ..RawHead::default()
            },
            pid: pid.into(),
            tgid: tgid.into(),
            ..RawCall::default()
        };
        raw.as_bytes().to_vec()
    }

    fn needed(names: &mut ProcessNames, entry: &[u8]) -> Vec<Vec<u8>> {
        let needed = names.needed(entry).into_iter().flatten();
        needed.map(|name| name.as_bytes().to_vec()).collect()
    }

    #[test]
    fn the_table_has_the_names_of_processes_with_other_threads() {
        let mut names = ProcessNames::default();
        for (tgid, comm) in [(7, b'a'), (7, b'b'), (8, b'c')] {
            assert!(!names.learn(&name(tgid, comm)));
        }
        let none: Vec<Vec<u8>> = Vec::new();
        assert_eq!(needed(&mut names, &call(8, 8)), none);
        assert_eq!(needed(&mut names, &call(9, UNKNOWN_ID)), none);
        assert_eq!(
            needed(&mut names, &call(9, 7)),
            [name(7, b'a'), name(7, b'b')]
        );
        assert_eq!(needed(&mut names, &call(9, 7)), none);
        assert!(names.learn(&name(7, b'd')) && !names.learn(&name(8, b'e')));
        let told: Vec<&[u8]> = names.told().collect();
        assert_eq!(told, [name(7, b'a'), name(7, b'b'), name(7, b'd')]);
    }

    #[test]
    fn processes_that_ended_are_forgotten() {
        let mut names = ProcessNames::default();
        let own = std::process::id();
        names.learn(&name(own, b'a'));
        // Numbers beyond the kernel's largest.
        for tgid in 0..u32::try_from(MANY).unwrap() + 8 {
            names.learn(&name(1 << 30 | tgid, b'x'));
        }
        assert!(names.known.len() < 16 && names.known.contains_key(&own));
    }
}
