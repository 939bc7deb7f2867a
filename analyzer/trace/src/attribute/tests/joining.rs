// SPDX-License-Identifier: MIT OR Apache-2.0
//! The assignment of entries to completions.

use super::*;
use crate::attribute::{Leftovers, Op};

const BLOCK: u32 = 4096;

fn by(pid: u32, entry: RawProcess) -> RawProcess {
    RawProcess {
        pid: pid.into(),
        ..entry
    }
}

/// Makes the entry that the probe makes at the completion of an empty request, queued at 1000 + `pid` ns.
fn ended(pid: u32, time_ns: u64, cpu: u16) -> RawProcess {
    let mut entry = by(pid, process(0, 0, 0));
    entry.head.stage = Stage::COMPLETE;
    entry.head.time_ns = time_ns.into();
    entry.head.cpu = cpu.into();
    entry.submit_ns = (1000 + u64::from(pid)).into();
    entry
}

fn pids(a: &Attributed) -> Vec<Option<u32>> {
    a.rows.iter().map(|row| a.process(row).pid).collect()
}

#[test]
fn each_write_of_a_sector_gets_its_own_entry() {
    let writes = [
        write(0, 24, BLOCK),
        write(1000, 24, BLOCK),
        write(2000, 24, BLOCK),
    ];
    let entries = [30, 31, 32].map(|pid| by(pid, process(u64::from(pid - 30) * 1000, 24, BLOCK)));
    let a = attribute(&writes, entries.into(), vec![], None);
    assert_eq!(pids(&a), [Some(30), Some(31), Some(32)]);
    assert_eq!(a.names.leftovers, Leftovers::default());
}

/// Its entries have the sector for which it was queued.
#[test]
fn an_append_has_its_own_entries_where_it_was_written() {
    let append = Completion {
        moved: 40,
        ..write(0, 64, BLOCK)
    };
    let other = write(0, 64, BLOCK);
    let entries = vec![by(30, process(0, 24, BLOCK)), by(31, process(0, 64, BLOCK))];
    let files = vec![file(0, 24, BLOCK, "a"), file(0, 64, BLOCK, "b")];
    let a = attribute(&[append, other], entries, files, None);
    let found: Vec<_> = a
        .rows
        .iter()
        .map(|row| (row.sector, path(&a, row)))
        .collect();
    assert_eq!(pids(&a), [Some(30), Some(31)]);
    assert_eq!(found, [(64, Some("a".into())), (64, Some("b".into()))]);
    assert_eq!(a.names.leftovers, Leftovers::default());
}

/// Another append's entry, for the same sector, is not taken for that of an append whose Q was not seen.
#[test]
fn an_append_that_was_not_seen_has_no_entry() {
    let mut append = Completion {
        begins_zone: true,
        ..write(0, 24, BLOCK)
    };
    let unseen = Part {
        q_ns: None,
        q_cpu: None,
        pid: None,
        ..append.parts[0]
    };
    append.parts = vec![unseen].leak();
    let mut entry = by(30, process(0, 24, BLOCK));
    entry.head.stage = Stage::QUEUE;
    let a = attribute(&[append], vec![entry], vec![], None);
    assert_eq!(pids(&a), [None]);
    assert_eq!(a.names.leftovers.process_entries, 1);
}

#[test]
fn a_lost_completion_does_not_shift_the_next() {
    let writes = [write(1000, 24, BLOCK)];
    let entries = vec![
        by(30, process(0, 24, BLOCK)),
        by(31, process(1000, 24, BLOCK)),
    ];
    let a = attribute(&writes, entries, vec![file(0, 24, BLOCK, "stale")], None);
    assert_eq!(pids(&a), [Some(31)]);
    assert_eq!(path(&a, &a.rows[0]), None);
    assert_eq!(
        a.names.leftovers,
        Leftovers {
            process_entries: 1,
            file_entries: 1,
            dirtier_entries: 0
        }
    );
}

