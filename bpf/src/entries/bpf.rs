// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own probes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use libbpf_rs::RingBuffer;

use super::{Counts, EntrySource, Tables};
use crate::error::{Error, Result};
use crate::probes::EntryLinks;

/// What the ring buffer's callback leaves for [`BpfEntries::poll`].
pub(crate) struct Sink {
    tables: Tables,
    error: Option<Error>,
}

impl Sink {
    pub(crate) fn new(tables: Tables) -> Sink {
        Sink {
            tables,
            error: None,
        }
    }

    /// Takes one record of the ring buffer. Anything but 0 ends the consumption.
    pub(crate) fn take(&mut self, data: &[u8]) -> i32 {
        match self.tables.take(data) {
            Ok(true) => return 0,
            Ok(false) => self.error = Some(Error::bpf("an entry of unknown type")),
            Err(e) => self.error = Some(e),
        }
        -1
    }
}

/// The attached probes' entries.
pub(crate) struct BpfEntries {
    links: EntryLinks,
    ring: RingBuffer<'static>,
    sink: Rc<RefCell<Sink>>,
}

impl BpfEntries {
    pub(crate) fn new(
        links: EntryLinks,
        ring: RingBuffer<'static>,
        sink: Rc<RefCell<Sink>>,
    ) -> BpfEntries {
        BpfEntries { links, ring, sink }
    }
}

impl EntrySource for BpfEntries {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn poll(&mut self) -> Result<()> {
        let consumed = self.ring.consume();
        let mut sink = self.sink.borrow_mut();
        if let Some(e) = sink.error.take() {
            return Err(e);
        }
        consumed.map_err(Error::bpf)?;
        sink.tables.flush()
    }

    fn counts(&self) -> Counts {
        self.sink.borrow().tables.counts()
    }

    fn stop(&mut self) -> Result<()> {
        self.links = EntryLinks::default();
        self.poll()
    }

    /// Counted with the probes' own.
    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        Ok(BTreeMap::new())
    }
}
