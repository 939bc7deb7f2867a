// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compact form of event files: what is written is read back byte by byte, and what is damaged is found at its place.

use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_FS, BLK_TC_NOTIFY, BLK_TC_SYNC, BLK_TC_WRITE, ta, tn,
};
use mostrace_bundle::blk_io_trace::compact::{Compactor, Expanded, Expander, HEADER, SHORTEST};
use mostrace_bundle::blk_io_trace::{Event, Layout, Records, Then, Version, encode};
use proptest::prelude::*;
use test_support::property;

const V7: Layout = Layout {
    version: Version::V7,
    big_endian: false,
};

fn record(event: &Event<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(event, V7, &mut out).unwrap();
    out
}

fn compact(records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut compactor = Compactor::default();
    records
        .iter()
        .for_each(|record| compactor.put(record, &mut out));
    out
}

/// Reads a file in pieces, and returns its plain records and what follows them.
fn plain(file: &[u8], piece: usize) -> (Vec<u8>, Then) {
    let mut records = Records::new(file);
    let mut out = Vec::new();
    loop {
        match records.read(piece, &mut out).unwrap() {
            Then::More => {}
            then => return (out, then),
        }
    }
}

/// A write of 4 KiB: its Q, D and C.
fn write(time_ns: u64, sector: u64, number: u64) -> [Vec<u8>; 3] {
    [
        (ta::QUEUE, 0, 7),
        (ta::ISSUE, 900, 7),
        (ta::COMPLETE, 9000, 0),
    ]
    .map(|(act, later, pid)| {
        record(&Event {
            time_ns: time_ns + later,
            sector,
            bytes: 4096,
            action: act | BLK_TC_FS | BLK_TC_WRITE | BLK_TC_SYNC,
            pid,
            device: 8 << 20,
            pdu: &number.to_le_bytes(),
            ..Event::default()
        })
    })
}

/// Writes all over a disk of 1 TB by a task, with bios from a pool of four.
fn writes() -> Vec<Vec<u8>> {
    let mut sector: u64 = 88;
    let writes = (0..1000_u64).flat_map(|nth| {
        sector = sector.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(nth);
        let number = (nth % 4 + 1).wrapping_mul(0xff51_afd7_ed55_8ccd);
        write(10_000 * nth, sector % (1 << 31) / 8 * 8, number)
    });
    numbered(writes.collect(), &[])
}

fn event() -> impl Strategy<Value = Vec<u8>> {
    let places = prop_oneof![0..64_u64, any::<u64>()];
    let bytes = prop_oneof![
        4 => (0..9_u32).prop_map(|blocks| blocks * 4096),
        1 => any::<u32>(),
    ];
    let payload = prop_oneof![
        4 => (0..9_u64).prop_map(|number| number.to_le_bytes().to_vec()),
        1 => any::<[u8; 8]>().prop_map(Vec::from),
        3 => Just(Vec::new()),
        1 => prop::collection::vec(any::<u8>(), 0..30),
    ];
    let action = prop_oneof![
        6 => (1..16_u64).prop_map(|act| act | BLK_TC_FS | BLK_TC_WRITE),
        1 => Just(BLK_TC_NOTIFY | tn::PROCESS),
        1 => any::<u32>().prop_map(u64::from),
    ];
    let tasks = prop_oneof![9 => 0..3_u32, 1 => any::<u32>()];
    let error = prop_oneof![9 => Just(0), 1 => any::<u16>()];
    (any::<u64>(), places, bytes, action, tasks, error, payload).prop_map(
        |(time_ns, sector, bytes, action, pid, error, pdu)| {
            record(&Event {
                time_ns,
                sector,
                bytes,
                action,
                pid,
                error,
                pdu: &pdu,
                ..Event::default()
            })
        },
    )
}

/// Numbers records as a file of a CPU does, with a few gaps.
fn numbered(mut records: Vec<Vec<u8>>, gaps: &[usize]) -> Vec<Vec<u8>> {
    let mut sequence: u32 = u32::MAX - 5;
    for (nth, record) in records.iter_mut().enumerate() {
        sequence = sequence.wrapping_add(if gaps.contains(&nth) { 2 } else { 1 });
        record[4..8].copy_from_slice(&sequence.to_le_bytes());
    }
    records
}

