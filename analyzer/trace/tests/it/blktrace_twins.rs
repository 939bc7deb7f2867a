// SPDX-License-Identifier: MIT OR Apache-2.0
//! IO to the same sectors at the same time, and IO with lost events: what is known is reported, and the rest is None. The
//! events are written by hand.

use crate::support;

use mostrace_bundle::Zones;
use mostrace_bundle::manifest::Device;
use mostrace_trace::blktrace::action::{
    BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_FUA, BLK_TC_WRITE, ta,
};
use mostrace_trace::blktrace::{Completion, Event, LifeCycles, Part};
use support::keep;

const SECOND: u64 = 1_000_000_000;
const Q: u64 = ta::QUEUE;
const D: u64 = ta::ISSUE;
const C: u64 = ta::COMPLETE;
const X: u64 = ta::SPLIT;
/// blkparse's letters of actions.
const ACTS: [(char, u64); 7] = [
    ('Q', Q),
    ('G', ta::GETRQ),
    ('I', ta::INSERT),
    ('D', D),
    ('C', C),
    ('R', ta::REQUEUE),
    ('X', X),
];
const FLAGS: [(char, u64); 4] = [
    ('W', BLK_TC_WRITE),
    ('D', BLK_TC_DISCARD),
    ('F', BLK_TC_FLUSH),
    ('A', BLK_TC_FUA),
];

/// Returns the event of a word as `3 QWF 8+16 1`: at 3 ns, a write with a flush of 16 blocks of 512 bytes from sector 8 on is
/// queued by thread 1. The letters after the action's stand for a write, a discard, a flush and FUA (A).
fn event(told: &str) -> Event<'static> {
    let words: Vec<&str> = told.split([' ', '+']).collect();
    let [time_ns, action, sector, blocks, pid] = words[..] else {
        panic!("{told}")
    };
    let (act, flags) = action.split_at(1);
    let bit = |table: &[(char, u64)], letter| {
        let found = table.iter().find(|(known, _)| *known == letter);
        found.unwrap_or_else(|| panic!("{letter} in {told}")).1
    };
    let flags = flags.chars().map(|letter| bit(&FLAGS, letter));
    Event {
        time_ns: time_ns.parse().unwrap(),
        sector: sector.parse().unwrap(),
        action: flags.fold(bit(&ACTS, act.chars().next().unwrap()), |all, flag| {
            all | flag
        }),
        bytes: blocks.parse::<u32>().unwrap() * 512,
        pid: pid.parse().unwrap(),
        ..Event::default()
    }
}

/// Returns the completions of events.
fn play(told: &str) -> Vec<Completion<'static>> {
    let mut cycles = LifeCycles::new();
    told.split(", ")
        .filter_map(|told| cycles.push(&event(told)).as_ref().map(keep))
        .collect()
}

/// `(sector, blocks, q_ns, pid)`
type Known = (u64, u32, Option<u64>, Option<u32>);

/// Returns the parts of each completion.
fn parts(told: &str) -> Vec<Vec<Known>> {
    let part = |p: &Part| (p.sector, p.bytes / 512, p.q_ns, p.pid);
    play(told)
        .iter()
        .map(|c| c.parts.iter().map(part).collect())
        .collect()
}

#[test]
fn twins_of_two_threads_keep_neither() {
    let told = "1 Q 8+8 1, 2 Q 8+8 2, 3 D 8+8 9, 4 D 8+8 9, 5 C 8+8 0, 6 C 8+8 0";
    assert_eq!(parts(told), vec![vec![(8, 8, None, None)]; 2]);
    let issued: Vec<_> = play(told).iter().map(|c| c.d_ns).collect();
    assert_eq!(issued, [None, None]);
}

#[test]
fn twins_of_one_thread_keep_it() {
    let told = "1 Q 8+8 1, 2 Q 8+8 1, 3 D 8+8 9, 4 D 8+8 9, 5 C 8+8 0, 6 C 8+8 0";
    assert_eq!(parts(told), vec![vec![(8, 8, None, Some(1))]; 2]);
}

/// The one that differs comes last: the two compared before it must lose what they have in common, too.
#[test]
fn of_three_twins_each_could_be_the_odd_one() {
    let queued = "1 Q 8+8 1, 2 Q 8+8 1, 3 Q 8+8 2";
    let told =
        &format!("{queued}, 4 D 8+8 9, 5 D 8+8 9, 6 D 8+8 9, 7 C 8+8 0, 8 C 8+8 0, 9 C 8+8 0");
    assert_eq!(parts(told), vec![vec![(8, 8, None, None)]; 3]);
}

