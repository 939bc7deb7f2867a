// SPDX-License-Identifier: MIT OR Apache-2.0
//! f2fs's checkpoints and who requested them, its garbage collections, and its atomic commits.

use std::collections::VecDeque;
use std::hash::Hash;

use mostrace_bundle::entry::{CallKind, Flags, RawF2fs, Step};

use super::calls::{Call, Calls};
use super::{Caller, Reason};
use crate::attribute::{FileId, HashMap, ProcessId, StackId};
use crate::tally::Tally;

/// Spans that ended this long before the latest step are forgotten, ns: their rows are completed by then.
const KEPT_NS: u64 = 60_000_000_000;
/// Number of spans that are remembered, and of inodes whose commits have begun; beyond it, all are forgotten.
const LIMIT: usize = 1 << 18;

/// A task that requested a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requester {
    pub caller: Caller,
    /// The file that the checkpoint was to make durable.
    pub file: FileId,
    /// True if the task requested it while collecting garbage.
    pub collects: bool,
}

/// A checkpoint that was seen from its beginning.
#[derive(Debug)]
pub(super) struct Checkpoint {
    span: Span,
    /// Tasks that requested it, the first one first; empty if they are unknown or if f2fs itself wanted it.
    pub requesters: Vec<Requester>,
    pub reason: Reason,
}

impl Checkpoint {
    /// Returns the time when it began, ns.
    pub fn begun_ns(&self) -> u64 {
        self.span.from_ns
    }
}

/// A time span, ns; `to_ns` is `u64::MAX` while it has not ended.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_ns: u64,
    to_ns: u64,
}

/// Something that lasts for a span.
trait Lasts {
    fn span(&self) -> Span;
}

impl Lasts for Span {
    fn span(&self) -> Span {
        *self
    }
}

impl Lasts for Checkpoint {
    fn span(&self) -> Span {
        self.span
    }
}

/// The latest spans of each owner; those of one owner follow each other.
#[derive(Debug)]
struct Spans<K, T> {
    of: HashMap<K, VecDeque<T>>,
    count: usize,
}

impl<K, T> Default for Spans<K, T> {
    fn default() -> Self {
        Spans {
            of: HashMap::default(),
            count: 0,
        }
    }
}

impl<K: Eq + Hash, T: Lasts> Spans<K, T> {
    fn push(&mut self, owner: K, new: T) {
        if self.count >= LIMIT {
            *self = Spans::default();
        }
        let spans = self.of.entry(owner).or_default();
        let kept_ns = new.span().from_ns.saturating_sub(KEPT_NS);
        let is_old = |oldest: &T| oldest.span().to_ns < kept_ns;
        while spans.front().is_some_and(is_old) {
            spans.pop_front();
            self.count = self.count.saturating_sub(1);
        }
        spans.push_back(new);
        self.count.tally(1);
    }

    fn last(&mut self, owner: K) -> Option<&mut T> {
        self.of.get_mut(&owner).and_then(VecDeque::back_mut)
    }

    /// Returns what an owner had at `time_ns`.
    fn at(&self, owner: &K, time_ns: u64) -> Option<&T> {
        found(self.of.get(owner)?, time_ns)
    }

    /// Returns what each owner had at `time_ns`.
    fn all_at(&self, time_ns: u64) -> impl Iterator<Item = &T> {
        let all = self.of.values();
        all.filter_map(move |spans| found(spans, time_ns))
    }
}

/// Returns the last of these spans that had begun at `time_ns`, unless it had ended.
fn found<T: Lasts>(spans: &VecDeque<T>, time_ns: u64) -> Option<&T> {
    let after = spans.partition_point(|one| one.span().from_ns <= time_ns);
    let last = spans.get(after.checked_sub(1)?)?;
    last.span().has(time_ns).then_some(last)
}

/// A task that waits for a checkpoint.
#[derive(Clone, Copy)]
struct Asker {
    s_dev: u32,
    pid: u32,
    process: ProcessId,
    is_kernels: bool,
    time_ns: u64,
    kind: CallKind,
    /// The call that it is in, if that is known.
    call: Option<Call>,
}

/// The recent checkpoints, collections and commits of f2fs.
#[derive(Default)]
pub(super) struct F2fs {
    askers: Vec<Asker>,
    /// By the device number of the filesystem.
    checkpoints: Spans<u32, Checkpoint>,
    /// Garbage collections, by thread.
    collections: Spans<u32, Span>,
    commits: Commits,
}

