// SPDX-License-Identifier: MIT OR Apache-2.0
//! IO to the same sectors at the same time, and IO with lost events: what is known is reported, and the rest is None. The
//! events are written by hand.

mod support;

use mostrace::blktrace::action::{BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_FUA, BLK_TC_WRITE, ta};
use mostrace::blktrace::{Completion, Event, LifeCycles, Part};
use support::keep;

const SECOND: u64 = 1_000_000_000;
const W: u64 = BLK_TC_WRITE;

/// `(act, time_ns, sector, blocks of 512 bytes, pid)`
type Told = (u64, u64, u64, u32, u32);

fn play(told: &[Told]) -> Vec<Completion<'static>> {
    let mut cycles = LifeCycles::new();
    let events = told
        .iter()
        .map(|&(action, time_ns, sector, blocks, pid)| Event {
            time_ns,
            sector,
            action,
            bytes: blocks * 512,
            pid,
            ..Event::default()
        });
    events
        .filter_map(|e| cycles.push(&e).as_ref().map(keep))
        .collect()
}

/// `(sector, blocks, q_ns, pid)`
type Known = (u64, u32, Option<u64>, Option<u32>);

/// Returns the parts of each completion.
fn parts(told: &[Told]) -> Vec<Vec<Known>> {
    let part = |p: &Part| (p.sector, p.bytes / 512, p.q_ns, p.pid);
    play(told)
        .iter()
        .map(|c| c.parts.iter().map(part).collect())
        .collect()
}

const Q: u64 = ta::QUEUE;
const G: u64 = ta::GETRQ;
const I: u64 = ta::INSERT;
const D: u64 = ta::ISSUE;
const C: u64 = ta::COMPLETE;
const R: u64 = ta::REQUEUE;
const X: u64 = ta::SPLIT;

#[test]
fn twins_of_two_threads_keep_neither() {
    let told = [
        (Q, 1, 8, 8, 1),
        (Q, 2, 8, 8, 2),
        (D, 3, 8, 8, 9),
        (D, 4, 8, 8, 9),
    ];
    let told = [&told[..], &[(C, 5, 8, 8, 0), (C, 6, 8, 8, 0)]].concat();
    assert_eq!(parts(&told), vec![vec![(8, 8, None, None)]; 2]);
    let issued: Vec<_> = play(&told).iter().map(|c| c.d_ns).collect();
    assert_eq!(issued, [None, None]);
}

#[test]
fn twins_of_one_thread_keep_it() {
    let told = [
        (Q, 1, 8, 8, 1),
        (Q, 2, 8, 8, 1),
        (D, 3, 8, 8, 9),
        (D, 4, 8, 8, 9),
    ];
    let told = [&told[..], &[(C, 5, 8, 8, 0), (C, 6, 8, 8, 0)]].concat();
    assert_eq!(parts(&told), vec![vec![(8, 8, None, Some(1))]; 2]);
}

/// The one that differs comes last: the two compared before it must lose what they have in common, too.
#[test]
fn of_three_twins_each_could_be_the_odd_one() {
    let mut told = vec![(Q, 1, 8, 8, 1), (Q, 2, 8, 8, 1), (Q, 3, 8, 8, 2)];
    told.extend((4..7).map(|t| (D, t, 8, 8, 9)));
    told.extend((7..10).map(|t| (C, t, 8, 8, 0)));
    assert_eq!(parts(&told), vec![vec![(8, 8, None, None)]; 3]);
}

/// An ambiguous bio does not become certain when the others are gone.
#[test]
fn a_doubt_lasts() {
    let told = [
        (Q, 1, 8, 8, 1),
        (Q, 2, 8, 8, 1),
        (Q, 3, 8, 4, 2),
        (D, 4, 8, 8, 9),
        (C, 5, 8, 8, 0),
        (D, 6, 8, 4, 9),
        (C, 7, 8, 4, 0),
        (D, 8, 8, 8, 9),
        (C, 9, 8, 8, 0),
    ];
    let twin = [(8, 8, None, Some(1))];
    assert_eq!(parts(&told), [twin, [(8, 4, Some(3), Some(2))], twin]);
}

