// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own probes, where the kernel has no block tracer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use libbpf_rs::{Link, RingBuffer};

use super::{CpuFiles, EventSource};
use crate::error::{Error, Result};

/// `struct block_record` of blockevents.bpf.h: type, size, 4 bytes of padding, then the record.
const HEAD: usize = 8;

/// What the ring buffer's callback leaves for [`BpfEvents::poll`].
#[derive(Debug)]
pub(crate) struct Sink {
    out: CpuFiles,
    error: Option<Error>,
}

impl Sink {
    pub(crate) fn new(out: CpuFiles) -> Sink {
        Sink { out, error: None }
    }

    /// Takes one `struct block_record`. Anything but 0 ends the consumption.
    pub(crate) fn take(&mut self, data: &[u8]) -> i32 {
        match self.push(data) {
            Ok(()) => 0,
            Err(e) => {
                self.error = Some(e);
                -1
            }
        }
    }

    fn push(&mut self, data: &[u8]) -> Result<()> {
        let malformed = || Error::bpf("malformed block record");
        let size = data
            .get(2..4)
            .map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])))
            .ok_or_else(malformed)?;
        let mut record = data
            .get(HEAD..HEAD + size)
            .filter(|r| r.len() >= 48)
            .ok_or_else(malformed)?
            .to_vec();
        let number = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let (pid, cpu) = (number(32), number(40));
        self.out.push(cpu, pid, &mut record)
    }
}

/// The running probes' event stream.
pub(crate) struct BpfEvents {
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    sink: Rc<RefCell<Sink>>,
}

impl BpfEvents {
    pub(crate) fn new(
        links: Vec<Link>,
        ring: RingBuffer<'static>,
        sink: Rc<RefCell<Sink>>,
    ) -> BpfEvents {
        BpfEvents { links, ring, sink }
    }
}

impl EventSource for BpfEvents {
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
        sink.out.flush()
    }

    fn events(&self) -> u64 {
        self.sink.borrow().out.events()
    }

    fn stop(&mut self) -> Result<()> {
        self.links.clear();
        self.poll()
    }

    /// Counted with the probes' own.
    fn losses(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}
