// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own probes.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use mostrace_bundle::Folder;
use mostrace_bundle::entry::RawHead;
use zerocopy::FromBytes;

use super::{Counts, Cut, EntrySource, Tables};
use crate::cut::Ends;
use crate::error::{Error, Result};
use crate::names::NameFilter;
use crate::probes::{Probes, Stream, Teller};

/// The attached probes' entries.
pub(crate) struct BpfEntries {
    stream: Stream<Tables>,
    teller: Option<Teller>,
}

impl BpfEntries {
    /// Attaches the probes, into tables in `folder`.
    ///
    /// # Errors
    /// The kernel refuses them, or the bundle cannot be written.
    pub fn start(
        probes: &Probes<'_>,
        folder: &Folder,
        names: NameFilter,
        is_cut: bool,
    ) -> Result<BpfEntries> {
        let tables = Tables::create(folder, names, "BPF probes", is_cut)?;
        let stream = probes.attach(tables, take)?;
        let teller = Some(probes.teller()?);
        Ok(BpfEntries { stream, teller })
    }
}

/// A record of the ring holds the entries of a bio, one after the other.
fn take(tables: &mut Tables, record: &[u8]) -> Result<()> {
    let mut rest = record;
    while let Some((entry, after)) = split_entry(rest) {
        if !tables.take(entry)? {
            return Err(Error::bpf("an entry of unknown type"));
        }
        rest = after;
    }
    match rest {
        [] => Ok(()),
        _ => Err(Error::bpf("an entry of no size")),
    }
}

/// The first entry, by the size that it states, and what follows; None if it states none.
fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, _) = RawHead::ref_from_prefix(bytes).ok()?;
    let size = usize::from(head.size.get());
    bytes.split_at_checked(size).filter(|_| size > 0)
}

impl EntrySource for BpfEntries {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.bell())
    }

    /// Its own thread empties the ring.
    fn rhythm(&self) -> Duration {
        Duration::MAX
    }

    fn teller(&mut self) -> Option<Teller> {
        self.teller.take()
    }

    fn poll(&mut self) -> Result<()> {
        self.stream.drain()?;
        self.stream.sink_mut().flush()
    }

    fn counts(&self) -> Counts {
        self.stream.sink().counts()
    }

    fn cut(&mut self, at_ns: u64, folder: &Folder, ends: Ends) -> Result<Cut> {
        self.stream.sink_mut().keep_from(at_ns);
        self.stream.take_rest()?;
        self.stream.sink_mut().cut(folder, ends)
    }

    fn stop(&mut self) -> Result<()> {
        self.stream.finish()?;
        self.stream.sink_mut().flush()
    }

    /// Counted with the probes' own.
    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        Ok(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_cut_into_its_entries() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let names = NameFilter::parse("all").unwrap();
        let mut tables = Tables::create(&folder, names, "here", false).unwrap();
        let entry = |kind: u16, size: u16| {
            let mut entry = vec![0; usize::from(size)];
            entry[..2].copy_from_slice(&kind.to_ne_bytes());
            entry[2..4].copy_from_slice(&size.to_ne_bytes());
            entry
        };
        let record = [entry(2, 72), entry(4, 72), entry(1, 88)].concat();
        take(&mut tables, &record).unwrap();
        let kept: Vec<u64> = tables.counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [1, 1, 1, 0]);
        let longer = [&record[..], &[0; 4]].concat();
        for bad in [
            &record[..record.len() - 8],
            &longer,
            &entry(99, 32),
            &[0; 40],
        ] {
            assert!(take(&mut tables, bad).is_err(), "{}", bad.len());
        }
    }
}
