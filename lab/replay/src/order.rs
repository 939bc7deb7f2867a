// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the operations that must have ended before another may begin, after Weiss et al., "ROOT: replaying multithreaded traces
//! with resource-oriented ordering" (SOSP 2013).
//!
//! An operation waits for another one that ended before it began in the recording, if the two share a thread, a file (also through
//! different names or descriptors), or a name. An operation that makes, removes or changes a name shares all names below it.
//! Operations that overlapped in the recording may overlap in the replay, in any order.

use std::collections::HashMap;

use crate::Name;
use crate::deduce::Touched;
use crate::operation::Operation;
use crate::tree::ObjectId;

/// An operation's place: the thread, counted in the order in which threads appear, and the number of operations of that
/// thread before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) thread: u32,
    pub(crate) index: u32,
}

/// The start and end of an operation, ns.
#[derive(Clone, Copy, Debug)]
struct Time {
    begin: u64,
    end: u64,
}

/// The order of operations. They are numbered as they were recorded.
#[derive(Debug)]
pub(crate) struct Order {
    times: Vec<Time>,
    places: Vec<At>,
    /// The operations of each thread.
    threads: Vec<Vec<u32>>,
    dependencies: Vec<u32>,
    /// The end of each operation's part of `dependencies`.
    ends: Vec<usize>,
    objects: HashMap<ObjectId, Line>,
    names: HashMap<Name, Below>,
    /// For each thread, the number of operations of each other thread that it has already waited for.
    waited: Vec<HashMap<u32, u32>>,
}