#[test]
fn the_entry_nearest_to_its_event_is_taken() {
    // Both entries were made while the request was in flight, one of them at I.
    let early = RawProcess {
        head: RawHead {
            time_ns: 2000.into(),
            ..process(0, 24, BLOCK).head
        },
        ..by(30, process(0, 24, BLOCK))
    };
    let a = attribute(
        &[write(0, 24, BLOCK)],
        vec![early, by(31, process(0, 24, BLOCK))],
        vec![],
        None,
    );
    assert_eq!(pids(&a), [Some(31)]);
}

/// Two bios for one sector are in flight at once, and each has the entry that was made at its own Q, though the other entry
/// lies nearer to its D.
#[test]
fn an_entry_made_at_q_belongs_to_the_bio_of_that_q() {
    let at_q = |pid: u32, us: u64| {
        let entry = by(pid, process(0, 24, BLOCK));
        RawProcess {
            head: RawHead {
                time_ns: (us * 1000 - 1000).into(),
                stage: Stage::QUEUE,
                ..entry.head
            },
            ..entry
        }
    };
    let write_by = |pid: u32, t| {
        let write = write(t, 24, BLOCK);
        let part = Part {
            pid: Some(pid),
            ..write.parts[0]
        };
        Completion {
            parts: vec![part].leak(),
            ..write
        }
    };
    let writes = [write_by(30, 5), write_by(31, 15)];
    let entries = vec![at_q(30, 5), at_q(31, 15)];
    let a = attribute(&writes, entries, vec![], None);
    assert_eq!(pids(&a), [Some(30), Some(31)]);
    assert_eq!(a.names.leftovers, Leftovers::default());
}

/// If the tracer left out the Q, the entry that was made at it has its time; an entry that was made later has not.
#[test]
fn a_bio_without_a_q_was_queued_when_its_entry_was_made() {
    let unqueued = |write: Completion<'static>| Completion {
        parts: vec![Part {
            q_ns: None,
            q_cpu: None,
            pid: None,
            ..write.parts[0]
        }]
        .leak(),
        ..write
    };
    for (stage, expected) in [(Stage::QUEUE, Some(9_999)), (Stage::INSERT, None)] {
        let mut entry = process(0, 24, 4096);
        entry.head.stage = stage;
        let a = attribute(&[unqueued(write(0, 24, 4096))], vec![entry], vec![], None);
        assert_eq!(
            (a.rows[0].q_ns, a.process(&a.rows[0]).pid),
            (expected, Some(7))
        );
    }
}

#[test]
fn parts_of_a_merged_request_keep_their_processes() {
    let mut merged = write(0, 24, 3 * BLOCK);
    merged.parts = (0..3)
        .map(|n| Part {
            sector: 24 + 8 * n,
            bytes: BLOCK,
            q_ns: Some(n * 1000),
            q_cpu: Some(0),
            pid: Some(40),
        })
        .collect::<Vec<_>>()
        .leak();
    let entries = vec![by(30, process(0, 24, BLOCK)), by(31, process(0, 32, BLOCK))];
    let a = attribute(&[merged], entries, vec![], None);
    // The third bio has no entry left, but its Q has the thread.
    assert_eq!(pids(&a), [Some(30), Some(31), Some(40)]);
    assert_eq!(
        a.rows.iter().map(|r| r.sector).collect::<Vec<_>>(),
        [24, 32, 40]
    );
}

#[test]
fn what_continues_is_one_row() {
    let mut merged = write(0, 24, 2 * BLOCK);
    merged.parts = &[
        Part {
            sector: 24,
            bytes: BLOCK,
            q_ns: Some(5000),
            q_cpu: Some(0),
            pid: Some(7),
        },
        Part {
            sector: 32,
            bytes: BLOCK,
            q_ns: Some(3000),
            q_cpu: Some(0),
            pid: Some(7),
        },
    ];
    let second = |offset: u64| {
        let mut entry = file(0, 32, BLOCK, "f");
        entry.raw.offset = offset.into();
        entry
    };
    let entries = || vec![process(0, 24, BLOCK), process(0, 32, BLOCK)];
    let one = attribute(
        &[merged],
        entries(),
        vec![file(0, 24, BLOCK, "f"), second(4096)],
        None,
    );
    assert_eq!(one.rows.len(), 1);
    assert_eq!(
        (one.rows[0].bytes, one.rows[0].q_ns),
        (2 * BLOCK, Some(3000))
    );
    let two = attribute(
        &[merged],
        entries(),
        vec![file(0, 24, BLOCK, "f"), second(8192)],
        None,
    );
    assert_eq!(two.rows.len(), 2);
}

