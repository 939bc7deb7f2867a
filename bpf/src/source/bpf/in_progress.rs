// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the calls that were in progress when the recording ended: the probes make the entry of a call when it returns.

use libbpf_rs::{MapCore, MapFlags};
use mostrace_bundle::entry::{CallKind, NONE, RawCall, RawHead, TYPE_CALL, call_flags};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Error, Result};
use crate::machine::clock;

/// Number of calls that are read from the kernel at once.
const BATCH: u32 = 256;

/// The beginning of `struct call` of current.bpf.h.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Call {
    entry: RawCall,
    is_ours: u8,
}

/// Returns the entries of those calls of a table that change contents and involve the traced filesystem.
///
/// # Errors
/// Returns an error if the kernel does not give the table.
pub(super) fn entries(calls: &dyn MapCore) -> Result<Vec<Vec<u8>>> {
    let now_ns = clock::now().start_mono_ns;
    let mut entries = Vec::new();
    let all = calls.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY);
    for (_, call) in all.map_err(Error::bpf)? {
        let (call, _) =
            Call::read_from_prefix(&call).map_err(|_| Error::bpf("a call of another size"))?;
        let entry = (call.is_ours != 0).then(|| in_progress(&call.entry, now_ns));
        entries.extend(entry.flatten().map(|entry| entry.as_bytes().to_vec()));
    }
    Ok(entries)
}

/// Returns the entry of a call in progress, if it changes contents and has no entry yet. How much a write has written, and where, is not known.
fn in_progress(call: &RawCall, now_ns: u64) -> Option<RawCall> {
    if call.head.flags.has(call_flags::OPEN_END) {
        return None;
    }
    let (offset, bytes) = match CallKind::of(call.kind.get()) {
        CallKind::Write | CallKind::Splice => (NONE.into(), 0.into()),
        CallKind::Truncate | CallKind::Fallocate => (call.offset, call.bytes),
        _ => return None,
    };
    let size = u16::try_from(size_of::<RawCall>()).ok()?;
    Some(RawCall {
        head: RawHead {
            kind: TYPE_CALL.into(),
            size: size.into(),
            time_ns: now_ns.into(),
            sector: NONE.into(),
            flags: call_flags::OPEN_END,
            ..RawHead::default()
        },
        offset,
        bytes,
        result: 0.into(),
        ..*call
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_contents_is_told() {
        let call = |kind: CallKind| RawCall {
            kind: (kind as u16).into(),
            offset: 4096.into(),
            bytes: 8192.into(),
            ..RawCall::default()
        };
        let told =
            |kind| in_progress(&call(kind), 10).map(|told| (told.offset.get(), told.bytes.get()));
        assert_eq!(told(CallKind::Write), Some((NONE, 0)));
        assert_eq!(told(CallKind::Splice), Some((NONE, 0)));
        assert_eq!(told(CallKind::Fallocate), Some((4096, 8192)));
        assert_eq!(told(CallKind::Fsync), None);
        assert_eq!(told(CallKind::Other), None);
    }
}
