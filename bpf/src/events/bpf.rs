// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own probes, where the kernel has no block tracer.

use std::collections::BTreeMap;

use mostrace_bundle::Folder;
use mostrace_bundle::blk_io_trace::BlkIoTrace;
use zerocopy::{FromBytes, LE};

use super::{CpuFiles, EventSource};
use crate::error::{Error, Result};
use crate::probes::{Probes, Stream};

/// `struct block_record` of blockevents.bpf.h: type, size, 4 bytes of padding, then the record.
const HEAD: usize = 8;

/// The attached probes' block events.
pub(crate) struct BpfEvents {
    stream: Stream<CpuFiles>,
}

impl BpfEvents {
    /// Attaches the probes, into per-CPU files in `folder`.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn start(probes: &Probes<'_>, folder: &Folder) -> Result<BpfEvents> {
        let stream = probes.events(CpuFiles::new(folder), take)?;
        Ok(BpfEvents { stream })
    }
}

/// Takes one `struct block_record`.
fn take(out: &mut CpuFiles, data: &[u8]) -> Result<()> {
    let malformed = || Error::bpf("malformed block record");
    let size = data
        .get(2..4)
        .map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])))
        .ok_or_else(malformed)?;
    let mut record = data.get(HEAD..HEAD + size).ok_or_else(malformed)?.to_vec();
    let (event, _) = BlkIoTrace::<LE>::ref_from_prefix(&record).map_err(|_| malformed())?;
    let (cpu, pid) = (event.cpu.get(), event.pid.get());
    out.push(cpu, pid, &mut record)
}

impl EventSource for BpfEvents {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn poll(&mut self) -> Result<()> {
        self.stream.drain()?;
        self.stream.sink_mut().flush()
    }

    fn events(&self) -> u64 {
        self.stream.sink().events()
    }

    fn stop(&mut self) -> Result<()> {
        self.stream.detach();
        self.poll()
    }

    /// Counted with the probes' own.
    fn losses(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}
