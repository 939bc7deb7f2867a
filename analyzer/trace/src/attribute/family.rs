// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells which processes belong to the tree of the recorded command.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{EntryRef, fork_flags};
use mostrace_bundle::table::TableReader;

use super::HashMap;

/// The processes of the command's tree, as the recorder reported them.
#[derive(Debug, Default)]
pub struct Family {
    /// The history of each process number in time order: the time (ns) from which it belongs to a process of the tree (true) or to
    /// another one (false).
    numbers: HashMap<u32, Vec<(u64, bool)>>,
    /// True if no process of the tree is missing.
    is_whole: bool,
}

impl Family {
    /// Reads the table of forks, which begins with the command; it is empty for a recording without a command, and then
    /// nothing is known. `is_whole` is false if entries were lost.
    pub fn read<R: Read>(table: &mut TableReader<R>, is_whole: bool) -> Result<Family, Error> {
        let mut numbers: HashMap<u32, Vec<(u64, bool)>> = HashMap::default();
        while let Some(entry) = table.next_if(|_| true)? {
            if let EntryRef::Fork(raw) = entry {
                let is_of_it = raw.head.flags.has(fork_flags::OF_COMMAND);
                let since = (raw.head.time_ns.get(), is_of_it);
                numbers.entry(raw.tgid.get()).or_default().push(since);
            }
        }
        numbers.values_mut().for_each(|since| since.sort_unstable());
        Ok(Family { numbers, is_whole })
    }

    /// Returns true if the recording has the command's tree.
    pub fn is_known(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Returns true if process `tgid` belonged to the tree at `time_ns`; None if that is unknown.
    pub fn has(&self, tgid: u32, time_ns: u64) -> Option<bool> {
        if !self.is_known() {
            return None;
        }
        let since = self.numbers.get(&tgid).and_then(|since| {
            let began = since.partition_point(|&(from_ns, _)| from_ns <= time_ns);
            since.get(began.checked_sub(1)?)
        });
        match since {
            Some(&(_, true)) => Some(true),
            _ => self.is_whole.then_some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mostrace_bundle::entry::{Flags, NONE, RawFork, RawHead, TYPE_FORK};
    use mostrace_bundle::table::header;
    use zerocopy::IntoBytes;

    use super::*;

    fn family(entries: &[(u64, u32, bool)], is_whole: bool) -> Family {
        let mut table = header().to_vec();
        for &(time_ns, tgid, is_of_it) in entries {
            let fork = RawFork {
                head: RawHead {
                    kind: TYPE_FORK.into(),
                    size: 40.into(),
                    time_ns: time_ns.into(),
                    sector: NONE.into(),
                    flags: Flags(u8::from(is_of_it)),
                    ..RawHead::default()
                },
                tgid: tgid.into(),
                parent: 1.into(),
            };
            table.extend(fork.as_bytes());
        }
        let mut table = TableReader::new(&table[..], Path::new("fork"), false).unwrap();
        Family::read(&mut table, is_whole).unwrap()
    }

    #[test]
    fn a_number_is_of_the_tree_as_long_as_it_is_its_process() {
        let entries = [
            (100, 10, true),
            (300, 11, false),
            (200, 11, true),
            (400, 11, true),
        ];
        let of = |tgid, time_ns| family(&entries, true).has(tgid, time_ns);
        assert_eq!([of(10, 99), of(10, 100)], [Some(false), Some(true)]);
        let times = [199, 200, 299, 300, 399, 400, u64::MAX];
        let wanted = [false, true, true, false, false, true, true].map(Some);
        assert_eq!(times.map(|time_ns| of(11, time_ns)), wanted);
        assert_eq!(of(12, 200), Some(false));
    }

    #[test]
    fn what_was_lost_may_have_been_of_the_tree() {
        let lossy = family(&[(100, 10, true)], false);
        assert_eq!([lossy.has(10, 100), lossy.has(11, 100)], [Some(true), None]);
        assert_eq!(family(&[], true).has(10, 100), None);
    }
}
