// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of processes when a recording begins.

use mostrace_bundle::entry::{Flags, NONE, RawComm, RawHead, TYPE_COMM};
use zerocopy::IntoBytes;

use crate::error::Result;
use crate::machine::processes;
use crate::sink::Sink;

/// Makes the tables of entries, and passes on the names that processes have now. The source reports later names from an earlier time
/// on. Messages about entries name `from`.
///
/// # Errors
/// Returns an error if the bundle cannot be written.
pub(super) fn open_entries(sink: &mut Sink, from: &str) -> Result<()> {
    sink.open_entries(from)?;
    for named in processes::named() {
        let entry = entry(named.tgid, named.time_ns, Flags(0), &named.comm);
        sink.push_entry(entry.as_bytes())?;
    }
    Ok(())
}

/// Makes the entry of a process's name, of which the first 15 bytes count.
pub(super) fn entry(tgid: u32, time_ns: u64, flags: Flags, name: &[u8]) -> RawComm {
    RawComm {
        head: RawHead {
            kind: TYPE_COMM.into(),
            size: (size_of::<RawComm>() as u16).into(),
            time_ns: time_ns.into(),
            sector: NONE.into(),
            flags,
            ..RawHead::default()
        },
        tgid: tgid.into(),
        pad: 0.into(),
        comm: processes::comm_of(name),
    }
}