impl Order {
    /// Takes the times of all operations, which must be ordered by their start.
    pub(crate) fn new(operations: &[Operation]) -> Order {
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut threads: Vec<Vec<u32>> = Vec::new();
        let mut places = Vec::with_capacity(operations.len());
        for (number, operation) in (0..).zip(operations) {
            let next = threads.len() as u32;
            let thread = *numbers.entry(operation.thread).or_insert(next);
            if thread == next {
                threads.push(Vec::new());
            }
            let own = &mut threads[thread as usize];
            let index = own.len() as u32;
            places.push(At { thread, index });
            own.push(number);
        }
        Order {
            times: times(operations, &threads),
            places,
            waited: vec![HashMap::new(); threads.len()],
            threads,
            dependencies: Vec::new(),
            ends: Vec::new(),
            objects: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// Adds the next operation.
    pub(crate) fn add(&mut self, touched: &Touched) {
        let number = self.ends.len() as u32;
        let mut needed = Vec::new();
        for object in &touched.objects {
            let line = self.objects.entry(*object).or_default();
            line.arrive(number, &self.times, &mut needed);
        }
        for (changes, names) in [(true, &touched.changes), (false, &touched.uses)] {
            for name in names {
                self.arrive_at(name, changes, number, &mut needed);
            }
        }
        self.keep(number, needed);
        self.ends.push(self.dependencies.len());
    }

    fn arrive_at(&mut self, name: &Name, changes: bool, number: u32, needed: &mut Vec<u32>) {
        let (times, places) = (&self.times, &self.places);
        let below = self.names.entry(name.clone()).or_default();
        below.same.arrive(number, times, needed);
        let mut changes = changes;
        let mut name = Some(name.clone());
        while let Some(at) = name {
            name = at.parent();
            let below = self.names.entry(at).or_default();
            below.arrive(number, changes, times, places, needed);
            changes = false;
        }
    }

    /// Stores the dependencies of an operation: the last operation in `needed` of each other thread, unless the thread has waited
    /// for it already.
    fn keep(&mut self, number: u32, needed: Vec<u32>) {
        let thread = self.places[number as usize].thread;
        let waited = &mut self.waited[thread as usize];
        let mut places: Vec<At> = needed.iter().map(|n| self.places[*n as usize]).collect();
        places.sort_unstable();
        for (nth, at) in places.iter().enumerate() {
            let last = places
                .get(nth + 1)
                .is_none_or(|next| next.thread != at.thread);
            let after = waited.entry(at.thread).or_default();
            if last && at.thread != thread && *after <= at.index {
                *after = at.index + 1;
                let needed = self.threads[at.thread as usize][at.index as usize];
                self.dependencies.push(needed);
            }
        }
    }

    /// Returns the operations of other threads that an operation waits for. If these have ended, all others for which it must wait
    /// have ended too.
    pub(crate) fn dependencies(&self, number: u32) -> &[u32] {
        let number = number as usize;
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.dependencies[begin..self.ends[number]]
    }

    /// Returns the operations of each thread.
    pub(crate) fn threads(&self) -> &[Vec<u32>] {
        &self.threads
    }

    pub(crate) fn place(&self, number: u32) -> At {
        self.places[number as usize]
    }

    /// Returns the time between an operation's start and the end of the last operation that it waits for (including those of its
    /// own thread), ns. If it waits for none, the time counts from the recording's first operation.
    pub(crate) fn gap(&self, number: u32) -> u64 {
        let at = self.places[number as usize];
        let own = at.index.checked_sub(1);
        let own = own.map(|index| self.threads[at.thread as usize][index as usize]);
        let before = self.dependencies(number).iter().copied().chain(own);
        let first = self.times.first().map_or(0, |time| time.begin);
        let ready = before.map(|number| self.times[number as usize].end).max();
        let begin = self.times[number as usize].begin;
        begin.saturating_sub(ready.unwrap_or(first))
    }

    /// Drops what only [`Order::add`] needs.
    pub(crate) fn finish(&mut self) {
        (self.objects, self.names) = Default::default();
        self.waited.clear();
    }
}

/// Returns the times of the operations. A thread makes one call at a time, so a call ends at the latest when the thread's next call
/// begins.
fn times(operations: &[Operation], threads: &[Vec<u32>]) -> Vec<Time> {
    let times = operations.iter().map(|operation| Time {
        begin: operation.begin_ns,
        end: operation.end_ns.max(operation.begin_ns),
    });
    let mut times: Vec<Time> = times.collect();
    for own in threads {
        for pair in own.windows(2) {
            if let [this, next] = *pair {
                let next = times[next as usize].begin;
                let end = &mut times[this as usize].end;
                *end = next.min(*end);
            }
        }
    }
    times
}

/// Returns true if the first operation must have ended before the second one begins, provided that they share a resource.
fn precedes(first: u32, second: u32, times: &[Time]) -> bool {
    first < second && times[first as usize].end <= times[second as usize].begin
}

/// The operations that share a resource. Each of them waits for all that ended before it began.
#[derive(Debug, Default)]
struct Line {
    /// Operations that have ended and for which no other ended operation has waited.
    last: Vec<u32>,
    /// Operations that had not ended when the latest one began.
    running: Vec<u32>,
}

impl Line {
    fn arrive(&mut self, number: u32, times: &[Time], needed: &mut Vec<u32>) {
        if self.running.last() == Some(&number) {
            return;
        }
        self.settle(number, times);
        needed.extend(&self.last);
        self.running.push(number);
    }

    /// Updates `last` to the time at which an operation began.
    fn settle(&mut self, number: u32, times: &[Time]) {
        let last = &mut self.last;
        self.running.retain(|running| {
            let ended = precedes(*running, number, times);
            if ended {
                last.retain(|before| !precedes(*before, *running, times));
                last.push(*running);
            }
            !ended
        });
    }
}

/// The operations on a name and on those below it.
#[derive(Debug, Default)]
struct Below {
    /// The operations on the name itself.
    same: Line,
    /// The operations that made, removed or changed the name: all others wait for them, and they wait for all others.
    changes: Line,
    /// The last two operations of each thread on names in it. The second one may still be running; the first one has ended.
    uses: HashMap<u32, (Option<u32>, u32)>,
}

impl Below {
    fn arrive(
        &mut self,
        number: u32,
        changes: bool,
        times: &[Time],
        places: &[At],
        needed: &mut Vec<u32>,
    ) {
        self.changes.settle(number, times);
        needed.extend(self.changes.last.iter().filter(|last| **last != number));
        if changes {
            // An operation for which an ended change has waited need not be considered.
            let last = &self.changes.last;
            let is_covered = |use_: u32| last.iter().any(|change| precedes(use_, *change, times));
            self.uses.retain(|_, uses| !is_covered(uses.1));
            for (before, last) in self.uses.values() {
                let ended = |use_: &u32| precedes(*use_, number, times);
                let use_ = Some(*last).filter(ended).or(*before);
                needed.extend(use_.filter(|use_| !is_covered(*use_)));
            }
            if self.changes.running.last() != Some(&number) {
                self.changes.running.push(number);
            }
        }
        let thread = places[number as usize].thread;
        let uses = self.uses.entry(thread).or_insert((None, number));
        if uses.1 != number {
            *uses = (Some(uses.1), number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::HashSet;

    use super::*;
    use crate::deduce::Deduction;
    use crate::operation::{Call, Change, FileCall, FileId, Opened, Target};

    fn order(operations: &[Operation]) -> (Order, Vec<Touched>) {
        let mut order = Order::new(operations);
        let mut deduction = Deduction::default();
        let mut all = Vec::new();
        for operation in operations {
            let touched = deduction.step(operation);
            order.add(touched);
            all.push(touched.clone());
        }
        (order, all)
    }

    /// Returns true by the definition of sharing: the two operations have a file or a name in common.
    fn share(a: &Touched, b: &Touched) -> bool {
        let names = |touched: &Touched| [touched.uses.clone(), touched.changes.clone()].concat();
        let below = |changed: &Touched, other: &Touched| {
            let mut changes = changed.changes.iter();
            changes.any(|change| names(other).iter().any(|name| name.is_in(change)))
        };
        a.objects.iter().any(|object| b.objects.contains(object))
            || names(a).iter().any(|name| names(b).contains(name))
            || below(a, b)
            || below(b, a)
    }

    /// Returns all operations that each operation waits for, including indirectly.
    fn closure(order: &Order, count: usize) -> Vec<HashSet<u32>> {
        let mut all: Vec<HashSet<u32>> = Vec::new();
        for number in 0..count as u32 {
            let at = order.place(number);
            let own = at.index.checked_sub(1);
            let own = own.map(|index| order.threads()[at.thread as usize][index as usize]);
            let mut before = HashSet::new();
            for one in order.dependencies(number).iter().copied().chain(own) {
                before.insert(one);
                before.extend(all[one as usize].clone());
            }
            all.push(before);
        }
        all
    }

    fn path() -> impl Strategy<Value = Name> {
        let part = || prop_oneof![Just("a"), Just("b"), Just("c")];
        let parts = proptest::collection::vec(part(), 1..4);
        parts.prop_map(|parts| Name::new(parts.join("/").as_bytes()).unwrap())
    }

    fn call() -> impl Strategy<Value = Call> {
        let file = || (1..5u64).prop_map(FileId);
        let opened = (file(), path()).prop_map(|(file, path)| Opened {
            file: Some(file),
            path: Some(path),
            flags: 2,
            mode: 0,
            i_mode: 0,
            size: None,
            created: false,
            inode: (0, 0),
        });
        prop_oneof![
            opened.prop_map(Call::Open),
            file().prop_map(|file| Call::Of(file, FileCall::Fsync)),
            path().prop_map(|path| Call::Mkdir { path, mode: 0 }),
            path().prop_map(Call::Unlink),
            (path(), path()).prop_map(|(from, to)| Call::Rename { from, to, flags: 0 }),
            (path(), path()).prop_map(|(from, to)| Call::Link {
                from: Target::Path(from),
                to,
                follow: false
            }),
            path().prop_map(|path| Call::Change(Target::Path(path), Change::Chmod(0))),
        ]
    }

    fn operations() -> impl Strategy<Value = Vec<Operation>> {
        let result = prop_oneof![4 => Just(0), 1 => Just(-2i64)];
        let one = (0..4u32, 0..4u64, 0..12u64, call(), result);
        proptest::collection::vec(one, 0..40).prop_map(|all| {
            let mut now = 0;
            let operations = all.into_iter().map(|(thread, after, lasts, call, result)| {
                now += after;
                Operation {
                    thread,
                    process: 1,
                    begin_ns: now,
                    end_ns: now + lasts,
                    call,
                    result,
                }
            });
            operations.collect()
        })
    }

    proptest! {
        #![proptest_config(test_support::property::config(file!(), 2000))]
        #[test]
        fn waits_are_those_of_the_definition(operations in operations()) {
            let (order, touched) = order(&operations);
            let closure = closure(&order, operations.len());
            for second in 0..operations.len() {
                for first in 0..second {
                    let (one, other) = (first as u32, second as u32);
                    let needed = precedes(one, other, &order.times) && share(&touched[first], &touched[second]);
                    prop_assert!(!needed || closure[second].contains(&one), "{second} after {first}");
                    if order.dependencies(other).contains(&one) {
                        prop_assert!(needed, "{second} needs not wait for {first}");
                    }
                }
                let threads = order.dependencies(second as u32).iter().map(|n| order.place(*n).thread);
                let different: HashSet<u32> = threads.clone().collect();
                prop_assert_eq!(different.len(), threads.count());
            }
        }
    }

    fn at(thread: u32, begin_ns: u64, end_ns: u64, call: Call) -> Operation {
        Operation {
            thread,
            process: 1,
            begin_ns,
            end_ns,
            call,
            result: 0,
        }
    }

    fn name(path: &str) -> Name {
        Name::new(path.as_bytes()).unwrap()
    }

    #[test]
    fn what_a_thread_has_waited_for_it_does_not_wait_for_again() {
        let change = |thread, begin, path| {
            let target = Target::Path(name(path));
            let call = Call::Change(target, Change::Chmod(0));
            at(thread, begin, begin + 1, call)
        };
        let (order, _) = order(&[change(1, 0, "a"), change(2, 10, "a"), change(2, 20, "a")]);
        let waits: Vec<&[u32]> = (0..3).map(|number| order.dependencies(number)).collect();
        assert_eq!(waits, [&[][..], &[0], &[]]);
    }

    #[test]
    fn a_name_below_a_new_folder_waits_for_it_and_overlapping_operations_do_not() {
        let mkdir = |thread, begin, end, path| {
            let path = name(path);
            at(thread, begin, end, Call::Mkdir { path, mode: 0 })
        };
        let (order, _) = order(&[
            mkdir(1, 0, 10, "a"),
            mkdir(2, 20, 30, "a/b"),
            mkdir(3, 20, 30, "c"),
            mkdir(4, 25, 40, "a/b/c"),
            at(5, 50, 60, Call::Rmdir(name("a"))),
        ]);
        let waits: Vec<&[u32]> = (0..5).map(|number| order.dependencies(number)).collect();
        assert_eq!(
            waits,
            [&[][..], &[0], &[], &[0], &[0, 1, 3]].map(|waits: &[u32]| waits)
        );
        assert_eq!(
            (order.gap(0), order.gap(1), order.gap(3), order.gap(4)),
            (0, 10, 15, 10)
        );
    }

    #[test]
    fn a_file_is_one_whatever_its_name() {
        let link = Call::Link {
            follow: false,
            from: Target::Path(name("a")),
            to: name("b"),
        };
        let rename = Call::Rename {
            from: name("b"),
            to: name("c"),
            flags: 0,
        };
        let chmod = |path| Call::Change(Target::Path(name(path)), Change::Chmod(0));
        let all = [link, rename, chmod("a"), chmod("c"), chmod("d")];
        let operations: Vec<Operation> = (0..)
            .zip(all)
            .map(|(n, call)| at(n, n.into(), n.into(), call))
            .collect();
        let (order, _) = order(&operations);
        let waits: Vec<&[u32]> = (0..5).map(|number| order.dependencies(number)).collect();
        // Both chmods change the same file.
        assert!(waits[3].contains(&2), "{waits:?}");
        assert!(waits[4].is_empty(), "{waits:?}");
    }
}