/// Of those that nobody is known to have queued, one may be the thread's own, too.
#[test]
fn a_threads_own_bio_is_not_told_from_anybodys() {
    let told =
        "1 Q 8+8 1, 2 Q 8+8 2, 3 Q 8+8 1, 4 D 8+8 9, 5 C 8+8 0, 6 Q 8+8 1, 7 D 8+8 1, 8 C 8+8 0";
    assert_eq!(parts(told), vec![vec![(8, 8, None, None)]; 2]);
}

/// An ambiguous bio does not become certain when the others are gone.
#[test]
fn a_doubt_lasts() {
    let told = "1 Q 8+8 1, 2 Q 8+8 1, 3 Q 8+4 2, 4 D 8+8 9, 5 C 8+8 0, 6 D 8+4 9, 7 C 8+4 0, 8 D 8+8 9, 9 C 8+8 0";
    let twin = [(8, 8, None, Some(1))];
    assert_eq!(parts(told), [twin, [(8, 4, Some(3), Some(2))], twin]);
}

/// An X runs in the thread of the Q.
#[test]
fn a_split_is_of_its_own_threads_bio() {
    let told = "1 Q 8+24 1, 2 Q 8+24 2, 3 X 8+8 2, 4 D 8+8 2, 5 C 8+8 0";
    assert_eq!(parts(told), [[(8, 8, Some(2), Some(2))]]);
}

/// An issue distinguishes twins if the second is queued only after it.
#[test]
fn twins_one_after_the_other_are_told_apart_until_both_are_issued() {
    let told = "1 Q 8+8 1, 2 D 8+8 1, 3 Q 8+8 2, 4 C 8+8 0, 5 D 8+8 2, 6 C 8+8 0";
    let expected = [[(8, 8, Some(1), Some(1))], [(8, 8, Some(3), Some(2))]];
    assert_eq!(parts(told), expected);
}

#[test]
fn reads_writes_and_discards_do_not_meet() {
    let told = "1 Q 8+8 1, 2 QW 8+8 2, 3 QWD 8+8 3, 4 DW 8+8 9, 5 D 8+8 9, 6 DWD 8+8 9, 7 C 8+8 0, 8 CWD 8+8 0, 9 CW 8+8 0";
    let expected = [
        [(8, 8, Some(1), Some(1))],
        [(8, 8, Some(3), Some(3))],
        [(8, 8, Some(2), Some(2))],
    ];
    assert_eq!(parts(told), expected);
}

#[test]
fn a_lost_q_is_a_part_without_one() {
    let told = "1 Q 8+8 1, 2 Q 24+8 2, 3 D 8+32 9, 4 C 8+32 0";
    let known = |sector, q_ns, pid| (sector, 8, Some(q_ns), Some(pid));
    let gap = |sector| (sector, 8, None, None);
    let expected = [[known(8, 1, 1), gap(16), known(24, 2, 2), gap(32)]];
    assert_eq!(parts(told), expected);
}

#[test]
fn a_lost_d_or_a_driver_without_requests() {
    let told = "1 Q 8+8 1, 2 G 8+8 1, 3 I 8+8 1, 9 C 8+8 0";
    let [c] = &play(told)[..] else { panic!() };
    assert_eq!((c.d_ns, c.i_ns, c.g_ns), (None, Some(3), Some(2)));
    assert_eq!(parts(told), [[(8, 8, Some(1), Some(1))]]);
}

/// blktrace's `-a` can leave X events out. The only bio over the sectors is the right one.
#[test]
fn without_x_a_bio_is_cut_by_its_requests() {
    let told = "1 Q 8+24 1, 2 D 16+8 1, 3 D 8+8 1, 4 D 24+8 1, 5 C 24+8 0, 6 C 8+8 0, 7 C 16+8 0";
    let part = |sector| [(sector, 8, Some(1), Some(1))];
    assert_eq!(parts(told), [part(24), part(8), part(16)]);

    // With two of them over the sectors, the right one is unknown.
    let told = "1 Q 8+24 1, 2 Q 0+24 2, 3 D 16+8 1, 4 C 16+8 0";
    assert_eq!(parts(told), [[(16, 8, None, None)]]);
}

