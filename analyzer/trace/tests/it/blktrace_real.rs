// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares real traces of a loop device with blkparse, line by line and in sum, and with what the workload (`data/make.sh`)
//! is known to have done.

use crate::support;

use mostrace_trace::blktrace::{Completion, Event, Trace, action, find, rwbs};
use std::collections::BTreeMap;
use support::{REAL, oracle, real};

const DISCARD: u64 = action::BLK_TC_DISCARD;

fn events(name: &str) -> Vec<Event<'static>> {
    let files = find(&real(name)).expect("the trace");
    support::events(&mut Trace::open(&files).expect("opens"))
}

fn completions(name: &str) -> Vec<Completion<'static>> {
    let files = find(&real(name)).expect("the trace");
    let trace = Trace::open(&files).expect("opens");
    let (all, completions) = support::completions(trace);
    assert!(completions.notices().is_empty());
    all
}

#[test]
fn every_event_is_as_blkparse_prints_it() {
    for name in REAL {
        let events = events(name);
        let start = events.first().expect("events").time_ns;
        let ours: Vec<String> = events
            .iter()
            .filter_map(|e| {
                let letter = action::letter(e.action)?;
                let ns = e.time_ns - start;
                let (major, minor) = (e.device >> 20, e.device & 0xf_ffff);
                let rwbs = rwbs(e.action, e.bytes);
                Some(format!(
                    "{major},{minor} {} {}.{:09} {} {letter} {rwbs} {} {} {}",
                    e.cpu,
                    ns / 1_000_000_000,
                    ns % 1_000_000_000,
                    e.pid,
                    e.sector,
                    e.bytes,
                    e.error
                ))
            })
            .collect();
        let theirs = oracle::lines(&real(name), "%M,%m %c %T.%t %p %a %d %S %N %e");
        assert!(ours.len() > 500, "{name}: only {} events", ours.len());
        for (line, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let squeezed: Vec<&str> = theirs.split_whitespace().collect();
            assert_eq!(*ours, squeezed.join(" "), "{name}, event {line}");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
    }
}

#[test]
fn the_counts_are_blkparses() {
    for name in REAL {
        let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
        for letter in oracle::lines(&real(name), "%a") {
            *theirs.entry(letter.trim().to_owned()).or_default() += 1;
        }
        let mut ours: BTreeMap<String, u64> = BTreeMap::new();
        let events = events(name).into_iter();
        for letter in events.filter_map(|event| action::letter(event.action)) {
            *ours.entry(letter.to_owned()).or_default() += 1;
        }
        assert_eq!(ours, theirs, "{name}");
    }
}

/// blkparse counts everything that is not a write as a read (including an internal flush), but a completion only if it has
/// bytes.
#[test]
fn completed_requests_and_bytes_are_blkparses() {
    for name in REAL {
        let mut ours = oracle::Summary {
            reads: 0,
            read_kib: 0,
            writes: 0,
            write_kib: 0,
        };
        let (mut read, mut write) = (0, 0);
        for c in completions(name) {
            if c.action & action::BLK_TC_WRITE != 0 {
                ours.writes += 1;
                write += u64::from(c.bytes);
            } else {
                ours.reads += 1;
                read += u64::from(c.bytes);
            }
        }
        ours.read_kib = read >> 10;
        ours.write_kib = write >> 10;
        assert_eq!(ours, oracle::summary(&real(name)), "{name}");
    }
}

fn assert_covered(c: &Completion<'_>) {
    let mut sector = c.sector;
    for part in c.parts {
        assert_eq!(part.sector, sector, "{c:?}");
        sector += u64::from(part.bytes / 512);
    }
    assert_eq!(sector, c.sector + u64::from(c.bytes / 512), "{c:?}");
}

/// Nothing was lost and no sectors were in flight twice, so every part must be explained.
#[test]
fn every_byte_has_its_submitter() {
    for name in REAL {
        for c in completions(name) {
            assert_covered(&c);
            let internal_flush = c.bytes == 0 && c.action & action::BLK_TC_WRITE == 0;
            assert_eq!(c.parts[0].pid.is_none(), internal_flush, "{name}: {c:?}");
            for part in c.parts.iter().filter(|_| !internal_flush) {
                let q_ns = part.q_ns.expect("Q was traced");
                assert!(part.pid.is_some());
                assert!(q_ns < c.time_ns, "{name}: {c:?}");
                if let Some(d_ns) = c.d_ns {
                    assert!(q_ns < d_ns && d_ns < c.time_ns, "{name}: {c:?}");
                }
            }
            // Only a pure flush is completed without a D of its own.
            let pure_flush = c.bytes == 0 && c.sector == 0 && !internal_flush;
            assert_eq!(c.d_ns.is_none(), pure_flush, "{name}: {c:?}");
            assert_eq!(c.g_ns.is_none(), internal_flush, "{name}: {c:?}");
        }
    }
}

/// All bytes that were queued are completed, thread by thread: the submitters of the parts are right at least in sum.
#[test]
fn threads_get_back_what_they_queued() {
    for name in REAL {
        let mut queued: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        for e in events(name) {
            if !e.is_note() && e.act() == action::ta::QUEUE && e.bytes > 0 {
                let kind = e.action & (action::BLK_TC_WRITE | DISCARD);
                *queued.entry((e.pid, kind)).or_default() += u64::from(e.bytes);
            }
        }
        let mut completed: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        for c in completions(name).iter().filter(|c| c.bytes > 0) {
            let kind = c.action & (action::BLK_TC_WRITE | DISCARD);
            for part in c.parts {
                let pid = part.pid.expect("known");
                *completed.entry((pid, kind)).or_default() += u64::from(part.bytes);
            }
        }
        assert_eq!(queued, completed, "{name}");
    }
}

/// Each write that asks for a flush ends in two completions, with its bytes and without; the second one has the same thread
/// and Q.
#[test]
fn flush_sequences_end_in_an_empty_completion() {
    for name in REAL {
        let sequences: Vec<Event> = events(name)
            .into_iter()
            .filter(|e| e.act() == action::ta::QUEUE && rwbs(e.action, e.bytes) == "FWFSM")
            .collect();
        assert!(sequences.len() >= 2, "{name}");
        let completions = completions(name);
        for q in sequences {
            let of_q: Vec<u32> = completions
                .iter()
                .filter(|c| c.parts.iter().any(|p| p.q_ns == Some(q.time_ns)))
                .map(|c| c.bytes)
                .collect();
            assert_eq!(of_q, [q.bytes, 0], "{name}: {q:?}");
        }
    }
}
