// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of Perfetto that the tests write themselves.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use mostrace_bundle::{Bundle, Writer, layout};
use proptest::prelude::*;

use super::super::tests::{files, made};
use super::super::{Choice, import};

/// A field: a number, or bytes.
enum Of<'a> {
    N(u64),
    B(&'a [u8]),
}
use Of::{B, N};

fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn message(fields: &[(u64, Of<'_>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, value) in fields {
        match value {
            N(value) => {
                varint(number << 3, &mut bytes);
                varint(*value, &mut bytes);
            }
            B(value) => {
                varint(number << 3 | 2, &mut bytes);
                varint(value.len() as u64, &mut bytes);
                bytes.extend_from_slice(value);
            }
        }
    }
    bytes
}

fn event(time_ns: u64, pid: u64, number: u64, fields: &[(u64, Of<'_>)]) -> Vec<u8> {
    let of = message(fields);
    message(&[(1, N(time_ns)), (2, N(pid)), (number, B(&of))])
}

/// A packet with events of a CPU, and other fields of its bundle.
fn bundle(cpu: u64, events: &[&[u8]], others: &[(u64, Of<'_>)]) -> Vec<u8> {
    let mut bundle = message(&[(1, N(cpu))]);
    for event in events {
        bundle.extend(message(&[(2, B(event))]));
    }
    bundle.extend(message(others));
    message(&[(10, N(1)), (1, B(&bundle))])
}

fn trace(packets: &[Vec<u8>]) -> Vec<u8> {
    packets
        .iter()
        .flat_map(|packet| message(&[(1, B(packet))]))
        .collect()
}

/// Device 259:300 as users have it.
const DEV: u64 = 259 << 8 | 300 & 0xff | (300 & 0xfff00) << 12;

fn queued(time_ns: u64) -> Vec<u8> {
    let fields = [
        (1, N(DEV)),
        (2, N(4096)),
        (3, N(16)),
        (4, B(b"WS")),
        (5, B(b"app")),
    ];
    event(time_ns, 71, 119, &fields)
}

fn issued(time_ns: u64) -> Vec<u8> {
    let fields = [
        (1, N(DEV)),
        (2, N(4096)),
        (3, N(16)),
        (4, N(8192)),
        (5, B(b"WS")),
        (6, B(b"app")),
    ];
    event(time_ns, 71, 45, &fields)
}

fn completed(time_ns: u64, error: i64) -> Vec<u8> {
    let fields = [
        (1, N(DEV)),
        (2, N(4096)),
        (3, N(16)),
        (5, B(b"WS")),
        (7, N(error as u64)),
    ];
    event(time_ns, 0, 125, &fields)
}

/// An event of f2fs, of which the trace names the fields.
fn generic(time_ns: u64, name: &[u8], fields: &[(&[u8], Of<'_>)]) -> Vec<u8> {
    let mut body = message(&[(1, B(name))]);
    for (name, value) in fields {
        let value = match value {
            N(number) => (5, N(*number)),
            B(bytes) => (3, B(bytes)),
        };
        let field = message(&[(1, B(name)), value]);
        body.extend(message(&[(2, B(&field))]));
    }
    message(&[(1, N(time_ns)), (2, N(71)), (327, B(&body))])
}

fn page_descriptor() -> Vec<u8> {
    let names: [&[u8]; 6] = [b"dev", b"ino", b"index", b"new_blkaddr", b"op", b"type"];
    let mut descriptor = message(&[(1, B(b"f2fs_submit_page_write"))]);
    for (number, name) in (1..).zip(names) {
        let field = message(&[(1, B(name)), (3, N(number))]);
        descriptor.extend(message(&[(2, B(&field))]));
    }
    message(&[(1, N(65_536)), (2, B(&descriptor))])
}

/// f2fs on the whole disk. The buffer of CPU 1, which has what comes first, is read after that of CPU 0.
fn phone() -> Vec<Vec<u8>> {
    let path = generic(
        150,
        b"f2fs_datawrite_start",
        &[
            (b"pathbuf", B(b"/app/a.db")),
            (b"offset", N(4096)),
            (b"bytes", N(8192)),
            (b"ino", N(9)),
        ],
    );
    let begin = event(
        140,
        71,
        271,
        &[(1, N(DEV)), (2, N(9)), (3, N(4096)), (4, N(8192))],
    );
    let page = |time_ns, index, block| {
        let fields = [
            (1, N(DEV)),
            (2, N(9)),
            (3, N(index)),
            (4, N(block)),
            (5, N(1)),
            (6, N(0)),
        ];
        event(time_ns, 71, 65_536, &fields)
    };
    let descriptor = page_descriptor();
    let compressed = {
        let of = bundle(
            1,
            &[&begin, &path, &page(160, 1, 0x200), &page(170, 2, 0x201)],
            &[(11, B(&descriptor))],
        );
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&trace(&[of])).unwrap();
        message(&[(50, B(&zlib.finish().unwrap()))])
    };
    let process = message(&[(1, N(70)), (3, B(b"com.example.camera")), (5, N(10_123))]);
    let thread = message(&[(1, N(71)), (3, N(70))]);
    let tree = message(&[(1, B(&process)), (2, B(&thread))]);
    let package = message(&[(1, B(b"com.example.camera")), (2, N(10_123))]);
    let clock = |id, ns| message(&[(1, N(id)), (2, N(ns))]);
    let clocks = message(&[
        (1, B(&clock(6, 100))),
        (1, B(&clock(1, 1_700_000_000_000_000_000))),
    ]);
    let stats = |phase, overrun| {
        let cpu = message(&[(1, N(0)), (3, N(overrun))]);
        message(&[(34, B(&message(&[(1, N(phase)), (2, B(&cpu))])))])
    };
    vec![
        message(&[(6, B(&clocks))]),
        stats(1, 5),
        bundle(0, &[&queued(200), &issued(210), &completed(900, 0)], &[]),
        compressed,
        message(&[(2, B(&tree))]),
        message(&[(47, B(&message(&[(1, B(&package))])))]),
        stats(2, 12),
    ]
}

#[test]
fn a_phones_trace_has_files_processes_and_losses() {
    let bytes = trace(&phone());
    let told = made(&[&bytes], None).unwrap();
    assert_eq!(told.completions, [(900, Some(200), 4096, 8192, Some(71))]);
    assert_eq!(told.manifest.device.dev, "259:300");
    assert_eq!(told.manifest.losses["events_tracefs"], 7);
    assert_eq!(
        told.manifest.begin_unix_ns(),
        Some(1_700_000_000_000_000_100)
    );
    let (submitters, found) = files(&bytes);
    assert_eq!(submitters, [(71, 70)]);
    let file = |sector, offset| (sector, 4096, 9, offset, "/app/a.db".to_owned(), false);
    assert_eq!(found, [file(4096, 4096), file(4104, 8192)]);

    let dir = tempfile::tempdir().unwrap();
    let (path, bundle) = (dir.path().join("t"), dir.path().join("x.most"));
    fs::write(&path, &bytes).unwrap();
    import(
        &[path],
        &Choice::default(),
        &Writer::create(&bundle).unwrap(),
    )
    .unwrap();
    let bundle = Bundle::open(&bundle).unwrap();
    assert_eq!(
        bundle.packages().unwrap().unwrap().text(),
        b"com.example.camera 10123\n"
    );
    let mut comms = bundle.table(layout::COMM, false).unwrap().unwrap();
    let mostrace_bundle::entry::Entry::Comm(comm) = comms.next().unwrap().unwrap() else {
        panic!("no name");
    };
    assert_eq!(
        (comm.tgid.get(), &comm.comm[..]),
        (70, &b".example.camera\0"[..])
    );
}

#[test]
fn a_loss_without_a_number_is_said() {
    let events = [queued(200), issued(210), completed(900, -5)];
    let events = events.each_ref().map(Vec::as_slice);
    let incomplete = |packets: &[Vec<u8>]| {
        let notes = made(&[&trace(packets)], None).unwrap().notes;
        notes.iter().any(|note| note.starts_with("INCOMPLETE"))
    };
    assert!(!incomplete(&[bundle(0, &events, &[])]));
    assert!(incomplete(&[bundle(0, &events, &[(3, N(1))])]));
    let dropped = |mut packet: Vec<u8>| {
        packet.extend(message(&[(42, N(1))]));
        packet
    };
    // What was dropped ahead of the trace's beginning is no part of it.
    assert!(!incomplete(&[dropped(bundle(0, &events, &[]))]));
    assert!(incomplete(&[
        bundle(0, &events, &[]),
        dropped(bundle(1, &[], &[]))
    ]));
}

#[test]
fn damage_is_named_and_what_is_cut_is_left_out() {
    let whole = trace(&phone());
    let cut = made(&[&whole[..whole.len() - 3]], None).unwrap();
    assert_eq!(cut.completions.len(), 1);
    assert!(cut.notes.iter().any(|note| note.contains("ends within")));
    let mut damaged = trace(&[phone(), vec![b"\x0a\x7f".to_vec()]].concat());
    let error = made(&[&damaged], None).err().unwrap();
    let at = damaged.len() - 2;
    assert_eq!(
        error,
        format!("0.txt, byte {at}: a field of this packet is damaged")
    );
    damaged.push(b'x');
    assert!(made(&[&damaged], None).is_err());
    // No text is taken for such a trace, nor is a packet without end.
    for other in [
        &b"\n# hello\n"[..],
        b"\n\n\n\n",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ] {
        let error = made(&[other], None).err().unwrap();
        assert!(error.starts_with("0.txt: no trace of a kind"), "{error}");
    }
}

proptest! {
    /// A few bytes are replaced, inserted or removed.
    #[test]
    fn no_damage_makes_the_reader_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..6),
    ) {
        let mut bytes = trace(&phone());
        for (place, byte, how) in edits {
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => drop(bytes.remove(place)),
            }
        }
        if let Err(error) = made(&[&bytes], None) {
            prop_assert!(!error.contains('\n'));
        }
    }
}
