// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the requests that were issued and never completed, from a recording's event files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::{Folder, Zones};

use super::event_files_in;
use super::event_reader::EventReader;
use super::in_flight::{InFlight, Step};
use crate::error::Result;

/// Counts the requests in the event files in `folder`, of a disk with these zones.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub(crate) fn count(folder: &Folder, zones: Zones) -> Result<u64> {
    let names = event_files_in(folder)?;
    let mut files = names
        .iter()
        .map(|name| EventReader::open(folder, name))
        .collect::<Result<Vec<_>>>()?;
    let mut heads = BinaryHeap::new();
    for (index, file) in files.iter_mut().enumerate() {
        heads.extend(next(file)?.map(|head| Reverse((head.0, index, head.1))));
    }
    let mut requests = InFlight::of(zones);
    while let Some(Reverse((_, index, step))) = heads.pop() {
        requests.step(step);
        if let Some(file) = files.get_mut(index) {
            heads.extend(next(file)?.map(|head| Reverse((head.0, index, head.1))));
        }
    }
    Ok(requests.count())
}

/// Returns the next event that is not a note, and its time.
fn next(file: &mut EventReader) -> Result<Option<(u64, Step)>> {
    let step = |event: &Event<'_>| (event.time_ns, Step::of(event), event.is_note());
    while let Some((time_ns, step, is_note)) = file.next(step)? {
        if !is_note {
            return Ok(Some((time_ns, step)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use mostrace_bundle::blk_io_trace::action::{BLK_TC_FS, BLK_TC_WRITE, ta};
    use mostrace_bundle::blk_io_trace::{Event, Layout, Version, encode};
    use mostrace_bundle::layout;

    use super::*;

    fn count_in(dir: &Path) -> u64 {
        count(&Folder::open(dir).unwrap(), Zones::default()).unwrap()
    }

    fn put(dir: &Path, cpu: u32, events: &[(u64, u64, u64)]) {
        let v7 = Layout {
            version: Version::V7,
            big_endian: false,
        };
        let mut bytes = Vec::new();
        for &(time_ns, act, sector) in events {
            let event = Event {
                time_ns,
                sector,
                bytes: 4096,
                action: act | BLK_TC_FS | BLK_TC_WRITE,
                ..Event::default()
            };
            encode(&event, v7, &mut bytes).unwrap();
        }
        fs::write(dir.join(layout::trace_of_cpu(cpu)), bytes).unwrap();
    }

    #[test]
    fn cpus_are_read_in_the_order_of_time() {
        let dir = tempfile::tempdir().unwrap();
        put(
            dir.path(),
            0,
            &[(1, ta::ISSUE, 8), (3, ta::ISSUE, 8), (6, ta::ISSUE, 16)],
        );
        assert_eq!(count_in(dir.path()), 3);
        put(dir.path(), 3, &[(2, ta::COMPLETE, 8), (5, ta::COMPLETE, 8)]);
        assert_eq!(count_in(dir.path()), 1);
    }

    #[test]
    fn long_files_are_read_in_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let many = (0..100_000).map(|i| (i, [ta::ISSUE, ta::COMPLETE][i as usize % 2], i / 2 * 8));
        let mut many: Vec<_> = many.collect();
        many.pop();
        put(dir.path(), 0, &many);
        assert_eq!(count_in(dir.path()), 1);
    }
}
