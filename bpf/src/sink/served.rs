// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completes the entries of FUSE requests: the header of a request names the thread that made it, and not its process.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use mostrace_bundle::entry::{RawServed, TYPE_SERVED};
use zerocopy::{FromBytes, IntoBytes};

use super::owner::{self, RunningThread};
use super::tables::{kind_of, time_of};
use crate::error::{Error, Result};

/// The size of an entry in bytes.
pub(super) const SERVED: usize = size_of::<RawServed>();

/// A thread stays known for this long after it was found or got its name, ns. The kernel hands out numbers in turn, so that none
/// comes again so soon.
const KNOWN_NS: u64 = 2_000_000_000;
/// The most threads that are remembered, and entries that wait; beyond it, all are forgotten, or written.
const MOST: usize = 1 << 14;
/// Names come by another ring, up to so much later than the requests that were made after them, ns.
const LATE_NS: u64 = 1_000_000_000;

/// The threads that made requests lately, and the requests of unknown ones.
#[derive(Default)]
pub(super) struct Makers {
    /// Each with the time of the request after which it was found.
    found: HashMap<u32, (RunningThread, u64), RandomState>,
    /// The names of short processes may come after their requests.
    waiting: Vec<Record>,
}

/// An entry as the table has it.
pub(super) type Record = [u8; SERVED];

/// Returns true for the entry of a request.
#[inline]
pub(super) fn is_served(entry: &[u8]) -> bool {
    kind_of(entry) == Some(TYPE_SERVED)
}

impl Makers {
    /// Takes an entry. Returns it if the thread that made the request still runs, or did so lately; otherwise it waits.
    ///
    /// # Errors
    /// Returns an error if the entry is malformed.
    pub fn take(&mut self, entry: &[u8]) -> Result<Option<Record>> {
        let raw = RawServed::read_from_bytes(entry);
        let mut raw = raw.map_err(|_| Error::malformed("entries of causes", "malformed entry"))?;
        match self.of(raw.for_pid.get(), raw.head.time_ns.get()) {
            Some(maker) if maker.uid == raw.for_uid.get() => {
                raw.for_tgid = maker.tgid.into();
                raw.for_comm = maker.comm;
            }
            _ => {
                self.waiting.extend(entry.first_chunk());
                return Ok(None);
            }
        }
        Ok(entry_of(&raw))
    }

    /// Returns the waiting entries whose threads are known by their names at `now_ns`; if that is None or if they are many, all of them.
    /// `name_at` returns the name of a process at a time, and since when it has it.
    pub fn settled(
        &mut self,
        now_ns: Option<u64>,
        name_at: impl Fn(u32, u64) -> Option<(u64, [u8; 16])>,
    ) -> Vec<Record> {
        let now_ns = now_ns.filter(|_| self.waiting.len() < MOST);
        let are_told =
            |record: &Record, now_ns: u64| time_of(record).saturating_add(LATE_NS) <= now_ns;
        let mut settled = Vec::new();
        self.waiting.retain(|record| {
            let named = named(record, &name_at);
            let is_settled =
                now_ns.is_none_or(|now_ns| named.is_some() && are_told(record, now_ns));
            settled.extend(is_settled.then_some(named.unwrap_or(*record)));
            !is_settled
        });
        settled
    }

    fn of(&mut self, pid: u32, time_ns: u64) -> Option<RunningThread> {
        if let Some(owner) = owner::of(pid, time_ns) {
            if self.found.len() >= MOST {
                self.found.clear();
            }
            self.found.insert(pid, (owner, time_ns));
            return Some(owner);
        }
        let (owner, found_ns) = self.found.get(&pid)?;
        (time_ns.abs_diff(*found_ns) < KNOWN_NS).then_some(*owner)
    }
}

/// Returns an entry with the process that has ended by now; only main threads have such names.
fn named(record: &Record, name_at: impl Fn(u32, u64) -> Option<(u64, [u8; 16])>) -> Option<Record> {
    let mut raw = RawServed::read_from_bytes(record).ok()?;
    let (pid, time_ns) = (raw.for_pid.get(), raw.head.time_ns.get());
    let (since_ns, comm) = name_at(pid, time_ns)?;
    raw.for_tgid = (time_ns.abs_diff(since_ns) < KNOWN_NS).then_some(raw.for_pid)?;
    raw.for_comm = comm;
    entry_of(&raw)
}

fn entry_of(raw: &RawServed) -> Option<Record> {
    raw.as_bytes().try_into().ok()
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::{RawHead, UNKNOWN_ID};

    use super::*;

    fn request(pid: u32, uid: u32) -> RawServed {
        RawServed {
            head: RawHead {
                kind: TYPE_SERVED.into(),
                time_ns: (u64::MAX / 2).into(),
                ..RawHead::default()
            },
            for_pid: pid.into(),
            for_tgid: UNKNOWN_ID.into(),
            for_uid: uid.into(),
            ..RawServed::default()
        }
    }

    fn tgid(record: &Record) -> u32 {
        RawServed::read_from_bytes(record).unwrap().for_tgid.get()
    }

    #[test]
    fn a_request_is_its_process_if_that_runs_as_the_user() {
        let mut makers = Makers::default();
        let own = std::process::id();
        let uid = rustix::process::geteuid().as_raw();
        let mut take = |raw: &RawServed| makers.take(raw.as_bytes()).unwrap();
        assert_eq!(take(&request(own, uid)).as_ref().map(tgid), Some(own));
        assert_eq!(take(&request(own, uid + 1)), None);
        assert_eq!(take(&request(1 << 30, uid)), None);
        assert_eq!(makers.waiting.len(), 2);
        assert!(makers.take(&[0; 8]).is_err());
        // A name that comes later, and of a process that began shortly before.
        let name = |pid, time_ns| (pid == 1 << 30).then_some((time_ns - 5, [b'a'; 16]));
        let at = u64::MAX / 2;
        // Another name may still come.
        assert!(makers.settled(Some(at), name).is_empty());
        let settled = makers.settled(Some(at + LATE_NS), name);
        assert_eq!(settled.iter().map(tgid).collect::<Vec<_>>(), [1 << 30]);
        let settled = makers.settled(None, |_, time_ns| Some((time_ns - KNOWN_NS, [b'a'; 16])));
        assert_eq!(settled.iter().map(tgid).collect::<Vec<_>>(), [UNKNOWN_ID]);
    }

    #[test]
    fn a_thread_that_has_ended_is_known_for_a_while() {
        let mut makers = Makers::default();
        let owner = RunningThread {
            tgid: 7,
            uid: 1,
            comm: [b'a'; 16],
        };
        makers.found.insert(1 << 30, (owner, 5_000_000_000));
        assert_eq!(makers.of(1 << 30, 6_999_999_999), Some(owner));
        assert_eq!(makers.of(1 << 30, 7_000_000_000), None);
    }
}
