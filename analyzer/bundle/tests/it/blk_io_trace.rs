// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block event's layout: what is written is read back, fields have the kernel's positions, and any bytes are read
//! without a panic.

use mostrace_bundle::blk_io_trace::action::{
    BLK_TA_CGROUP, BLK_TC_FUA, BLK_TC_NOTIFY, BLK_TC_PC, BLK_TC_WRITE, BLK_TC_ZONE_MANAGEMENT, ta,
    tn,
};
use mostrace_bundle::blk_io_trace::{
    BlkIoTrace, Decoded, EncodeError, Event, Layout, MAX_RECORD, Prefix, Version, decode, encode,
};
use proptest::prelude::*;
use zerocopy::{FromBytes, LE};

const LAYOUTS: [Layout; 4] = [
    layout(Version::V7, false),
    layout(Version::V7, true),
    layout(Version::V8, false),
    layout(Version::V8, true),
];

const fn layout(version: Version, big_endian: bool) -> Layout {
    Layout {
        version,
        big_endian,
    }
}

fn record(event: &Event<'_>, layout: Layout) -> Vec<u8> {
    let mut out = Vec::new();
    encode(event, layout, &mut out).expect("fits");
    out
}

/// An event whose fields all have different values.
fn numbered() -> Event<'static> {
    Event {
        sequence: 0x0102_0304,
        time_ns: 0x1112_1314_1516_1718,
        sector: 0x2122_2324_2526_2728,
        bytes: 0x3132_3334,
        action: 0xc142_4202,
        pid: 0x5152_5354,
        device: 0x6162_6364,
        cpu: 0x7172_7374,
        error: 0x8182,
        pdu: &[0xee; 5],
        ..Event::default()
    }
}

/// `struct blk_io_trace` of `<linux/blktrace_api.h>`, byte by byte.
#[test]
fn fields_stand_where_the_kernel_has_them() {
    let words: [&[u8]; 12] = [
        &0x6561_7407_u32.to_le_bytes(),
        &0x0102_0304_u32.to_le_bytes(),
        &0x1112_1314_1516_1718_u64.to_le_bytes(),
        &0x2122_2324_2526_2728_u64.to_le_bytes(),
        &0x3132_3334_u32.to_le_bytes(),
        &0xc142_4202_u32.to_le_bytes(),
        &0x5152_5354_u32.to_le_bytes(),
        &0x6162_6364_u32.to_le_bytes(),
        &0x7172_7374_u32.to_le_bytes(),
        &0x8182_u16.to_le_bytes(),
        &5_u16.to_le_bytes(),
        &[0xee; 5],
    ];
    assert_eq!(record(&numbered(), LAYOUTS[0]), words.concat());
    let v8 = record(&numbered(), LAYOUTS[2]);
    assert_eq!(v8.len(), 64 + 5);
    assert_eq!(v8[..4], 0x6561_7408_u32.to_le_bytes());
    assert_eq!(v8[28..32], 0x5152_5354_u32.to_le_bytes());
    assert_eq!(v8[32..40], 0xc142_4202_u64.to_le_bytes());
    assert_eq!(v8[48..52], [0x82, 0x81, 5, 0]);
    assert_eq!(v8[52..], [&[0; 12][..], &[0xee; 5]].concat());
    assert_eq!(record(&numbered(), LAYOUTS[3])[4..8], [1, 2, 3, 4]);
}

#[test]
fn a_writer_fills_in_what_it_knows() {
    let mut bytes = record(&numbered(), LAYOUTS[0]);
    let (prefix, _) = Prefix::<LE>::mut_from_prefix(&mut bytes).unwrap();
    prefix.sequence = 9.into();
    prefix.time = 10.into();
    let (head, rest) = BlkIoTrace::<LE>::ref_from_prefix(&bytes).unwrap();
    assert_eq!((head.pid.get(), head.cpu.get()), (0x5152_5354, 0x7172_7374));
    assert_eq!(usize::from(head.pdu_len), rest.len());
    let expected = Event {
        sequence: 9,
        time_ns: 10,
        ..numbered()
    };
    assert_eq!(decode(&bytes), Decoded::Record(expected, 53));
}

#[test]
fn what_does_not_fit_is_refused_whole() {
    let zones = Event {
        action: BLK_TC_ZONE_MANAGEMENT,
        ..Event::default()
    };
    let long = Event {
        action: BLK_TA_CGROUP,
        pdu: &[0; 0xfff8],
        ..Event::default()
    };
    let mut out = Vec::new();
    let v7 = LAYOUTS[0];
    assert_eq!(encode(&zones, v7, &mut out), Err(EncodeError::Action));
    assert_eq!(encode(&long, v7, &mut out), Err(EncodeError::Payload));
    assert!(out.is_empty());
    let longest = Event {
        pdu: &[0; 0xffff],
        ..Event::default()
    };
    assert_eq!(record(&longest, LAYOUTS[2]).len(), MAX_RECORD);
}

