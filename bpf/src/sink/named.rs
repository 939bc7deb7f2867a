// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that an entry names.

use mostrace_bundle::entry::{
    RawCall, RawDirtier, RawF2fs, RawHandle, RawProcess, RawServed, TYPE_CALL, TYPE_DIRTIER,
    TYPE_F2FS, TYPE_HANDLE, TYPE_PROCESS, TYPE_SERVED,
};
use zerocopy::FromBytes;

use super::tables::kind_of;

/// A thread with its process and user; each may be `UNKNOWN_ID`.
#[derive(Clone, Copy)]
pub(super) struct NamedThread {
    pub pid: u32,
    pub tgid: u32,
    pub uid: u32,
}

/// Returns the thread of an entry that has one; of a served request, the thread that asked for it.
#[inline]
pub(super) fn of(entry: &[u8]) -> Option<NamedThread> {
    macro_rules! named {
        ($raw:ty, $pid:ident, $tgid:ident, $uid:ident) => {
            <$raw>::ref_from_prefix(entry)
                .ok()
                .map(|(raw, _)| NamedThread {
                    pid: raw.$pid.get(),
                    tgid: raw.$tgid.get(),
                    uid: raw.$uid.get(),
                })
        };
    }
    match kind_of(entry)? {
        TYPE_PROCESS => named!(RawProcess, pid, tgid, uid),
        TYPE_DIRTIER => named!(RawDirtier, pid, tgid, uid),
        TYPE_HANDLE => named!(RawHandle, pid, tgid, uid),
        TYPE_CALL => named!(RawCall, pid, tgid, uid),
        TYPE_F2FS => named!(RawF2fs, pid, tgid, uid),
        TYPE_SERVED => named!(RawServed, for_pid, for_tgid, for_uid),
        _ => None,
    }
}
