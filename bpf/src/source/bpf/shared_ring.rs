// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring that the probes of entries and those of block events share. A record of it consists of parts, one after the other, each
//! of which begins with its type and size: a block event, or the entries of a bio, behind the event of its queueing if block events
//! come from probes too. Of a bio that is like an earlier one, there may be a short record instead ([`patterns`](super::patterns)).

use mostrace_bundle::entry::TYPE_LIKE;

use super::block_records::{Records, TYPE_BLOCK};
use super::patterns::Patterns;
use crate::error::{Error, Result};
use crate::sink::{Sink, kind_of, split_entry};

/// Passes a record to the sink, completed if it is short. Block events go through `events`; without it, there must be none.
///
/// # Errors
/// Returns an error if a part is malformed or of an unknown type, or if the bundle cannot be written.
pub(super) fn put(
    record: &[u8],
    mut events: Option<&mut Records>,
    patterns: &mut Patterns,
    sink: &mut Sink,
) -> Result<()> {
    if let Some(events) = &mut events {
        if kind_of(record) == Some(TYPE_LIKE) {
            return patterns.put(record, events, sink);
        }
        patterns.see(record, sink);
    }
    put_parts(record, events, sink)
}

fn put_parts(record: &[u8], mut events: Option<&mut Records>, sink: &mut Sink) -> Result<()> {
    let mut rest = record;
    while let Some((part, behind)) = split_entry(rest) {
        match &mut events {
            Some(events) if kind_of(part) == Some(TYPE_BLOCK) => {
                events.put(part, &mut sink.events)?;
            }
            _ if !sink.push_entry(part)? => {
                return Err(Error::bpf("an entry of unknown type"));
            }
            _ => {}
        }
        rest = behind;
    }
    match rest {
        [] => Ok(()),
        _ => Err(Error::bpf("an entry of no size")),
    }
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::Folder;

    use super::*;
    use crate::sink::{NameFilter, Retention};

    fn part(kind: u16, size: u16) -> Vec<u8> {
        let mut part = vec![0; usize::from(size)];
        part[..2].copy_from_slice(&kind.to_ne_bytes());
        part[2..4].copy_from_slice(&size.to_ne_bytes());
        part
    }

    #[test]
    fn a_record_is_split_into_its_parts() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let names = NameFilter::default();
        let mut sink = Sink::new(&folder, names, Retention::of(false));
        sink.open_entries("here").unwrap();
        let mut events = Records::of(8 << 20);
        let patterns = &mut Patterns::default();
        let entries = [part(2, 72), part(4, 72), part(1, 88)].concat();
        put(&entries, None, patterns, &mut sink).unwrap();
        let queued = [part(TYPE_BLOCK, 48), part(1, 88)].concat();
        put(&queued, Some(&mut events), patterns, &mut sink).unwrap();
        let kept: Vec<u64> = sink.entry_counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [2, 1, 1, 0, 0, 0]);
        assert_eq!(sink.event_count(), 1);
        assert!(
            put(&queued, None, patterns, &mut sink).is_err(),
            "no events"
        );
        let longer = [&entries[..], &[0; 4]].concat();
        for bad in [
            &entries[..entries.len() - 8],
            &longer,
            &part(99, 32),
            &part(TYPE_BLOCK, 32),
            &part(TYPE_BLOCK, 72),
            &part(TYPE_LIKE, 48),
            &[0; 40],
        ] {
            let put = put(bad, Some(&mut events), patterns, &mut sink);
            assert!(put.is_err(), "{}", bad.len());
        }
    }
}