impl F2fs {
    /// Takes the next step. `calls` are known some seconds further ahead.
    pub fn push(&mut self, raw: &RawF2fs, process: ProcessId, calls: &Calls) {
        let time_ns = raw.head.time_ns.get();
        let (s_dev, pid) = (raw.s_dev.get(), raw.pid.get());
        match Step::from_repr(raw.step.get()) {
            Some(Step::Asked) => {
                // A task waits for one checkpoint at a time.
                self.askers.retain(|asker| asker.pid != pid);
                self.askers.push(Asker {
                    s_dev,
                    pid,
                    process,
                    is_kernels: raw.head.flags.has(Flags::KERNEL_THREAD),
                    time_ns,
                    kind: CallKind::of(raw.call.get()),
                    call: calls.at(pid, time_ns).copied(),
                });
            }
            Some(Step::Checkpoint) => self.begin(raw, process, calls),
            Some(Step::Written) => self.written(s_dev, time_ns),
            Some(Step::Gc) => self.collections.push(pid, Span::since(time_ns)),
            Some(Step::Collected) => {
                if let Some(span) = self.collections.last(pid) {
                    span.end(time_ns);
                }
            }
            None => {}
        }
    }

    /// Returns the checkpoint that was being written at `time_ns`; None if that is ambiguous.
    pub fn checkpoint(&self, time_ns: u64) -> Option<&Checkpoint> {
        let mut at = self.checkpoints.all_at(time_ns);
        // If the disk has two filesystems, either may have written it.
        at.next().filter(|_| at.next().is_none())
    }

    /// Returns true if a thread was collecting garbage at `time_ns`.
    pub fn collects(&self, pid: u32, time_ns: u64) -> bool {
        self.collections.at(&pid, time_ns).is_some()
    }

    /// Takes a call that began, committed or aborted an atomic write.
    pub fn call(&mut self, call: &Call, succeeded: bool) {
        self.commits.call(call, succeeded);
    }

    /// Returns true if the file's pages at `time_ns` belonged to a commit that succeeded.
    pub fn commits(&self, inode: (u64, u32), time_ns: u64) -> bool {
        self.commits.committed.at(&inode, time_ns).is_some()
    }

    fn begin(&mut self, raw: &RawF2fs, process: ProcessId, calls: &Calls) {
        let (s_dev, from_ns) = (raw.s_dev.get(), raw.head.time_ns.get());
        // A task whose call has returned did not need this checkpoint.
        self.askers.retain(|asker| {
            asker.s_dev != s_dev || asker.call.is_none_or(|call| call.end_ns >= from_ns)
        });
        let pid = raw.pid.get();
        let own = Asker {
            s_dev,
            pid,
            process,
            is_kernels: raw.head.flags.has(Flags::KERNEL_THREAD),
            time_ns: from_ns,
            kind: CallKind::of(raw.call.get()),
            call: calls.at(pid, from_ns).copied(),
        };
        let collects = self.collects(own.pid, from_ns);
        let asked = |asker: &&Asker| asker.s_dev == s_dev && asker.time_ns <= from_ns;
        // A task that writes the checkpoint itself requested it; the checkpoint thread writes it for the tasks that asked
        // before.
        let askers: Vec<Asker> = match collects || !own.is_kernels {
            true => vec![own],
            false => self.askers.iter().filter(asked).copied().collect(),
        };
        let first = askers.first();
        let call = first.and_then(|asker| asker.call);
        let reason = Reason::of_bits(raw.reason.get()).unwrap_or_else(|| match (first, call) {
            _ if collects => Reason::Gc,
            (_, Some(call)) => call.reason(),
            (Some(asker), _) if !asker.is_kernels => Reason::of_call(asker.kind, 0),
            _ => Reason::Background,
        });
        let is_known = collects || first.is_some_and(|asker| !asker.is_kernels);
        let users = askers.iter().filter(|asker| collects || !asker.is_kernels);
        let requesters = users.filter(|_| is_known).map(|asker| {
            let call = asker.call;
            Requester {
                caller: Caller {
                    process: asker.process,
                    stack: call.map_or(StackId::UNKNOWN, |call| call.caller.stack),
                },
                file: call.map_or(FileId::NONE, |call| call.file),
                collects,
            }
        });
        let new = Checkpoint {
            span: Span::since(from_ns),
            requesters: requesters.collect(),
            reason,
        };
        self.checkpoints.push(s_dev, new);
    }

