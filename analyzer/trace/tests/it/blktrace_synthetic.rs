// SPDX-License-Identifier: MIT OR Apache-2.0
//! Synthetic traces, of which every completion is known beforehand.

use crate::support;

use mostrace_bundle::blk_io_trace::action::{BLK_TC_NOTIFY, ta, tn};
use mostrace_bundle::blk_io_trace::{Layout, Version, encode};
use mostrace_trace::blktrace::{
    Ahead, Completion, Completions, Event, LifeCycles, Partial, Trace, WallClock, action,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::PathBuf;
use support::synthetic::{Recipe, V7, simulate, write};
use support::{completions, generator, keep, oracle};

const LAYOUTS: [Layout; 4] = [
    V7,
    Layout {
        version: Version::V7,
        big_endian: true,
    },
    Layout {
        version: Version::V8,
        big_endian: false,
    },
    Layout {
        version: Version::V8,
        big_endian: true,
    },
];

fn recipe(seed: u64) -> Recipe {
    Recipe {
        seed,
        ios: 2_000,
        cpus: 3,
        plain: false,
    }
}

fn life_cycles(events: &[Event<'_>]) -> Vec<Completion<'static>> {
    let mut cycles = LifeCycles::new();
    let completed = |e| cycles.push(e).as_ref().map(keep);
    events.iter().filter_map(completed).collect()
}

/// Opens a trace of in-memory files.
fn trace(files: Vec<Vec<u8>>, partial: Partial) -> Trace {
    let sources = files.into_iter().enumerate().map(|(i, bytes)| {
        let source: Box<dyn Read + Send> = Box::new(Cursor::new(bytes));
        (PathBuf::from(format!("file {i}")), source)
    });
    Trace::from_sources(sources.collect(), partial)
}

/// Writes records into `count` files, each event into the one that `choose` returns.
fn files(
    events: &[Event<'_>],
    count: usize,
    choose: impl Fn(usize, &Event<'_>) -> (usize, Layout),
) -> Vec<Vec<u8>> {
    let mut files = vec![Vec::new(); count];
    for (i, event) in events.iter().enumerate() {
        let (file, layout) = choose(i, event);
        encode(event, layout, &mut files[file]).expect("fits");
    }
    files
}

/// blktrace_twins.rs tests which device flushes were waited for; the simulated devices have none.
fn plain(mut completions: Vec<Completion<'static>>) -> Vec<Completion<'static>> {
    for completion in &mut completions {
        completion.device_flush = None;
    }
    completions
}

#[test]
fn every_completion_is_the_expected_one() {
    for seed in 1..=20 {
        let (events, expected) = simulate(recipe(seed));
        let found = plain(life_cycles(&events));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "seed {seed}");
        }
        assert_eq!(found.len(), expected.len());
        assert!(expected.len() > 2_000);
    }
}

/// A bio that the kernel encrypted ends once more, after the requests of its ciphertext; only their bytes are completed. Here each
/// that did not fail ends either right behind its request or with the next one: another bio may be queued for its sectors meanwhile.
#[test]
fn the_second_ends_of_encrypted_bios_complete_nothing() {
    for seed in 1..=20 {
        let (events, expected) = simulate(recipe(seed));
        check_second_ends(events, &expected);
    }
}

fn check_second_ends(events: Vec<Event<'static>>, expected: &[Completion<'static>]) {
    let mut with_ends = Vec::new();
    let mut late: Option<Event<'_>> = None;
    for event in events {
        let is_end = event.act() == ta::COMPLETE
            && event.bytes > 0
            && event.error == 0
            && event.action & action::BLK_TC_FS != 0;
        let second_end = Event {
            action: event.action & !action::BLK_TC_FS,
            ..event
        };
        with_ends.push(event);
        if is_end {
            with_ends.extend(late.take());
            match with_ends.len() % 2 {
                0 => with_ends.push(second_end),
                _ => late = Some(second_end),
            }
        }
    }
    assert!(with_ends.len() > 3_000);
    let found = plain(life_cycles(&with_ends));
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

/// A bio that fails before it has a request is completed, and so is every bio of a disk without requests.
#[test]
fn a_bio_that_has_no_request_is_completed() {
    let event = |act, bytes, error| Event {
        action: act | action::BLK_TC_WRITE,
        bytes,
        error,
        ..Event::default()
    };
    let enxio = 6_u16.wrapping_neg();
    let request = |act| Event {
        sector: 8,
        action: act | action::BLK_TC_WRITE | action::BLK_TC_FS,
        bytes: 4096,
        ..Event::default()
    };
    let failed = [
        request(ta::ISSUE),
        request(ta::COMPLETE),
        event(ta::QUEUE, 4096, 0),
        event(ta::COMPLETE, 4096, enxio),
        // The same bio once more: nothing waits for it.
        event(ta::COMPLETE, 4096, enxio),
    ];
    let errors: Vec<u16> = life_cycles(&failed).iter().map(|c| c.error).collect();
    assert_eq!(errors, [0, 6]);
    let without_requests = [event(ta::QUEUE, 4096, 0), event(ta::COMPLETE, 4096, 0)];
    assert_eq!(life_cycles(&without_requests).len(), 1);
    assert_eq!(life_cycles(&without_requests[1..]).len(), 1);
}

/// The result does not depend on how the records are laid out and spread over files.
#[test]
fn the_spread_over_files_does_not_matter() {
    let (events, expected) = simulate(recipe(77));
    for count in [1, 2, 7, 64] {
        let files = files(&events, count, |i, e| {
            let hash = (i as u64 ^ e.time_ns).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            (hash as usize % count, LAYOUTS[i % 4])
        });
        let (found, completions) = completions(trace(files, Partial::Refused));
        assert_eq!(plain(found), expected, "{count} files");
        assert_eq!(completions.notices(), []);
        assert_eq!(completions.names().at(131, 0), Some("app131"));
        let clock = WallClock {
            time_ns: events[0].time_ns,
            seconds: 1_700_000_000,
            nanoseconds: 7,
        };
        assert_eq!(completions.wall_clock(), Some(clock));
    }
}

/// Events up to 64 records out of place within a file are put in order; later ones are reported.
#[test]
fn slight_disorder_is_mended() {
    let (events, expected) = simulate(recipe(5));
    let mut displaced = events.clone();
    for chunk in displaced.chunks_exact_mut(65) {
        chunk.rotate_left(1);
    }
    assert_ne!(displaced, events);
    let file = files(&displaced, 1, |_, _| (0, V7));
    let (found, completions) = completions(trace(file, Partial::Refused));
    assert_eq!(plain(found), expected);
    assert_eq!(completions.notices(), []);

    displaced = events.clone();
    displaced[..300].rotate_left(1);
    let file = files(&displaced, 1, |_, _| (0, V7));
    let mut trace = trace(file, Partial::Refused);
    assert_eq!(support::events(&mut trace).len(), events.len());
    assert_eq!(
        trace.notices()[0].to_string(),
        "file 0: 1 events out of time order"
    );
}

/// The benchmarks' traces are as described: every bio comes back with its thread and times, though some records stand late
/// in their file.
#[test]
fn generated_traces_are_understood_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = generator::Recipe {
        seed: 1,
        events: 50_000,
        cpus: 3,
    };
    let (mut told, mut made) = (BTreeMap::new(), 0);
    let (paths, events) = generator::generate_with(&recipe, folder.path(), "x", |bio| {
        assert!(made <= bio.made_ns());
        made = bio.made_ns();
        let sum = told.entry((bio.q_ns, bio.pid)).or_insert((0, 0, 0));
        *sum = (sum.0 + bio.bytes, bio.d_ns.max(sum.1), bio.c_ns.max(sum.2));
        Ok(())
    })
    .expect("written");
    let read = support::events(&mut Trace::open(&paths).expect("opens"));
    assert_eq!(read.len() as u64, events);
    assert!(events >= recipe.events);
    let (all, completions) = completions(Trace::open(&paths).expect("opens"));
    assert_eq!(completions.notices(), []);
    assert_eq!(completions.bytes_read(), completions.bytes_total());
    let mut found = BTreeMap::new();
    for c in all.iter().filter(|c| c.bytes > 0) {
        for part in c.parts {
            let key = (part.q_ns.expect("Q"), part.pid.expect("a thread"));
            let sum = found.entry(key).or_insert((0, 0, 0));
            let d_ns = c.d_ns.expect("D").max(sum.1);
            *sum = (sum.0 + part.bytes, d_ns, c.time_ns.max(sum.2));
        }
    }
    assert_eq!(found, told);
}

/// A cgroup id before the payload does not change the payload.
#[test]
fn cgroup_ids_are_taken_off() {
    let (mut events, _) = simulate(recipe(3));
    for event in &mut events {
        event.action |= action::BLK_TA_CGROUP;
        event.cgroup = 4711;
    }
    for layout in LAYOUTS {
        let file = files(&events, 1, |_, _| (0, layout));
        let mut read = support::events(&mut trace(file, Partial::Refused));
        for event in &mut read {
            assert_eq!(event.big_endian, layout.big_endian);
            event.big_endian = false;
        }
        // The numbers of the clock are in the record's byte order.
        assert_eq!(read[1..], events[1..], "{layout:?}");
    }
}

/// blkparse has the same sums, and btt the same times, if the trace has only plain requests.
#[test]
fn blkparse_and_btt_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe {
        ios: 20_000,
        cpus: 2,
        plain: true,
        ..recipe(11)
    };
    let (paths, _) = write(recipe, folder.path(), "plain");
    let (completions, _) = completions(Trace::open(&paths).expect("opens"));

    let is_write = |c: &&Completion<'_>| c.action & action::BLK_TC_WRITE != 0;
    let (writes, reads): (Vec<_>, Vec<_>) = completions.iter().partition(is_write);
    let kib = |all: &[&Completion<'_>]| all.iter().map(|c| u64::from(c.bytes)).sum::<u64>() >> 10;
    let ours = oracle::Summary {
        reads: reads.len() as u64,
        read_kib: kib(&reads),
        writes: writes.len() as u64,
        write_kib: kib(&writes),
    };
    let basename = folder.path().join("plain");
    assert_eq!(ours, oracle::summary(&basename));

    let dump = oracle::dump(&basename, folder.path());
    // As in btt, D2C is measured for requests, Q2C and Q2G for the bios that they begin with.
    let mut d2c = Vec::new();
    let mut i2d = Vec::new();
    let mut q2c = Vec::new();
    for c in &completions {
        let d_ns = c.d_ns.expect("D");
        i2d.push(d_ns - c.i_ns.expect("I"));
        for part in c.parts {
            d2c.push(c.time_ns - d_ns);
            q2c.push(c.time_ns - part.q_ns.expect("Q"));
        }
    }
    for (row, times) in [("D2C", d2c), ("Q2C", q2c), ("I2D", i2d)] {
        let average = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e9;
        let (theirs, number) = oracle::btt_row(&dump, row).expect("a row");
        assert_eq!(number, times.len() as u64, "{row}");
        assert!(
            (average - theirs).abs() < 1.5e-9,
            "{row}: {average} {theirs}"
        );
    }
}

proptest! {
    #![proptest_config(test_support::property::config(file!(), 300))]

    /// Whatever happens to the bytes, reading does not panic, it ends, and the parts cover each completion.
    #[test]
    fn damage_is_survived(
        seed in 1_u64..50,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<prop::sample::Index>(),
        partial in any::<bool>(),
    ) {
        let (events, _) = simulate(Recipe { ios: 60, ..recipe(seed) });
        let mut files = files(&events, 3, |i, e| (e.cpu as usize, LAYOUTS[i % 4]));
        for (at, value) in flips {
            let at = at.index(files[0].len());
            files[0][at] = value;
        }
        let cut = cut.index(files[1].len());
        files[1].truncate(cut);
        let partial = if partial { Partial::Allowed } else { Partial::Refused };
        let mut errors = 0;
        let mut completions = Completions::new(trace(files, partial));
        loop {
            match completions.next() {
                Ok(Some(completion)) => assert_covered(&completion),
                Ok(None) => break,
                Err(_) => errors += 1,
            }
        }
        prop_assert!(errors <= 1);
    }

    /// The thread that reads ahead passes on what it reads, and the names that were noted before each completion.
    #[test]
    fn nothing_is_lost_between_threads(
        seed in 1_u64..50,
        ios in 0_u64..2000,
        flip in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        names in 0_u64..40,
    ) {
        let (mut events, _) = simulate(Recipe { ios, ..recipe(seed) });
        for at in 0..names {
            let place = (at * 7919 + seed) as usize % (events.len() + 1);
            events.insert(place, Event {
                time_ns: events.get(place).map_or(1 << 40, |event| event.time_ns),
                pid: at as u32 % 3,
                action: BLK_TC_NOTIFY | tn::PROCESS,
                pdu: [b"one", b"two"][at as usize / 3 % 2],
                ..Event::default()
            });
        }
        let mut files = files(&events, 3, |i, e| (e.cpu as usize, LAYOUTS[i % 4]));
        if let Some((at, value)) = flip && !files[0].is_empty() {
            let at = at.index(files[0].len());
            files[0][at] = value;
        }
        let mut direct = Completions::new(trace(files.clone(), Partial::Allowed));
        let mut ahead = Ahead::new(Completions::new(trace(files, Partial::Allowed)));
        let mut known = 0;
        loop {
            let (one, other) = (direct.step(), ahead.step());
            prop_assert_eq!(one.is_err(), other.is_err());
            if !matches!(one, Ok(true)) {
                prop_assert!(!matches!(other, Ok(true)));
                break;
            }
            prop_assert_eq!(direct.completion(), ahead.completion());
            let renamed = direct.names().renamed();
            prop_assert_eq!(&renamed[known..], ahead.renamed());
            known = renamed.len();
        }
        prop_assert!(!matches!(ahead.step(), Ok(true)));
        let ahead = ahead.into_completions();
        prop_assert_eq!(direct.notices(), ahead.notices());
        prop_assert_eq!(direct.names().renamed(), ahead.names().renamed());
        prop_assert_eq!(direct.bytes_read(), ahead.bytes_read());
    }

    /// Lost events cost knowledge but never bytes, and never yield a wrong submitter. (Sector 0 is left out: all flushes and
    /// passthrough requests meet there, so that the lost C of one and the lost Q of the next look like a request that lost
    /// nothing.)
    #[test]
    fn losses_are_not_guessed_over(seed in 1_u64..1000, lost in 2_u64..40) {
        let (mut events, expected) = simulate(Recipe { ios: 400, ..recipe(seed) });
        events.retain(|e| (e.time_ns ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56 >= lost);
        let mut expected = expected.into_iter();
        let mut unknown = 0;
        for found in life_cycles(&events) {
            assert_covered(&found);
            let expected = expected.find(|e| e.time_ns == found.time_ns).expect("known");
            prop_assert_eq!((found.sector, found.bytes), (expected.sector, expected.bytes));
            for part in found.parts.iter().filter(|_| found.sector != 0) {
                let of = expected.parts.iter().find(|p| {
                    p.sector <= part.sector
                        && part.sector + u64::from(part.bytes / 512)
                            <= p.sector + u64::from(p.bytes / 512)
                });
                match (of, part.q_ns) {
                    (Some(of), Some(_)) => {
                        prop_assert_eq!((part.q_ns, part.pid), (of.q_ns, of.pid));
                    }
                    // A gap may extend over several bios.
                    (_, None) => unknown += 1,
                    (None, Some(_)) => prop_assert!(false, "{:?} of {:?}", found, expected),
                }
            }
        }
        prop_assert!(unknown > 0);
    }

    /// Events of any kind are handled within bounds, cover their completions, and cause no panic.
    #[test]
    fn arbitrary_events_are_survived(
        events in prop::collection::vec(
            (0_u64..18, 0_u64..8, 0_u32..12, 0_u32..3, any::<bool>(), any::<bool>()), 0..400),
    ) {
        let mut cycles = LifeCycles::new();
        for (i, (act, sector, blocks, pid, write, flush)) in events.into_iter().enumerate() {
            let cut = (sector + 3).to_be_bytes();
            let event = Event {
                time_ns: i as u64,
                sector,
                action: act
                    | if write { action::BLK_TC_WRITE } else { action::BLK_TC_READ }
                    | if flush { action::BLK_TC_FLUSH } else { 0 },
                bytes: blocks * 512,
                pid,
                pdu: if act == 13 { &cut } else { &[] },
                ..Event::default()
            };
            let completion = cycles.push(&event);
            prop_assert_eq!(completion.is_some(), act == 8);
            completion.iter().for_each(|c| assert_covered(c));
        }
    }
}

fn assert_covered(c: &Completion<'_>) {
    assert!(!c.parts.is_empty());
    let mut bytes = 0_u64;
    for part in c.parts {
        assert_eq!(part.sector, c.sector.saturating_add(bytes / 512), "{c:?}");
        bytes += u64::from(part.bytes);
    }
    assert_eq!(bytes, u64::from(c.bytes), "{c:?}");
}
