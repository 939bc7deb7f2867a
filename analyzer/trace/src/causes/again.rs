// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls whose bytes were written out before they returned, and that may have changed them again afterwards.
//!
//! f2fs, for one, writes a file's first page out when the file outgrows its inode, in the call that changes the page next. The page
//! is clean in between, so that such a change makes it dirty again, and that is known.

use smallvec::SmallVec;

use super::Caller;
use super::change::{Change, Inode};
use crate::attribute::{HashMap, ProcessId};

/// The most files whose calls are kept; beyond it, all are forgotten.
const LIMIT: usize = 1 << 16;
/// The most calls that are kept of a file: the latest ones.
const CALLS: usize = 8;

/// A task, and the time at which it made a page dirty, ns.
pub(super) type Dirtied = (ProcessId, u64);

/// The calls of all files, each with the bytes that were written out.
#[derive(Default)]
pub(super) struct Again(HashMap<Inode, SmallVec<[Change; 1]>>);

impl Again {
    /// Notes bytes that a call had changed, and that were written out before it returned.
    pub fn push(&mut self, inode: Inode, written: Change) {
        if self.0.len() >= LIMIT && !self.0.contains_key(&inode) {
            self.0.clear();
        }
        let calls = self.0.entry(inode).or_default();
        let is_same =
            |call: &&mut Change| (call.caller, call.start_ns) == (written.caller, written.start_ns);
        if let Some(call) = calls.iter_mut().find(is_same) {
            call.from = call.from.min(written.from);
            call.to = call.to.max(written.to);
            return;
        }
        if calls.len() >= CALLS {
            calls.remove(0);
        }
        calls.push(written);
    }

    /// Returns the task that changed blocks `from..to` again, whose page was `dirtied` since they were written out.
    pub fn changer(
        &self,
        inode: Inode,
        (from, to): (u64, u64),
        (process, dirty_ns): Dirtied,
    ) -> Option<Caller> {
        let mut calls = self.0.get(&inode)?.iter();
        let again = calls.find(|call| {
            let lasted = call.start_ns..=call.end_ns;
            call.caller.process == process && call.meets(from, to) && lasted.contains(&dirty_ns)
        });
        again.map(|call| call.caller)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets what calls that had returned by `q_ns` changed again: bytes `from..to` were written out then.
    pub fn written(&mut self, inode: Inode, (from, to): (u64, u64), q_ns: u64) {
        let Some(calls) = self.0.get_mut(&inode) else {
            return;
        };
        calls.retain(|call| call.end_ns > q_ns || call.from < from || to < call.to);
        if calls.is_empty() {
            self.0.remove(&inode);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::Act;
    use super::*;

    const TASK: ProcessId = ProcessId(1);

    fn call(start_ns: u64) -> Change {
        Change {
            act: Act::Changed,
            caller: TASK.into(),
            from: 0,
            to: 4096,
            start_ns,
            end_ns: start_ns + 10,
        }
    }

    fn is_again(again: &Again, file: u64, dirtied: Dirtied) -> bool {
        again.changer((file, 1), (0, 4096), dirtied).is_some()
    }

    #[test]
    fn a_page_that_is_dirtied_in_the_call_was_changed_again() {
        let mut again = Again::default();
        again.push((12, 1), call(100));
        for (file, process, dirty_ns, expected) in [
            (12, TASK, 100, true),
            (12, TASK, 110, true),
            (12, TASK, 99, false),
            (12, TASK, 111, false),
            (12, ProcessId(2), 105, false),
            (13, TASK, 105, false),
        ] {
            let found = is_again(&again, file, (process, dirty_ns));
            assert_eq!(found, expected, "{file} {process:?} {dirty_ns}");
        }
        assert_eq!(again.changer((12, 1), (4096, 8192), (TASK, 105)), None);
        again.push(
            (12, 1),
            Change {
                from: 4096,
                to: 8192,
                ..call(100)
            },
        );
        assert!(again.changer((12, 1), (4096, 8192), (TASK, 105)).is_some());
    }

    #[test]
    fn what_was_written_after_the_call_is_forgotten() {
        let mut again = Again::default();
        again.push((12, 1), call(100));
        again.written((12, 1), (0, 4096), 109);
        again.written((12, 1), (512, 8192), 200);
        again.written((13, 1), (0, 4096), 200);
        assert!(is_again(&again, 12, (TASK, 105)));
        again.written((12, 1), (0, 8192), 110);
        assert!(again.is_empty());
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut again = Again::default();
        for at in 0..=CALLS as u64 {
            again.push((12, 1), call(100 * at));
        }
        let kept = |at: usize| is_again(&again, 12, (TASK, 100 * at as u64));
        assert!(!kept(0) && (1..=CALLS).all(kept));
        for file in 0..=LIMIT as u64 {
            again.push((file, 2), call(100));
        }
        assert_eq!(again.0.len(), 2);
        assert!(!is_again(&again, 12, (TASK, 100)));
    }
}