#[test]
fn a_partial_completion_takes_its_share_of_the_entry() {
    let first = write(0, 24, BLOCK);
    let mut second = write(0, 32, 2 * BLOCK);
    second.time_ns += 5000;
    let entry = process(0, 24, 3 * BLOCK);
    let a = attribute(
        &[first, second],
        vec![entry],
        vec![file(0, 24, 3 * BLOCK, "f")],
        None,
    );
    assert_eq!(pids(&a), [Some(7), Some(7)]);
    let offsets: Vec<_> = a.rows.iter().map(|r| r.file_offset).collect();
    assert_eq!(offsets, [Some(0), Some(4096)]);
    assert_eq!(a.names.leftovers, Leftovers::default());
}

#[test]
fn entries_that_cover_a_part_only() {
    let a = attribute(
        &[write(0, 24, 4 * BLOCK)],
        vec![process(0, 24, 4 * BLOCK)],
        vec![file(0, 32, BLOCK, "b"), file(0, 16, 2 * BLOCK, "a")],
        None,
    );
    let runs: Vec<_> = a
        .rows
        .iter()
        .map(|r| (r.sector, r.bytes, path(&a, r), r.file_offset))
        .collect();
    assert_eq!(
        runs,
        [
            (24, BLOCK, Some("a".into()), Some(4096)),
            (32, BLOCK, Some("b".into()), Some(0)),
            (40, 2 * BLOCK, None, None),
        ]
    );
    // The front of "a" waits for a completion that never comes.
    assert_eq!(a.names.leftovers.file_entries, 1);
}

#[test]
fn an_unseen_submitter_falls_back_to_q() {
    let mut entry = by(0, process(0, 24, BLOCK));
    entry.head.flags = Flags::NO_SUBMITTER;
    let a = attribute(&[write(0, 24, BLOCK)], vec![entry], vec![], None);
    assert_eq!(pids(&a), [Some(7)]);
    let mut unseen = write(0, 24, BLOCK);
    unseen.parts = vec![Part {
        pid: None,
        ..unseen.parts[0]
    }]
    .leak();
    let a = attribute(&[unseen], vec![entry], vec![], None);
    assert_eq!(pids(&a), [None]);
}

/// A probe that ran at Q and reports that the task there is not the submitter is more reliable than the tracer.
#[test]
fn an_unknown_submitter_at_q_stays_unknown() {
    let mut entry = by(0, process(0, 24, BLOCK));
    entry.head.flags = Flags::NO_SUBMITTER;
    entry.head.stage = Stage::QUEUE;
    let a = attribute(&[write(0, 24, BLOCK)], vec![entry], vec![], None);
    assert_eq!(pids(&a), [None]);
}

/// Two threads flush at once; each completion is matched by its own entry, though the CPU rests for 28 ms in between.
#[test]
fn a_flush_finds_the_entry_made_at_its_completion() {
    let mut synced = file(0, 0, 0, "a.db");
    synced.raw.head.stage = Stage::COMPLETE;
    synced.raw.head.time_ns = 50_000.into();
    synced.raw.offset = NONE.into();
    let nobody = Part {
        pid: None,
        q_ns: None,
        ..flush(0).parts[0]
    };
    let ended_at = |time_ns: u64, cpu: u32| Completion {
        time_ns,
        cpu,
        parts: vec![nobody].leak(),
        ..flush(0)
    };
    let a = attribute(
        &[
            ended_at(50_010, 0),
            ended_at(50_020, 1),
            ended_at(28_050_030, 0),
            ended_at(28_050_040, 0),
        ],
        vec![
            ended(7, 50_000, 0),
            ended(8, 50_012, 1),
            ended(9, 50_025, 0),
        ],
        vec![synced],
        None,
    );
    let found: Vec<_> = a
        .rows
        .iter()
        .map(|r| (a.process(r).pid, r.q_ns, path(&a, r)))
        .collect();
    let path = Some("a.db".to_owned());
    assert_eq!(
        found,
        [
            (Some(7), Some(1007), path),
            (Some(8), Some(1008), None),
            (Some(9), Some(1009), None),
            (None, None, None),
        ]
    );
    assert_eq!(a.names.leftovers.process_entries, 0);
}