/// An X runs in the thread of the Q.
#[test]
fn a_split_is_of_its_own_threads_bio() {
    let told = [(Q, 1, 8, 24, 1), (Q, 2, 8, 24, 2), (X, 3, 8, 8, 2)];
    let told = [&told[..], &[(D, 4, 8, 8, 2), (C, 5, 8, 8, 0)]].concat();
    assert_eq!(parts(&told), [[(8, 8, Some(2), Some(2))]]);
}

/// An issue distinguishes twins if the second is queued only after it.
#[test]
fn twins_one_after_the_other_are_told_apart_until_both_are_issued() {
    let told = [(Q, 1, 8, 8, 1), (D, 2, 8, 8, 1), (Q, 3, 8, 8, 2)];
    let told = [
        &told[..],
        &[(C, 4, 8, 8, 0), (D, 5, 8, 8, 2), (C, 6, 8, 8, 0)],
    ]
    .concat();
    let expected = [[(8, 8, Some(1), Some(1))], [(8, 8, Some(3), Some(2))]];
    assert_eq!(parts(&told), expected);
}

#[test]
fn reads_writes_and_discards_do_not_meet() {
    let told = [
        (Q, 1, 8, 8, 1),
        (Q | W, 2, 8, 8, 2),
        (Q | W | BLK_TC_DISCARD, 3, 8, 8, 3),
        (D | W, 4, 8, 8, 9),
        (D, 5, 8, 8, 9),
        (D | W | BLK_TC_DISCARD, 6, 8, 8, 9),
        (C, 7, 8, 8, 0),
        (C | W | BLK_TC_DISCARD, 8, 8, 8, 0),
        (C | W, 9, 8, 8, 0),
    ];
    let expected = [
        [(8, 8, Some(1), Some(1))],
        [(8, 8, Some(3), Some(3))],
        [(8, 8, Some(2), Some(2))],
    ];
    assert_eq!(parts(&told), expected);
}

#[test]
fn a_lost_q_is_a_part_without_one() {
    let told = [
        (Q, 1, 8, 8, 1),
        (Q, 2, 24, 8, 2),
        (D, 3, 8, 32, 9),
        (C, 4, 8, 32, 0),
    ];
    let known = |sector, q_ns, pid| (sector, 8, Some(q_ns), Some(pid));
    let gap = |sector| (sector, 8, None, None);
    let expected = [[known(8, 1, 1), gap(16), known(24, 2, 2), gap(32)]];
    assert_eq!(parts(&told), expected);
}

#[test]
fn a_lost_d_or_a_driver_without_requests() {
    let told = [
        (Q, 1, 8, 8, 1),
        (G, 2, 8, 8, 1),
        (I, 3, 8, 8, 1),
        (C, 9, 8, 8, 0),
    ];
    let [c] = &play(&told)[..] else { panic!() };
    assert_eq!((c.d_ns, c.i_ns, c.g_ns), (None, Some(3), Some(2)));
    assert_eq!(parts(&told), [[(8, 8, Some(1), Some(1))]]);
}

/// blktrace's `-a` can leave X events out. The only bio over the sectors is the right one.
#[test]
fn without_x_a_bio_is_cut_by_its_requests() {
    let told = [
        (Q, 1, 8, 24, 1),
        (D, 2, 16, 8, 1),
        (D, 3, 8, 8, 1),
        (D, 4, 24, 8, 1),
    ];
    let told = [
        &told[..],
        &[(C, 5, 24, 8, 0), (C, 6, 8, 8, 0), (C, 7, 16, 8, 0)],
    ]
    .concat();
    let part = |sector| [(sector, 8, Some(1), Some(1))];
    assert_eq!(parts(&told), [part(24), part(8), part(16)]);

    // With two of them over the sectors, the right one is unknown.
    let told = [
        (Q, 1, 8, 24, 1),
        (Q, 2, 0, 24, 2),
        (D, 3, 16, 8, 1),
        (C, 4, 16, 8, 0),
    ];
    assert_eq!(parts(&told), [[(16, 8, None, None)]]);
}

