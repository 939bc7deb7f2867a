// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells which cgroup a process was in.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::EntryRef;
use mostrace_bundle::table::TableReader;

use super::HashMap;

/// The number of a cgroup's path in [`Cgroups`].
pub(super) type CgroupId = u32;

/// The cgroups of processes, as the recorder reported them.
#[derive(Debug, Default)]
pub struct Cgroups {
    /// The history of each process number in time order: the time from which it was in a cgroup (ns), and the cgroup.
    processes: HashMap<u32, Vec<(u64, CgroupId)>>,
    paths: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, CgroupId>,
}

impl Cgroups {
    /// Reads the table to its present end.
    pub fn read<R: Read>(&mut self, table: &mut TableReader<R>) -> Result<(), Error> {
        while let Some(entry) = table.next_if(|_| true)? {
            let EntryRef::Cgroup(entry) = entry else {
                continue;
            };
            let id = self.number(entry.whole_path().into());
            let time_ns = entry.raw.head.time_ns.get();
            let history = self.processes.entry(entry.raw.tgid.get()).or_default();
            let at = history.partition_point(|&(from_ns, _)| from_ns <= time_ns);
            let before = at.checked_sub(1).and_then(|at| history.get(at));
            // The recorder reports the same cgroup again and again.
            if before.is_none_or(|&(_, before)| before != id) {
                history.insert(at, (time_ns, id));
            }
        }
        Ok(())
    }

    /// Returns the number of processes and cgroups.
    pub(super) fn len(&self) -> usize {
        self.processes.len().saturating_add(self.paths.len())
    }

    fn number(&mut self, path: Box<[u8]>) -> CgroupId {
        let next = u32::try_from(self.paths.len()).unwrap_or(CgroupId::MAX);
        *self.numbers.entry(path).or_insert_with_key(|path| {
            self.paths.push(path.clone());
            next
        })
    }

    /// Returns the cgroup of process `tgid` at `time_ns`; None if it is not known. The recorder reports a process when the process
    /// does something, which may be shortly after the time asked for, so the first report counts for the time before, too.
    pub(super) fn of(&self, tgid: u32, time_ns: u64) -> Option<CgroupId> {
        let history = self.processes.get(&tgid)?;
        let began = history.partition_point(|&(from_ns, _)| from_ns <= time_ns);
        let (_, id) = history.get(began.saturating_sub(1))?;
        Some(*id)
    }

    /// Returns the path of a cgroup.
    pub(super) fn path(&self, id: CgroupId) -> Option<&[u8]> {
        self.paths
            .get(usize::try_from(id).ok()?)
            .map(|path| &**path)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use mostrace_bundle::entry::{Flags, NONE, RawCgroup, RawHead, TYPE_CGROUP};
    use mostrace_bundle::table::header;
    use zerocopy::IntoBytes;

    use super::*;

    fn cgroups(entries: &[(u64, u32, &str, bool)]) -> Cgroups {
        let mut cgroups = Cgroups::default();
        tell(&mut cgroups, entries);
        cgroups
    }

    /// Makes entries known: the time (ns), the process, the path from the leaf up, and whether that is cut off.
    pub(in crate::attribute) fn tell(cgroups: &mut Cgroups, entries: &[(u64, u32, &str, bool)]) {
        let mut table = header().to_vec();
        for &(time_ns, tgid, path, is_cut) in entries {
            let size = (48 + path.len()).next_multiple_of(8);
            let raw = RawCgroup {
                head: RawHead {
                    kind: TYPE_CGROUP.into(),
                    size: u16::try_from(size).unwrap().into(),
                    time_ns: time_ns.into(),
                    sector: NONE.into(),
                    flags: if is_cut { Flags::NAME_CUT } else { Flags(0) },
                    ..RawHead::default()
                },
                id: 1.into(),
                tgid: tgid.into(),
                path_len: u16::try_from(path.len()).unwrap().into(),
                pad: 0.into(),
            };
            let begin = table.len();
            table.extend(raw.as_bytes());
            table.extend(path.as_bytes());
            table.resize(begin + size, 0);
        }
        let mut table = TableReader::new(&table[..], Path::new("cgroup"), false).unwrap();
        cgroups.read(&mut table).unwrap();
    }

    #[test]
    fn a_process_is_where_it_was_told_last() {
        let of = cgroups(&[
            (100, 7, "app.service/system.slice/", false),
            (150, 7, "app.service/system.slice/", false),
            (300, 7, "", false),
            (200, 7, "other/", false),
            (200, 8, "leaf/deep/", true),
        ]);
        let at = |tgid, time_ns| {
            let path = of.of(tgid, time_ns).and_then(|id| of.path(id));
            path.map(|path| String::from_utf8(path.to_vec()).unwrap())
        };
        let app = Some("/system.slice/app.service".to_owned());
        assert_eq!([at(7, 0), at(7, 199)], [app.clone(), app]);
        assert_eq!(at(7, 200).unwrap(), "/other");
        assert_eq!(at(7, u64::MAX).unwrap(), "/");
        assert_eq!(at(8, 200).unwrap(), "…/deep/leaf");
        assert_eq!(at(9, 200), None);
    }
}
