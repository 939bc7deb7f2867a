// SPDX-License-Identifier: MIT OR Apache-2.0
//! For whom the daemon of a FUSE filesystem worked: what its threads did while they served a request, they did for the thread that
//! made the request.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{EntryRef, RawServed};
use mostrace_bundle::table::TableReader;

use super::task::Task;
use super::{HashMap, ProcessId};
use crate::tally::Tally;

/// The most requests that are kept; what serves others stays the daemon's.
const MOST: usize = 1 << 20;

/// One request: from when to when a thread served it, ns, and who made it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServedRequest {
    start_ns: u64,
    end_ns: u64,
    /// The daemon.
    tgid: u32,
    /// Who made it.
    pub whose: Task,
    /// Its number, if anything was done for the request.
    pub id: Option<ProcessId>,
}

/// The requests that each thread served, in the order of time.
#[derive(Debug, Default)]
pub struct Served {
    threads: HashMap<u32, Vec<ServedRequest>>,
    left_out: u64,
}

impl Served {
    /// Reads the table.
    pub fn read<R: Read>(table: &mut TableReader<R>) -> Result<Served, Error> {
        Served::read_most(table, MOST)
    }

    fn read_most<R: Read>(table: &mut TableReader<R>, most: usize) -> Result<Served, Error> {
        let mut served = Served::default();
        let mut room = most;
        while let Some(entry) = table.next_if(|_| true)? {
            let EntryRef::Served(raw) = entry else {
                continue;
            };
            let Some(left) = room.checked_sub(1) else {
                served.left_out.tally(1);
                continue;
            };
            room = left;
            let requests = served.threads.entry(raw.pid.get()).or_default();
            requests.push(ServedRequest::of(raw));
        }
        for requests in served.threads.values_mut() {
            requests.sort_by_key(|request| request.start_ns);
        }
        Ok(served)
    }

    /// Returns the number of requests for which there was no room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns true if no request was served.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Returns the request that a thread served at `time_ns`.
    pub(super) fn at(&self, pid: u32, tgid: u32, time_ns: u64) -> Option<&ServedRequest> {
        let requests = self.threads.get(&pid)?;
        let request = requests.get(latest(requests, time_ns)?)?;
        request.is_of(tgid, time_ns).then_some(request)
    }

    /// Returns the same for a change.
    pub(super) fn at_mut(&mut self, task: &Task, time_ns: u64) -> Option<&mut ServedRequest> {
        let requests = self.threads.get_mut(&task.pid)?;
        let latest = latest(requests, time_ns)?;
        let request = requests.get_mut(latest)?;
        request.is_of(task.tgid, time_ns).then_some(request)
    }
}

/// Returns the index of the request that a thread began to serve last.
fn latest(requests: &[ServedRequest], time_ns: u64) -> Option<usize> {
    let begun = requests.partition_point(|request| request.start_ns <= time_ns);
    begun.checked_sub(1)
}

impl ServedRequest {
    /// Returns true if it was still served then, and by this process: the thread's number may have gone to another one.
    fn is_of(&self, tgid: u32, time_ns: u64) -> bool {
        time_ns <= self.end_ns && self.tgid == tgid
    }

    fn of(raw: &RawServed) -> ServedRequest {
        ServedRequest {
            start_ns: raw.start_ns.get(),
            end_ns: raw.head.time_ns.get(),
            tgid: raw.tgid.get(),
            whose: Task {
                pid: raw.for_pid.get(),
                tgid: raw.for_tgid.get(),
                uid: raw.for_uid.get(),
                comm: raw.for_comm,
            },
            id: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mostrace_bundle::entry::{RawHead, TYPE_SERVED};
    use mostrace_bundle::table::header;
    use zerocopy::IntoBytes;

    use super::*;

    fn served(requests: &[(u32, u64, u64, u32)], most: usize) -> Served {
        let mut table = header().to_vec();
        for &(pid, start_ns, end_ns, whose) in requests {
            let raw = RawServed {
                head: RawHead {
                    kind: TYPE_SERVED.into(),
                    size: 88.into(),
                    time_ns: end_ns.into(),
                    ..RawHead::default()
                },
                start_ns: start_ns.into(),
                pid: pid.into(),
                tgid: 7.into(),
                for_pid: whose.into(),
                for_uid: 10_001.into(),
                ..RawServed::default()
            };
            table.extend(raw.as_bytes());
        }
        let mut table = TableReader::new(&table[..], Path::new("served"), false).unwrap();
        Served::read_most(&mut table, most).unwrap()
    }

    #[test]
    fn a_thread_works_for_another_between_request_and_answer() {
        let served = served(
            &[(8, 300, 400, 21), (8, 100, 200, 20), (9, 150, 250, 22)],
            3,
        );
        assert_eq!(served.left_out(), 0);
        let whose = |pid, time_ns| Some(served.at(pid, 7, time_ns)?.whose.pid);
        let times = [99, 100, 200, 201, 299, 300, 400, 401];
        let wanted = [0, 20, 20, 0, 0, 21, 21, 0].map(|pid| Some(pid).filter(|pid| *pid != 0));
        assert_eq!(times.map(|time_ns| whose(8, time_ns)), wanted);
        assert_eq!([whose(9, 200), whose(10, 200)], [Some(22), None]);
        // The number belongs to another process by then.
        assert!(served.at(8, 10, 150).is_none());
    }

    #[test]
    fn requests_for_which_there_is_no_room_are_counted() {
        let served = served(
            &[(8, 100, 200, 20), (8, 300, 400, 21), (9, 150, 250, 22)],
            1,
        );
        assert_eq!(
            (served.left_out(), served.at(8, 7, 300).is_none()),
            (2, true)
        );
    }
}