#[test]
fn the_rest_of_a_split_bio_keeps_its_q() {
    let told = "1 Q 8+24 1, 2 X 8+8 1, 3 G 8+8 1, 4 D 8+8 1, 5 G 16+16 1, 6 D 16+16 1, 7 C 16+16 0, 8 C 8+8 0";
    let expected = [[(16, 16, Some(1), Some(1))], [(8, 8, Some(1), Some(1))]];
    assert_eq!(parts(told), expected);
    let got: Vec<_> = play(told).iter().map(|c| (c.g_ns, c.d_ns)).collect();
    assert_eq!(got, [(Some(5), Some(6)), (Some(3), Some(4))]);
}

/// A requeued request is issued again, merged with another by then.
#[test]
fn a_requeued_request_may_grow() {
    let told = "1 Q 8+8 1, 2 G 8+8 1, 3 D 8+8 1, 4 R 8+8 1, 5 Q 16+8 2, 6 D 8+16 1, 7 C 8+16 0";
    let expected = [[(8, 8, Some(1), Some(1)), (16, 8, Some(5), Some(2))]];
    assert_eq!(parts(told), expected);
    let [c] = &play(told)[..] else { panic!() };
    assert_eq!((c.g_ns, c.d_ns), (Some(2), Some(6)));
}

/// The C of the first was lost. Half a minute later it no longer counts as in flight.
#[test]
fn a_lost_c_does_not_blur_for_ever() {
    let again = |t| format!("1 Q 8+8 1, 2 D 8+8 1, {t} Q 8+8 2, {t} D 8+8 2, {t} C 8+8 0");
    assert_eq!(parts(&again(SECOND)), [[(8, 8, None, None)]]);
    let late = [[(8, 8, Some(31 * SECOND), Some(2))]];
    assert_eq!(parts(&again(31 * SECOND)), late);
}

/// A request that takes longer than that is still known if nothing else is there.
#[test]
fn long_io_is_known() {
    let told = format!("1 Q 8+8 1, 2 D 8+8 1, {} C 8+8 0", 100 * SECOND);
    assert_eq!(parts(&told), [[(8, 8, Some(1), Some(1))]]);
}

/// FUA on a device that supports it leaves no second completion; the next request to the sectors does.
#[test]
fn fua_alone_may_have_no_end() {
    let told =
        "1 QWA 8+8 1, 2 DW 8+8 1, 3 CW 8+8 0, 11 QWA 8+8 1, 12 DW 8+8 1, 13 CW 8+8 0, 20 CW 8+0 0";
    let expected = [
        [(8, 8, Some(1), Some(1))],
        [(8, 8, Some(11), Some(1))],
        [(8, 0, Some(11), Some(1))],
    ];
    assert_eq!(parts(told), expected);
}

/// Simultaneous flushes of several threads all end at sector 0, so they cannot be distinguished.
#[test]
fn concurrent_flushes_are_not_told_apart() {
    let told = "1 QWF 0+0 1, 2 QWF 0+0 2, 3 CW 0+0 0, 4 CW 0+0 0, 5 CW 0+0 0";
    assert_eq!(parts(told), vec![vec![(0, 0, None, None)]; 3]);
}

/// Requests of several lengths begin at one sector at the same time: each takes the bio of its own length.
#[test]
fn the_bio_as_long_as_the_request_is_it() {
    let told = "1 Q 8+8 1, 2 Q 8+64 2, 3 Q 8+16 3, 4 D 8+16 9, 5 D 8+64 9, 6 D 8+8 9, 7 C 8+8 0, 8 C 8+64 0, 9 C 8+16 0";
    let whole = |blocks, q_ns, pid| vec![(8, blocks, Some(q_ns), Some(pid))];
    assert_eq!(
        parts(told),
        [whole(8, 1, 1), whole(64, 2, 2), whole(16, 3, 3)]
    );
    // Two shorter ones may make it up as well.
    let told = "1 Q 8+8 1, 2 Q 16+8 1, 3 Q 8+16 2, 4 D 8+16 9, 5 C 8+16 0";
    assert_eq!(parts(told), [[(8, 16, None, None)]]);
}