proptest! {
    #![proptest_config(property::config(file!(), 256))]

    #[test]
    fn what_is_written_is_read_back(
        records in prop::collection::vec(event(), 0..400),
        gaps in prop::collection::vec(0..400_usize, 0..3),
        piece in 14..3000_usize,
    ) {
        let records = numbered(records, &gaps);
        let file = compact(&records);
        let (plain, then) = plain(&file, piece);
        prop_assert_eq!(then, Then::End);
        prop_assert_eq!(plain, records.concat());
        prop_assert!(file.len() >= SHORTEST * records.len());
    }

    /// A part of a file that was begun anew is read alone, and behind what is before it.
    #[test]
    fn what_begins_anew_refers_to_nothing_before(
        before in prop::collection::vec(event(), 1..90),
        after in prop::collection::vec(event(), 1..90),
    ) {
        let (first, second) = (compact(&before), compact(&after));
        prop_assert_eq!(plain(&second, 99), (after.concat(), Then::End));
        let whole = [before.concat(), after.concat()].concat();
        prop_assert_eq!(plain(&[first, second].concat(), 99), (whole, Then::End));
    }

    /// The whole records before the cut are there, and the cut is found where a record begins.
    #[test]
    fn a_cut_is_found(records in prop::collection::vec(event(), 1..60), left in any::<prop::sample::Index>()) {
        let records = numbered(records, &[]);
        let (file, all) = (compact(&records), records.concat());
        let mut ends = vec![HEADER.len()];
        let mut expander = Expander::default();
        while let Some(Expanded::Taken(len)) = ends.last().filter(|at| **at < file.len()).map(|at| {
            if *at == HEADER.len() {
                expander.expand(&file, &mut Vec::new());
            }
            expander.expand(&file[*at..], &mut Vec::new())
        }) {
            ends.push(ends.last().unwrap() + len);
        }
        prop_assert_eq!(ends.len(), records.len() + 1);
        let at = HEADER.len() + left.index(file.len() - HEADER.len());
        let whole = ends.iter().filter(|end| **end <= at).count() - 1;
        let (read, then) = plain(&file[..at], 99);
        prop_assert_eq!(&read, &records[..whole].concat());
        prop_assert!(all.starts_with(&read));
        match then {
            Then::End => prop_assert_eq!(ends[whole], at),
            Then::Cut { offset, needed, left } => {
                prop_assert_eq!(offset, ends[whole] as u64);
                prop_assert_eq!(left, at - ends[whole]);
                prop_assert!(needed > left && needed <= ends[whole + 1] - ends[whole]);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300), damage in 0..99_usize, by: u8) {
        let mut file = compact(&writes()[..30]);
        file[damage] ^= by;
        for file in [[&HEADER[..], &bytes].concat(), [file, bytes].concat()] {
            let (plain, _) = plain(&file, 50);
            prop_assert!(plain.len() <= 14 * file.len());
        }
    }
}

#[test]
fn a_write_takes_less_than_a_fifth() {
    let records = writes();
    let (file, plain) = (compact(&records), records.concat());
    let (short, long) = (file.len() / 1000, plain.len() / 1000);
    assert_eq!(long, 168);
    assert!(short < 33, "{short}");
}

/// Each byte of a write's records, by FORMAT.md.
#[test]
fn short_records_stand_as_described() {
    let records = [write(0, 88, 5), write(20_000, 88 + 8, 5)].concat();
    let file = compact(&numbered(records, &[]));
    let whole = &file[HEADER.len()..][..3 * 56];
    assert_eq!(file[..HEADER.len()], *b"MOSTEVT\n");
    assert_eq!(whole[..2], [0x07, 0x74]);
    let slot = file[HEADER.len() + 3 * 56 + 1] & 0x7f;
    let short: Vec<u8> = [
        // Q, like the whole record that two others follow: a payload that was not told, 11 µs later, at sector 96, of 8 sectors.
        &[0x82, 0x80 | slot][..],
        &5_u64.to_le_bytes(),
        &[0xf0, 0xab, 1, 0xc0, 1, 0x10],
        // D, of the same payload and place, 900 ns later, and C.
        &[0x81, slot, 0x88, 0x0e, 0, 0],
        &[0x80, slot, 0xc8, 0x7e, 0, 0],
    ]
    .concat();
    assert_eq!(file[HEADER.len() + 3 * 56..], short);
}

#[test]
fn what_is_no_record_is_found_at_its_place() {
    let file = compact(&writes()[..9]);
    let at = file.len() as u64;
    let foreign = |bytes: &[u8], magic| {
        let (read, then) = plain(&[&file[..], bytes].concat(), 50);
        assert_eq!(read, writes_of(&file));
        assert_eq!(then, Then::Foreign { offset: at, magic });
    };
    foreign(&[0; 60], 0);
    foreign(b"MOSTEVE\n", u32::from_le_bytes(*b"MOST"));
    // It is like a whole record that there is not.
    foreign(&[0x83, 0, 0, 0, 0], 0x83);
    // A number of more than 64 bits.
    foreign(
        &[
            0x80, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0,
        ],
        0x8080_0080,
    );
}

fn writes_of(file: &[u8]) -> Vec<u8> {
    plain(file, 999).0
}
