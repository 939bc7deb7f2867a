// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever the completions, entries and map are, no byte is lost and none is made up.

use proptest::prelude::*;

use super::*;

/// The numbers are small, so that requests and entries overlap.
fn completions() -> impl Strategy<Value = Vec<Completion<'static>>> {
    let part = (1u32..6, any::<bool>());
    let one = (
        0u64..5,
        0u64..90,
        prop::collection::vec(part, 1..4),
        0u32..3,
        any::<bool>(),
    );
    prop::collection::vec(one, 0..30).prop_map(|all| {
        let mut time = 0;
        all.into_iter()
            .map(|(gap, sector, parts, odd, far)| {
                time += gap * 40;
                let sector = if far { u64::MAX - sector } else { sector };
                let mut at = sector;
                let mut made = Vec::new();
                for (sectors, seen) in parts {
                    // Passthrough requests need not be whole sectors long.
                    let bytes = sectors * 512 - odd;
                    let q_ns = seen.then_some(time * 1000);
                    made.push(Part {
                        sector: at,
                        bytes,
                        q_ns,
                        q_cpu: Some(0),
                        pid: q_ns.map(|_| 7),
                    });
                    at = at.saturating_add(sectors.into());
                }
                let bytes = made.iter().map(|p| p.bytes).sum();
                Completion {
                    parts: made.leak(),
                    ..write(time, sector, bytes)
                }
            })
            .collect()
    })
}

fn processes() -> impl Strategy<Value = Vec<RawProcess>> {
    let one = (0u64..400, 0u64..90, 0u32..20, 0u8..8, 0u8..20, any::<u8>());
    prop::collection::vec(one, 0..40).prop_map(|mut all| {
        all.sort_unstable();
        all.into_iter()
            .map(|(t, sector, sectors, origin, jbd2, flags)| {
                let mut entry = process(t, sector, sectors * 512);
                entry.origin = Origin(origin);
                entry.jbd2 = Jbd2(if jbd2 > 5 { 0 } else { jbd2 });
                entry.home_sector = if flags & 64 == 0 {
                    u64::from(flags)
                } else {
                    NONE
                }
                .into();
                entry.head.flags = Flags(flags);
                entry
            })
            .collect()
    })
}

fn files() -> impl Strategy<Value = Vec<FileEntry>> {
    let one = (
        0u64..400,
        0u64..90,
        0u32..20,
        10u64..15,
        0u32..3,
        "[a-z]{0,2}",
    );
    prop::collection::vec(one, 0..40).prop_map(|mut all| {
        all.sort_unstable();
        all.into_iter()
            .map(|(t, sector, sectors, inode, generation, name)| {
                let mut entry = file(t, sector, sectors * 512, &name);
                entry.raw.ino = inode.into();
                entry.raw.generation = generation.into();
                entry
            })
            .collect()
    })
}

fn dirtiers() -> impl Strategy<Value = Vec<RawDirtier>> {
    let far = prop_oneof![4 => Just(0), 1 => Just(u64::MAX - 90)];
    let one = (0u64..400, 0u64..90, far, 0u32..20, 10u32..13, any::<u8>());
    // The times are not even in order.
    prop::collection::vec(one, 0..40).prop_map(|all| {
        all.into_iter()
            .map(|(t, sector, far, sectors, pid, odd)| {
                let mut entry = dirtier(t, sector + far, sectors * 512, pid);
                entry.head.flags = Flags(odd);
                entry.head.stage = Stage(odd % 5);
                if odd < 16 {
                    entry.head.bytes = u32::MAX.into();
                    entry.dirty_ns = u64::MAX.into();
                }
                entry
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn every_byte_comes_out_once(
        completions in completions(),
        processes in processes(),
        files in files(),
        dirtiers in dirtiers(),
        mapped: bool,
    ) {
        let map = map();
        let map = mapped.then_some(&map);
        let a = attribute_with(&completions, processes, files, dirtiers, map);
        for (request, _, rows) in a.by_request() {
            // The rows are in the order of sectors, without holes.
            let mut at = request.sector;
            for row in rows {
                prop_assert!(row.sector >= at || at == u64::MAX);
                at = row.sector.saturating_add(u64::from(row.bytes).div_ceil(512));
            }
        }
    }

    /// Journal blocks are excepted: such a row's answers are those of its first sector.
    #[test]
    fn who_dirtied_cuts_rows_and_changes_no_other_answer(
        completions in completions(),
        mut processes in processes(),
        files in files(),
        dirtiers in dirtiers(),
    ) {
        processes.iter_mut().for_each(|entry| entry.jbd2 = Jbd2::NONE);
        let map = map();
        let without = attribute(&completions, processes.clone(), files.clone(), Some(&map));
        let with = attribute_with(&completions, processes, files, dirtiers, Some(&map));
        prop_assert_eq!(sectors(&with), sectors(&without));
    }
}

/// Returns each sector's answers in each request, without the dirtier.
fn sectors(a: &Attributed) -> Vec<String> {
    let mut sectors = Vec::new();
    let all = a.by_request().enumerate();
    for (request, row) in all.flat_map(|(n, (_, _, rows))| rows.iter().map(move |row| (n, row))) {
        for n in 0..u64::from(row.bytes).div_ceil(512) {
            let who = (a.process(row), a.file(row), row.stage, row.origin);
            let what = (row.op, row.kind, row.found);
            let place = row.file_offset.map(|offset| offset.saturating_add(n * 512));
            let at = (request, row.sector.wrapping_add(n));
            sectors.push(format!("{at:?} {who:?} {what:?} {place:?}"));
        }
    }
    sectors
}

#[test]
fn parts_that_do_not_cover_are_made_up_for() {
    let part = |sector, bytes| Part {
        sector,
        bytes,
        q_ns: Some(0),
        q_cpu: Some(0),
        pid: Some(7),
    };
    for parts in [
        vec![],
        vec![part(24, 512)],
        vec![part(24, 4096), part(32, 4096)],
    ] {
        let completion = Completion {
            parts: parts.leak(),
            ..write(0, 24, 4096)
        };
        attribute(&[completion], vec![process(0, 24, 4096)], vec![], None);
    }
}