/// Twins of two threads are each issued by their own thread: the D distinguishes them.
#[test]
fn a_thread_issues_its_own_bio() {
    let told = "1 Q 8+8 1, 2 Q 8+8 2, 3 D 8+8 2, 4 C 8+8 0, 5 D 8+8 1, 6 C 8+8 0";
    let expected = [[(8, 8, Some(2), Some(2))], [(8, 8, Some(1), Some(1))]];
    assert_eq!(parts(told), expected);
    // A bio that a scheduler holds may be issued by any thread.
    let told = "1 Q 8+8 1, 2 I 8+8 1, 3 Q 8+8 2, 4 D 8+8 2, 5 C 8+8 0";
    assert_eq!(parts(told), [[(8, 8, None, None)]]);
}

/// A requeued request may be issued by any thread, although it was not inserted.
#[test]
fn a_requeued_request_is_nobodys_own() {
    let told =
        "1 Q 8+8 1, 2 D 8+8 1, 3 R 8+8 1, 4 Q 8+8 2, 5 D 8+8 2, 6 C 8+8 0, 7 D 8+8 2, 8 C 8+8 0";
    assert_eq!(parts(told), vec![vec![(8, 8, None, None)]; 2]);
}

/// Either of two requests may be the one made of two bios, and none is certain when the other is gone.
#[test]
fn a_doubt_lasts_for_bios_of_other_lengths_too() {
    let told = "1 Q 8+8 1, 2 Q 16+8 1, 3 Q 8+16 2, 4 D 8+16 9, 5 C 8+16 0, 6 D 8+16 9, 7 C 8+16 0";
    let unknown = |sector, blocks| (sector, blocks, None, None);
    let expected = [vec![unknown(8, 16)], vec![unknown(8, 8), unknown(16, 8)]];
    assert_eq!(parts(told), expected);
}

/// The numbers of bios tell twins apart: the second one is issued first, and is completed last. A split's front is a new
/// bio.
#[test]
fn the_numbers_of_bios_tell_twins_apart() {
    let mut cycles = LifeCycles::new();
    let mut told = |action, time_ns, blocks: u32, pid, pdu: &[u64]| {
        let pdu: Vec<u8> = pdu.iter().flat_map(|n| n.to_le_bytes()).collect();
        let event = Event {
            time_ns,
            sector: 8,
            action,
            bytes: blocks * 512,
            pid,
            pdu: &pdu,
            ..Event::default()
        };
        cycles.push(&event).map(|c| (c.parts[0].pid, c.d_ns))
    };
    told(Q, 1, 16, 1, &[10]);
    told(Q, 2, 16, 1, &[20]);
    told(X, 3, 8, 1, &[16u64.to_be(), 11, 10]);
    told(X, 4, 8, 1, &[16u64.to_be(), 21, 20]);
    told(Q, 5, 8, 2, &[30]);
    told(D, 6, 8, 9, &[21]);
    told(D, 7, 8, 9, &[30]);
    told(D, 8, 8, 9, &[11]);
    assert_eq!(told(C, 9, 8, 0, &[11]), Some((Some(1), Some(8))));
    assert_eq!(told(C, 10, 8, 0, &[30]), Some((Some(2), Some(7))));
    assert_eq!(told(C, 11, 8, 0, &[21]), Some((Some(1), Some(6))));
}

/// Plays events that are told like those of [`event`], with the number of the bio behind, on a disk with zones of 100 sectors.
fn play_on_zones(told: &str) -> Vec<(u64, u64, Known, Option<u64>)> {
    let disk = Device {
        zone_sectors: Some(100),
        ..Device::default()
    };
    let mut cycles = LifeCycles::new().of_zones(Zones::of(&disk));
    let mut found = Vec::new();
    for told in told.split(", ") {
        let (told, number) = told.rsplit_once(' ').unwrap();
        let pdu = number.parse::<u64>().unwrap().to_le_bytes();
        let event = Event {
            pdu: if number == "0" { &[] } else { &pdu },
            ..event(told)
        };
        found.extend(cycles.push(&event).map(|c| {
            let part = c.parts[0];
            let known = (part.sector, part.bytes / 512, part.q_ns, part.pid);
            (c.sector, c.moved, known, c.d_ns)
        }));
    }
    found
}