#[test]
fn payloads_are_understood() {
    let remap = [&[0, 0, 0, 1, 0, 0, 0, 2][..], &3_u64.to_be_bytes()].concat();
    let event = |action, pdu| Event {
        action,
        pdu,
        ..Event::default()
    };
    let of = event(BLK_TC_WRITE | ta::REMAP, &remap).remap().unwrap();
    assert_eq!((of.device_from, of.device_to, of.sector_from), (1, 2, 3));
    let cut = 77_u64.to_be_bytes();
    assert_eq!(event(ta::SPLIT, &cut).split_at(), Some(77));
    assert_eq!(event(ta::REMAP, &cut).remap(), None);
    assert_eq!(event(BLK_TC_NOTIFY | ta::SPLIT, &cut).split_at(), None);
}

/// The payload of blktrace's own events is another: only the lengths tell them apart.
#[test]
fn a_bio_has_a_number_where_its_source_gives_one() {
    let pdu = [
        1_u64.to_be_bytes(),
        5_u64.to_le_bytes(),
        6_u64.to_le_bytes(),
    ]
    .concat();
    let of = |action, pdu| Event {
        action,
        pdu,
        ..Event::default()
    };
    for act in [ta::QUEUE, ta::INSERT, ta::ISSUE, ta::REQUEUE, ta::COMPLETE] {
        assert_eq!(of(act, &pdu[8..16]).bio(), Some(5), "{act}");
        assert_eq!(of(act, &pdu[..]).bio(), None);
        assert_eq!(of(act | BLK_TC_PC, &pdu[8..16]).bio(), None);
        assert_eq!(of(act, &[0; 8]).bio(), None);
    }
    let split = of(ta::SPLIT, &pdu);
    assert_eq!(
        (split.split_at(), split.bio(), split.split_bio()),
        (Some(1), Some(5), Some(6))
    );
    let of_blktrace = of(ta::SPLIT, &pdu[..8]);
    assert_eq!(
        (
            of_blktrace.split_at(),
            of_blktrace.bio(),
            of_blktrace.split_bio()
        ),
        (Some(1), None, None)
    );
    let foreign = Event {
        big_endian: true,
        ..of(ta::QUEUE, &pdu[..8])
    };
    assert_eq!(foreign.bio(), Some(1));
    assert_eq!(of(ta::GETRQ, &pdu[8..16]).bio(), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        (time_ns, sector, cgroup) in any::<(u64, u64, u64)>(),
        (bytes, pid, device, cpu, sequence, error) in any::<(u32, u32, u32, u32, u32, u16)>(),
        low in any::<u32>(),
        pdu in prop::collection::vec(any::<u8>(), 0..40),
        layout in prop::sample::select(LAYOUTS.to_vec()),
        behind in prop::collection::vec(any::<u8>(), 0..70),
    ) {
        let event = Event {
            time_ns,
            sector,
            action: u64::from(low) & !BLK_TC_NOTIFY,
            cgroup: if u64::from(low) & BLK_TA_CGROUP == 0 { 0 } else { cgroup },
            bytes,
            pid,
            device,
            cpu,
            sequence,
            error,
            big_endian: layout.big_endian,
            pdu: &pdu,
        };
        let mut out = record(&event, layout);
        let len = out.len();
        out.extend(&behind);
        prop_assert_eq!(decode(&out), Decoded::Record(event, len));
        for cut in [0, 4, len / 2, len - 1] {
            let short = matches!(decode(&out[..cut]), Decoded::Short(needed) if needed <= len && needed > cut);
            prop_assert!(short, "{} of {}", cut, len);
        }
    }

    /// A wall clock keeps its value when it is copied to a record of the other byte order.
    #[test]
    fn a_timestamp_is_written_in_the_byte_order_of_its_record(
        seconds: u32, nanoseconds: u32,
        from in prop::sample::select(LAYOUTS.to_vec()),
        to in prop::sample::select(LAYOUTS.to_vec()),
    ) {
        let pdu = [seconds.to_le_bytes(), nanoseconds.to_le_bytes()].concat();
        let note = Event {
            action: BLK_TC_NOTIFY | BLK_TC_FUA | tn::TIMESTAMP,
            pdu: &pdu,
            ..Event::default()
        };
        let first = record(&note, from);
        let Decoded::Record(read, _) = decode(&first) else { panic!() };
        prop_assert_eq!(read.timestamp(), Some([seconds, nanoseconds]));
        let second = record(&read, to);
        let Decoded::Record(read, _) = decode(&second) else { panic!() };
        prop_assert_eq!(read.timestamp(), Some([seconds, nanoseconds]));
        prop_assert_eq!(second, record(&note, to));
    }

    #[test]
    fn any_bytes_are_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..200), version in 6_u8..10, big in any::<bool>()) {
        let magic = 0x6561_7400_u32 | u32::from(version);
        let magic = if big { magic.to_be_bytes() } else { magic.to_le_bytes() };
        for (byte, of) in bytes.iter_mut().zip(magic) {
            *byte = of;
        }
        match decode(&bytes) {
            Decoded::Record(event, len) => prop_assert!(len <= bytes.len() && event.pdu.len() < len),
            Decoded::Short(needed) => prop_assert!(needed > bytes.len() && needed <= MAX_RECORD),
            Decoded::Foreign(_) => prop_assert!(bytes.len() >= 4 && !(7..=8).contains(&version)),
        }
    }
}