/// The entry of a flush is late in its table, behind one of another CPU; that of the synced file is read before it, while
/// another flush of the CPU waits.
#[test]
fn a_synced_file_waits_for_its_flush() {
    let ended_at = |time_ns: u64, cpu: u32| Completion {
        time_ns,
        cpu,
        ..flush(0)
    };
    let mut synced = file(0, 0, 0, "a.db");
    synced.raw.head.stage = Stage::COMPLETE;
    synced.raw.head.time_ns = 5_000_000.into();
    let a = attribute(
        &[
            ended_at(30_000, 0),
            ended_at(45_000_000, 0),
            ended_at(60_010_000, 1),
        ],
        vec![
            ended(6, 20_000, 0),
            ended(8, 60_000_000, 1),
            ended(7, 5_000_000, 0),
        ],
        vec![synced],
        None,
    );
    let found: Vec<_> = a.rows.iter().map(|r| (r.q_ns, path(&a, r))).collect();
    let path = Some("a.db".to_owned());
    assert_eq!(
        found,
        [(Some(1006), None), (Some(1007), path), (Some(1008), None)]
    );
}

#[test]
fn a_flush_finds_its_entry_by_thread_and_time() {
    let mut mine = by(7, process(0, 0, 0));
    mine.head.stage = Stage::QUEUE;
    let other = by(
        8,
        RawProcess {
            uid: 5.into(),
            ..mine
        },
    );
    let mut device = write(500, 0, 0);
    device.action = DEVICE_FLUSH;
    device.parts = vec![Part {
        pid: None,
        q_ns: None,
        ..device.parts[0]
    }]
    .leak();
    let a = attribute(&[flush(0), device], vec![other, mine], vec![], None);
    let found: Vec<_> = a
        .rows
        .iter()
        .map(|r| (r.op, a.process(r).uid, r.stage))
        .collect();
    assert_eq!(
        found,
        [
            (Op::Flush, Some(1000), Some(Stage::QUEUE)),
            (Op::DeviceFlush, None, None)
        ]
    );
}

/// A write's own flush and the device's are done while the entry of an empty flush waits.
#[test]
fn only_an_empty_flush_takes_the_entry_of_one() {
    let of_a_write = Completion {
        time_ns: 50_010,
        ..write(0, 0, 0)
    };
    let of_the_device = Completion {
        time_ns: 50_020,
        action: DEVICE_FLUSH,
        ..flush(0)
    };
    let empty = Completion {
        time_ns: 50_030,
        ..flush(0)
    };
    let completions = [of_a_write, of_the_device, empty];
    let a = attribute(&completions, vec![ended(8, 50_000, 0)], vec![], None);
    let found: Vec<_> = a.rows.iter().map(|row| (row.op, row.q_ns)).collect();
    assert_eq!(
        found,
        [
            (Op::Flush, Some(0)),
            (Op::DeviceFlush, Some(0)),
            (Op::Flush, Some(1008))
        ]
    );
    assert_eq!(pids(&a), [Some(7), Some(7), Some(8)]);
    assert_eq!(a.names.leftovers, Leftovers::default());
}