#[test]
fn the_rest_of_a_split_bio_keeps_its_q() {
    let told = [
        (Q, 1, 8, 24, 1),
        (X, 2, 8, 8, 1),
        (G, 3, 8, 8, 1),
        (D, 4, 8, 8, 1),
    ];
    let told = [&told[..], &[(G, 5, 16, 16, 1), (D, 6, 16, 16, 1)]].concat();
    let told = [&told[..], &[(C, 7, 16, 16, 0), (C, 8, 8, 8, 0)]].concat();
    let expected = [[(16, 16, Some(1), Some(1))], [(8, 8, Some(1), Some(1))]];
    assert_eq!(parts(&told), expected);
    let got: Vec<_> = play(&told).iter().map(|c| (c.g_ns, c.d_ns)).collect();
    assert_eq!(got, [(Some(5), Some(6)), (Some(3), Some(4))]);
}

/// A requeued request is issued again, merged with another by then.
#[test]
fn a_requeued_request_may_grow() {
    let told = [
        (Q, 1, 8, 8, 1),
        (G, 2, 8, 8, 1),
        (D, 3, 8, 8, 1),
        (R, 4, 8, 8, 1),
    ];
    let told = [
        &told[..],
        &[(Q, 5, 16, 8, 2), (D, 6, 8, 16, 1), (C, 7, 8, 16, 0)],
    ]
    .concat();
    let expected = [[(8, 8, Some(1), Some(1)), (16, 8, Some(5), Some(2))]];
    assert_eq!(parts(&told), expected);
    let [c] = &play(&told)[..] else { panic!() };
    assert_eq!((c.g_ns, c.d_ns), (Some(2), Some(6)));
}

/// The C of the first was lost. Half a minute later it no longer counts as in flight.
#[test]
fn a_lost_c_does_not_blur_for_ever() {
    let told = [(Q, 1, 8, 8, 1), (D, 2, 8, 8, 1)];
    let again = |t| [(Q, t, 8, 8, 2), (D, t + 1, 8, 8, 2), (C, t + 2, 8, 8, 0)];
    let soon = [&told[..], &again(SECOND)].concat();
    assert_eq!(parts(&soon), [[(8, 8, None, None)]]);
    let late = [&told[..], &again(31 * SECOND)].concat();
    assert_eq!(parts(&late), [[(8, 8, Some(31 * SECOND), Some(2))]]);
}

/// A request that takes longer than that is still known if nothing else is there.
#[test]
fn long_io_is_known() {
    let told = [(Q, 1, 8, 8, 1), (D, 2, 8, 8, 1), (C, 100 * SECOND, 8, 8, 0)];
    assert_eq!(parts(&told), [[(8, 8, Some(1), Some(1))]]);
}

/// FUA on a device that supports it leaves no second completion; the next request to the sectors does.
#[test]
fn fua_alone_may_have_no_end() {
    let fua = |t| {
        [
            (Q | W | BLK_TC_FUA, t, 8, 8, 1),
            (D | W, t + 1, 8, 8, 1),
            (C | W, t + 2, 8, 8, 0),
        ]
    };
    let told = [&fua(1)[..], &fua(11), &[(C | W, 20, 8, 0, 0)]].concat();
    let expected = [
        [(8, 8, Some(1), Some(1))],
        [(8, 8, Some(11), Some(1))],
        [(8, 0, Some(11), Some(1))],
    ];
    assert_eq!(parts(&told), expected);
}

/// Simultaneous flushes of several threads all end at sector 0, so they cannot be distinguished.
#[test]
fn concurrent_flushes_are_not_told_apart() {
    let flush = W | BLK_TC_FLUSH;
    let told = [(Q | flush, 1, 0, 0, 1), (Q | flush, 2, 0, 0, 2)];
    let told = [
        &told[..],
        &[
            (C | W, 3, 0, 0, 0),
            (C | W, 4, 0, 0, 0),
            (C | W, 5, 0, 0, 0),
        ],
    ]
    .concat();
    assert_eq!(parts(&told), vec![vec![(0, 0, None, None)]; 3]);
}