    fn written(&mut self, s_dev: u32, time_ns: u64) {
        let Some(last) = self.checkpoints.last(s_dev) else {
            return;
        };
        last.span.end(time_ns);
        let from_ns = last.span.from_ns;
        // The checkpoint served whoever asked before it began; tasks whose call is known are dropped when that call has
        // ended.
        self.askers.retain(|asker| {
            let is_its = asker.s_dev == s_dev && asker.time_ns <= from_ns;
            !is_its || asker.call.is_some()
        });
    }
}

impl Span {
    fn since(from_ns: u64) -> Span {
        Span {
            from_ns,
            to_ns: u64::MAX,
        }
    }

    fn end(&mut self, time_ns: u64) {
        self.to_ns = self.to_ns.min(time_ns);
    }

    fn has(&self, time_ns: u64) -> bool {
        (self.from_ns..=self.to_ns).contains(&time_ns)
    }
}

/// The time spans in which an inode's pages belonged to an atomic commit.
#[derive(Default)]
struct Commits {
    /// Start times (ns) of commits that have begun.
    begun: HashMap<(u64, u32), u64>,
    committed: Spans<(u64, u32), Span>,
}

impl Commits {
    fn call(&mut self, call: &Call, succeeded: bool) {
        if self.begun.len() >= LIMIT {
            self.begun.clear();
        }
        match call.kind {
            // Pages that were dirty before are written before the call returns.
            CallKind::AtomicStart if succeeded => {
                self.begun.insert(call.inode, call.end_ns);
            }
            CallKind::AtomicCommit => {
                let begun = self.begun.remove(&call.inode).filter(|_| succeeded);
                if let Some(from_ns) = begun {
                    let span = Span {
                        from_ns,
                        to_ns: call.end_ns,
                    };
                    self.committed.push(call.inode, span);
                }
            }
            CallKind::AtomicAbort => {
                self.begun.remove(&call.inode);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::{NONE, RawHead, TYPE_F2FS, cp};

    use super::super::is_sync;
    use super::*;

    const KERNELS: u32 = 50;
    const FILE: FileId = FileId(7);

    fn step(step: Step, pid: u32, time_ns: u64) -> RawF2fs {
        let flags = match pid {
            ..=KERNELS => Flags::KERNEL_THREAD,
            _ => Flags::default(),
        };
        RawF2fs {
            head: RawHead {
                kind: TYPE_F2FS.into(),
                size: 72.into(),
                time_ns: time_ns.into(),
                sector: NONE.into(),
                flags,
                ..RawHead::default()
            },
            s_dev: 1.into(),
            pid: pid.into(),
            tgid: pid.into(),
            step: (step as u16).into(),
            reason: cp::SYNC.into(),
            ..RawF2fs::default()
        }
    }

    /// Thread numbers are process numbers here.
    fn push(f2fs: &mut F2fs, calls: &Calls, raw: RawF2fs) {
        f2fs.push(&raw, ProcessId(raw.pid.get()), calls);
    }

    fn call(pid: u32, kind: CallKind, start_ns: u64, end_ns: u64) -> Call {
        Call {
            start_ns,
            end_ns,
            kind,
            pid,
            tgid: pid,
            caller: ProcessId(pid).into(),
            file: FILE,
            inode: (12, 1),
            cp_reason: 7,
            asks: is_sync(kind),
        }
    }

    /// Returns who requested the checkpoint at `at_ns`, and its reason, after steps in time order and these calls.
    fn wanted(steps: &[(Step, u32, u64)], of: &[Call], at_ns: u64) -> Option<(Vec<u32>, Reason)> {
        let mut calls = Calls::default();
        of.iter().for_each(|call| calls.push(*call, 0));
        let mut f2fs = F2fs::default();
        for &(which, pid, time_ns) in steps {
            push(&mut f2fs, &calls, step(which, pid, time_ns));
        }
        let checkpoint = f2fs.checkpoint(at_ns)?;
        let requesters = checkpoint.requesters.iter();
        Some((
            requesters.map(|r| r.caller.process.0).collect(),
            checkpoint.reason,
        ))
    }

    #[test]
    fn a_checkpoint_is_whose_asked_for_it_before_it_began() {
        let steps = [
            (Step::Asked, 101, 10),
            (Step::Checkpoint, KERNELS, 20),
            // This request is for the next checkpoint.
            (Step::Asked, 102, 25),
            (Step::Written, KERNELS, 30),
            (Step::Checkpoint, KERNELS, 35),
            (Step::Written, KERNELS, 40),
        ];
        let calls = [
            call(101, CallKind::Fsync, 5, 31),
            call(102, CallKind::Fsync, 24, 41),
        ];
        assert_eq!(
            wanted(&steps, &calls, 25),
            Some((vec![101], Reason::NodeNeedCp))
        );
        assert_eq!(
            wanted(&steps, &calls, 38),
            Some((vec![102], Reason::NodeNeedCp))
        );
        assert_eq!(wanted(&steps, &calls, 33), None);
        // If the call is unknown, the checkpoint is taken to have served whoever asked.
        assert_eq!(wanted(&steps, &[], 38), Some((vec![102], Reason::Other)));
    }

    #[test]
    fn of_several_that_wait_any_may_have_had_it() {
        let steps = [
            (Step::Asked, 101, 10),
            (Step::Asked, 102, 12),
            (Step::Checkpoint, KERNELS, 20),
        ];
        let calls = [
            call(101, CallKind::Sync, 5, 31),
            call(102, CallKind::Fsync, 11, 31),
        ];
        let (requesters, _) = wanted(&steps, &calls, 25).unwrap();
        assert_eq!(requesters, [101, 102]);
        // A task whose call returned before did not need the checkpoint.
        let returned = [call(101, CallKind::Sync, 5, 15), calls[1]];
        assert_eq!(wanted(&steps, &returned, 25).unwrap().0, [102]);
    }

    #[test]
    fn what_a_kernel_thread_asks_for_is_nobodys() {
        let steps = [(Step::Asked, 40, 10), (Step::Checkpoint, KERNELS, 20)];
        assert_eq!(wanted(&steps, &[], 25), Some((vec![], Reason::Background)));
        let never_asked = [(Step::Checkpoint, KERNELS, 20)];
        assert_eq!(
            wanted(&never_asked, &[], 25),
            Some((vec![], Reason::Background))
        );
    }

    #[test]
    fn who_writes_it_itself_wants_it_and_collecting_so_does_a_kernel_thread() {
        let own = [(Step::Asked, 102, 5), (Step::Checkpoint, 101, 20)];
        assert_eq!(wanted(&own, &[], 25), Some((vec![101], Reason::Other)));
        let gc = [
            (Step::Gc, 40, 10),
            (Step::Checkpoint, 40, 20),
            (Step::Written, 40, 30),
            (Step::Collected, 40, 50),
        ];
        assert_eq!(wanted(&gc, &[], 25), Some((vec![40], Reason::Gc)));
        let (mut f2fs, calls) = (F2fs::default(), Calls::default());
        for (which, pid, time_ns) in gc {
            push(&mut f2fs, &calls, step(which, pid, time_ns));
        }
        let collects: Vec<u64> = (0..8)
            .map(|n| n * 10)
            .filter(|&ns| f2fs.collects(40, ns))
            .collect();
        assert_eq!(collects, [10, 20, 30, 40, 50]);
        assert!(!f2fs.collects(101, 20));
    }

    #[test]
    fn of_two_filesystems_at_once_either_may_have_written_it() {
        let (mut f2fs, calls) = (F2fs::default(), Calls::default());
        push(&mut f2fs, &calls, step(Step::Checkpoint, 101, 10));
        let mut other = step(Step::Checkpoint, 102, 20);
        other.s_dev = 2.into();
        push(&mut f2fs, &calls, other);
        assert!(f2fs.checkpoint(15).is_some() && f2fs.checkpoint(25).is_none());
        push(&mut f2fs, &calls, step(Step::Written, 101, 30));
        assert_eq!(
            f2fs.checkpoint(35)
                .map(|c| c.requesters[0].caller.process.0),
            Some(102)
        );
    }

    #[test]
    fn what_was_written_between_two_ioctls_was_committed_at_once() {
        let mut f2fs = F2fs::default();
        for (kind, start_ns, end_ns, succeeded) in [
            (CallKind::AtomicStart, 5, 10, true),
            (CallKind::AtomicCommit, 20, 30, true),
            (CallKind::AtomicStart, 35, 40, true),
            (CallKind::AtomicAbort, 45, 50, true),
            (CallKind::AtomicStart, 55, 60, true),
            (CallKind::AtomicCommit, 65, 70, false),
        ] {
            f2fs.call(&call(101, kind, start_ns, end_ns), succeeded);
        }
        let at: Vec<u64> = (1..8)
            .map(|n| n * 10)
            .filter(|&ns| f2fs.commits((12, 1), ns))
            .collect();
        assert_eq!(at, [10, 20, 30]);
        assert!(!f2fs.commits((13, 1), 20));
    }
}