/// It has no bytes by which it could be found, but it has a sector.
#[test]
fn what_manages_a_zone_finds_its_entry_by_cpu_time_and_sector() {
    for (code, op) in [
        (0x81, Op::ZoneOpen),
        (0x82, Op::ZoneClose),
        (0x83, Op::ZoneFinish),
        (0x84, Op::ZoneReset),
        (0x85, Op::ZoneResetAll),
    ] {
        let entry = |pid, time_ns| {
            let mut entry = ended(pid, time_ns, 0);
            entry.opf = code.into();
            entry.head.sector = 64.into();
            entry
        };
        let done = |time_ns, cpu, sector| Completion {
            time_ns,
            cpu,
            action: ta::COMPLETE,
            ..write(0, sector, 0)
        };
        let completions = [
            done(49_999, 0, 64),
            done(50_010, 0, 72),
            done(50_010, 1, 64),
            done(50_020, 0, 64),
            done(50_030, 0, 64),
            done(50_040, 0, 64),
        ];
        let entries = vec![entry(8, 50_000), entry(9, 50_030)];
        let a = attribute(&completions, entries, vec![], None);
        let found: Vec<_> = a.rows.iter().map(|row| row.op).collect();
        let other = Op::Other;
        assert_eq!(found, [other, other, other, op, op, other]);
        let seven = Some(7);
        assert_eq!(pids(&a), [seven, seven, seven, Some(8), Some(9), seven]);
        assert_eq!(a.names.leftovers, Leftovers::default());
    }
}

#[test]
fn a_trace_without_completions_stays_bounded() {
    let entries = (0..600_000u64).map(|n| process(n, n * 8, BLOCK));
    let last = write(700_000, 24, BLOCK);
    let a = attribute(&[last], entries.collect(), vec![], None);
    assert_eq!(a.names.leftovers.process_entries, 600_000);
}

/// Four readers of one place have requests of different lengths in flight: another one's entry may be nearer to the D, after
/// it or on another CPU.
#[test]
fn requests_of_one_place_find_their_own_entries() {
    let lengths = [8 * BLOCK, 4 * BLOCK, 2 * BLOCK, BLOCK];
    let entry = |at: u64| {
        let mut entry = by(10 + at as u32, process(0, 24, lengths[at as usize]));
        entry.head.stage = Stage::ISSUE;
        entry.head.time_ns = (20_000 + 3_000 * at - 2_000).into();
        entry.head.cpu = (at as u16 / 2).into();
        entry
    };
    let completion = |at: u64| Completion {
        time_ns: 100_000 + at,
        d_ns: Some(20_000 + 3_000 * at),
        d_cpu: Some(at as u32 / 2),
        i_ns: None,
        i_cpu: None,
        ..write(0, 24, lengths[at as usize])
    };
    let order = [2, 0, 3, 1];
    let a = attribute(
        &order.map(completion),
        (0..4).map(entry).collect(),
        vec![],
        None,
    );
    let expected = order.map(|at| (Some(10 + at as u32), lengths[at as usize]));
    let found: Vec<_> = a.rows.iter().map(|r| (a.process(r).pid, r.bytes)).collect();
    assert_eq!(found, expected);
}

/// Two requests for the same sectors are in flight: it is unknown which is which.
#[test]
fn twins_have_what_they_have_in_common() {
    let twin = |time_ns| Completion {
        time_ns,
        d_ns: None,
        i_ns: None,
        twin: true,
        parts: vec![Part {
            q_ns: None,
            pid: None,
            ..write(0, 24, BLOCK).parts[0]
        }]
        .leak(),
        ..write(0, 24, BLOCK)
    };
    let both = [twin(100_000), twin(110_000)];
    let two = |pids: [u32; 2], names: [&str; 2]| {
        let of = pids.map(|pid| by(pid, process(0, 24, BLOCK))).to_vec();
        let files = names.map(|name| file(0, 24, BLOCK, name)).to_vec();
        let a = attribute(&both, of, files, None);
        let known: Vec<_> = a
            .rows
            .iter()
            .map(|r| (a.process(r).pid, path(&a, r)))
            .collect();
        known
    };
    let name = || Some("x".to_owned());
    assert_eq!(two([8, 9], ["x", "x"]), [(None, name()), (None, name())]);
    assert_eq!(two([9, 9], ["x", "y"]), [(Some(9), None), (Some(9), None)]);
}
