// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dirtiers of pages that another task submitted.

use super::*;

const BLOCK: u32 = 4096;

/// Sector, bytes, submitter's pid, dirtier's pid, and when the page became dirty (ns).
type Brief = (u64, u32, Option<u32>, Option<u32>, Option<u64>);

fn rows(a: &Attributed) -> Vec<Brief> {
    let row = |r: &Row| {
        let (submitter, dirtier) = (a.process(r).pid, a.dirtier(r).pid);
        (r.sector, r.bytes, submitter, dirtier, r.dirty_ns)
    };
    a.rows.iter().map(row).collect()
}

fn of_one_write(bytes: u32, dirtiers: Vec<RawDirtier>) -> Attributed {
    let files = vec![file(0, 24, bytes, "f")];
    let write = write(0, 24, bytes);
    attribute_with(&[write], vec![process(0, 24, bytes)], files, dirtiers, None)
}

fn at(dirty_ns: u64, entry: RawDirtier) -> RawDirtier {
    RawDirtier {
        dirty_ns: dirty_ns.into(),
        ..entry
    }
}

#[test]
fn a_write_knows_who_dirtied_and_who_submitted() {
    let a = of_one_write(BLOCK, vec![at(3, dirtier(0, 24, BLOCK, 31))]);
    assert_eq!(rows(&a), [(24, BLOCK, Some(7), Some(31), Some(3))]);
    let who = a.dirtier(&a.rows[0]);
    assert_eq!((who.tgid, who.uid), (Some(31), Some(1000)));
    assert_eq!(who.comm.as_deref(), Some(&b"writer"[..]));
}

/// If the kernel skipped probes, another task may have dirtied what was written once already.
#[test]
fn a_dirtier_of_an_earlier_write_is_doubted_if_probes_were_skipped() {
    let again = RawDirtier {
        head: RawHead {
            flags: Flags::AGAIN,
            ..dirtier(0, 24, BLOCK, 31).head
        },
        ..dirtier(0, 24, BLOCK, 31)
    };
    for (entry, misses, expected) in [
        (again, 0, Some(31)),
        (again, 1, None),
        (dirtier(0, 24, BLOCK, 31), 1, Some(31)),
    ] {
        let files = vec![file(0, 24, BLOCK, "f")];
        let (writes, bios) = ([write(0, 24, BLOCK)], vec![process(0, 24, BLOCK)]);
        let a = attribute_missing(&writes, bios, files, vec![entry], None, misses);
        assert_eq!(a.dirtier(&a.rows[0]).pid, expected, "{misses} misses");
    }
}

#[test]
fn rows_split_where_the_dirtier_changes() {
    let dirtiers = vec![
        at(3, dirtier(0, 24, BLOCK, 31)),
        at(4, dirtier(0, 32, 2 * BLOCK, 32)),
    ];
    let a = of_one_write(4 * BLOCK, dirtiers);
    assert_eq!(
        rows(&a),
        [
            (24, BLOCK, Some(7), Some(31), Some(3)),
            (32, 2 * BLOCK, Some(7), Some(32), Some(4)),
            (48, BLOCK, Some(7), None, None),
        ]
    );
    // The file is still one, byte after byte.
    let offsets: Vec<_> = a.rows.iter().map(|r| r.file_offset).collect();
    assert_eq!(offsets, [Some(0), Some(4096), Some(12288)]);
    assert_eq!(a.names.leftovers.dirtier_entries, 0);
}

#[test]
fn runs_of_the_same_dirtier_are_one_row() {
    let dirtiers = vec![
        at(3, dirtier(0, 24, BLOCK, 31)),
        at(1, dirtier(0, 32, BLOCK, 31)),
    ];
    let a = of_one_write(2 * BLOCK, dirtiers);
    // The time is the first page's, not the oldest one's.
    assert_eq!(rows(&a), [(24, 2 * BLOCK, Some(7), Some(31), Some(3))]);
}

#[test]
fn a_page_within_a_run_has_its_dirtier_and_no_time() {
    let mut second = write(0, 32, BLOCK);
    second.time_ns += 5000;
    let a = attribute_with(
        &[write(0, 24, BLOCK), second],
        vec![process(0, 24, 2 * BLOCK)],
        vec![],
        vec![at(3, dirtier(0, 24, 2 * BLOCK, 31))],
        None,
    );
    assert_eq!(
        rows(&a),
        [
            (24, BLOCK, Some(7), Some(31), Some(3)),
            (32, BLOCK, Some(7), Some(31), None),
        ]
    );
}

#[test]
fn each_write_of_a_sector_has_its_own_dirtier() {
    let writes = [
        write(0, 24, BLOCK),
        write(1000, 24, BLOCK),
        write(2000, 24, BLOCK),
    ];
    // Nobody was seen to dirty the second write; the entry of another time does not take its place.
    let dirtiers = vec![dirtier(0, 24, BLOCK, 31), dirtier(2000, 24, BLOCK, 32)];
    let a = attribute_with(&writes, vec![], vec![], dirtiers, None);
    let pids: Vec<_> = a.rows.iter().map(|r| a.dirtier(r).pid).collect();
    assert_eq!(pids, [Some(31), None, Some(32)]);
}

#[test]
fn an_entry_of_no_completion_is_left_over() {
    let a = of_one_write(BLOCK, vec![dirtier(0, 32, BLOCK, 31)]);
    assert_eq!(rows(&a), [(24, BLOCK, Some(7), None, None)]);
    assert_eq!(a.names.leftovers.dirtier_entries, 1);
}

#[test]
fn a_dirtier_does_not_stand_in_for_a_submitter() {
    // Thread 7 queued the bio without an entry; the thread that was 7 when the page was dirtied may be another.
    let a = attribute_with(
        &[write(0, 24, BLOCK)],
        vec![],
        vec![],
        vec![dirtier(0, 24, BLOCK, 7)],
        None,
    );
    let row = &a.rows[0];
    assert_eq!((a.process(row).pid, a.process(row).tgid), (Some(7), None));
    assert_eq!(a.dirtier(row).tgid, Some(7));
}