/// Requests of several lengths begin at one sector at the same time: each takes the bio of its own length.
#[test]
fn the_bio_as_long_as_the_request_is_it() {
    let told = [
        (Q, 1, 8, 8, 1),
        (Q, 2, 8, 64, 2),
        (Q, 3, 8, 16, 3),
        (D, 4, 8, 16, 9),
        (D, 5, 8, 64, 9),
        (D, 6, 8, 8, 9),
        (C, 7, 8, 8, 0),
        (C, 8, 8, 64, 0),
        (C, 9, 8, 16, 0),
    ];
    let whole = |blocks, q_ns, pid| vec![(8, blocks, Some(q_ns), Some(pid))];
    assert_eq!(
        parts(&told),
        [whole(8, 1, 1), whole(64, 2, 2), whole(16, 3, 3)]
    );
    // Two shorter ones may make it up as well.
    let told = [
        (Q, 1, 8, 8, 1),
        (Q, 2, 16, 8, 1),
        (Q, 3, 8, 16, 2),
        (D, 4, 8, 16, 9),
        (C, 5, 8, 16, 0),
    ];
    assert_eq!(parts(&told), [[(8, 16, None, None)]]);
}

/// Twins of two threads are each issued by their own thread: the D distinguishes them.
#[test]
fn a_thread_issues_its_own_bio() {
    let told = [
        (Q, 1, 8, 8, 1),
        (Q, 2, 8, 8, 2),
        (D, 3, 8, 8, 2),
        (C, 4, 8, 8, 0),
        (D, 5, 8, 8, 1),
        (C, 6, 8, 8, 0),
    ];
    let expected = [[(8, 8, Some(2), Some(2))], [(8, 8, Some(1), Some(1))]];
    assert_eq!(parts(&told), expected);
    // A bio that a scheduler holds may be issued by any thread.
    let told = [
        (Q, 1, 8, 8, 1),
        (I, 2, 8, 8, 1),
        (Q, 3, 8, 8, 2),
        (D, 4, 8, 8, 2),
        (C, 5, 8, 8, 0),
    ];
    assert_eq!(parts(&told), [[(8, 8, None, None)]]);
}

/// A requeued request may be issued by any thread, although it was not inserted.
#[test]
fn a_requeued_request_is_nobodys_own() {
    let told = [
        (Q, 1, 8, 8, 1),
        (D, 2, 8, 8, 1),
        (R, 3, 8, 8, 1),
        (Q, 4, 8, 8, 2),
        (D, 5, 8, 8, 2),
        (C, 6, 8, 8, 0),
        (D, 7, 8, 8, 2),
        (C, 8, 8, 8, 0),
    ];
    assert_eq!(parts(&told), vec![vec![(8, 8, None, None)]; 2]);
}

/// Either of two requests may be the one made of two bios, and none is certain when the other is gone.
#[test]
fn a_doubt_lasts_for_bios_of_other_lengths_too() {
    let told = [
        (Q, 1, 8, 8, 1),
        (Q, 2, 16, 8, 1),
        (Q, 3, 8, 16, 2),
        (D, 4, 8, 16, 9),
        (C, 5, 8, 16, 0),
        (D, 6, 8, 16, 9),
        (C, 7, 8, 16, 0),
    ];
    let unknown = |sector, blocks| (sector, blocks, None, None);
    let expected = [vec![unknown(8, 16)], vec![unknown(8, 8), unknown(16, 8)]];
    assert_eq!(parts(&told), expected);
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

/// Two flushes and a write with a preflush share a cache flush of the device on CPU 0; a third flush is ended by another
/// one.
#[test]
fn flushes_know_the_device_flush_that_they_waited_for() {
    let flush = W | BLK_TC_FLUSH;
    let told = [
        (Q | flush, 1, 0, 0, 1),
        (Q | flush, 2, 0, 0, 2),
        (Q | flush, 3, 80, 8, 3),
        (D | BLK_TC_FLUSH, 4, 0, 0, 9),
        (C | BLK_TC_FLUSH, 5, 0, 0, 0),
        (C | W, 6, 0, 0, 0),
        (C | W, 7, 0, 0, 0),
        (D | flush, 8, 80, 8, 9),
        (C | W, 9, 80, 8, 0),
        (C | W, 10, 80, 0, 0),
        (Q | flush, 11, 0, 0, 1),
        (D | BLK_TC_FLUSH, 12, 0, 0, 9),
        (C | BLK_TC_FLUSH, 13, 0, 0, 0),
        (C | W, 14, 0, 0, 0),
        (Q | W, 15, 0, 0, 0),
        (C | W, 16, 0, 0, 0),
    ];
    let found: Vec<_> = play(&told).iter().map(|c| c.device_flush).collect();
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