/// All appends to a zone are queued for its first sector; the second one is written first, and the first one behind it.
#[test]
fn an_append_is_found_where_the_zone_begins() {
    let told = "1 QW 300+8 1 10, 2 QW 300+8 2 20, 3 DW 300+8 1 10, 4 DW 300+8 2 20, 5 CW 340+8 0 20, 6 CW 348+8 0 10";
    let expected = [
        (340, 40, (340, 8, Some(2), Some(2)), Some(4)),
        (348, 48, (348, 8, Some(1), Some(1)), Some(3)),
    ];
    assert_eq!(play_on_zones(told), expected);
    // Where the kernel appends, the D has the place already. A write that is no append is of its own place.
    let told = "1 QW 300+8 1 10, 2 QW 316+8 2 20, 3 DW 308+8 1 10, 4 DW 316+8 2 20, 5 CW 316+8 0 20, 6 CW 308+8 0 10";
    let expected = [
        (316, 0, (316, 8, Some(2), Some(2)), Some(4)),
        (308, 8, (308, 8, Some(1), Some(1)), Some(3)),
    ];
    assert_eq!(play_on_zones(told), expected);
}

/// If an append's Q, D or both were not seen, those of another are not taken for them.
#[test]
fn an_append_that_was_not_seen_is_no_other() {
    let rest = "8 CW 340+8 0 20, 9 CW 348+8 0 10";
    for (told, expected) in [
        (
            "1 QW 300+8 1 10, 3 DW 300+8 1 20, 4 DW 300+8 1 10",
            [(None, Some(3)), (Some(1), Some(4))],
        ),
        (
            "1 QW 300+8 1 10, 2 QW 300+8 2 20, 4 DW 300+8 1 10",
            [(Some(2), None), (Some(1), Some(4))],
        ),
        (
            "1 QW 300+8 1 10, 4 DW 300+8 1 10",
            [(None, None), (Some(1), Some(4))],
        ),
    ] {
        let found = play_on_zones(&format!("{told}, {rest}"));
        let found: Vec<_> = found
            .iter()
            .map(|(_, _, part, d_ns)| (part.2, *d_ns))
            .collect();
        assert_eq!(found, expected, "{told}");
    }
}

/// Without the numbers of bios, one append cannot be told from another; one of another length can.
#[test]
fn appends_without_numbers_are_twins() {
    let told = "1 QW 300+8 1 0, 2 QW 300+8 2 0, 3 QW 300+16 3 0, 4 DW 300+8 1 0, 5 DW 300+8 2 0, 6 DW 300+16 3 0, 7 CW 340+16 0 0, 8 CW 356+8 0 0, 9 CW 364+8 0 0, 10 CW 108+8 0 0";
    let found = play_on_zones(told);
    assert_eq!(found[0], (340, 40, (340, 16, Some(3), Some(3)), Some(6)));
    assert_eq!(found[1], (356, 56, (356, 8, None, None), None));
    assert_eq!(found[2], (364, 64, (364, 8, None, None), None));
    assert_eq!(found[3], (108, 0, (108, 8, None, None), None), "no append");
}

/// Two flushes and a write with a preflush share a cache flush of the device on CPU 0; a third flush is ended by another
/// one.
#[test]
fn flushes_know_the_device_flush_that_they_waited_for() {
    let told = "1 QWF 0+0 1, 2 QWF 0+0 2, 3 QWF 80+8 3, 4 DF 0+0 9, 5 CF 0+0 0, 6 CW 0+0 0, 7 CW 0+0 0, 8 DWF 80+8 9, 9 CW 80+8 0, 10 CW 80+0 0, 11 QWF 0+0 1, 12 DF 0+0 9, 13 CF 0+0 0, 14 CW 0+0 0, 15 QW 0+0 0, 16 CW 0+0 0";
    let found: Vec<_> = play(told).iter().map(|c| c.device_flush).collect();
    let (first, second) = (Some(0), Some(5));
    assert_eq!(
        found,
        [None, first, first, first, first, None, second, None]
    );
}

/// Two devices in one trace have separate sectors.
#[test]
fn devices_do_not_meet() {
    let mut cycles = LifeCycles::new();
    let event = |action, device, time_ns| Event {
        time_ns,
        sector: 8,
        action,
        bytes: 4096,
        device,
        pid: device,
        ..Event::default()
    };
    for e in [
        event(Q, 1, 1),
        event(Q, 2, 2),
        event(D, 1, 3),
        event(D, 2, 4),
    ] {
        assert!(cycles.push(&e).is_none());
    }
    let of_2 = cycles.push(&event(C, 2, 5)).unwrap();
    assert_eq!((of_2.parts[0].q_ns, of_2.d_ns), (Some(2), Some(4)));
}
