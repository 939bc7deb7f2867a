// SPDX-License-Identifier: MIT OR Apache-2.0
//! The samples are older than the table of the command's processes: this makes one of the processes that have calls.

use std::collections::BTreeMap;

use mostrace_bundle::entry::{Entry, Flags, NONE, RawFork, RawHead, TYPE_FORK, fork_flags};
use mostrace_bundle::layout;
use mostrace_bundle::table::{TableReader, header};
use serde_json::Value;
use zerocopy::IntoBytes;

/// Adds the table if there is none, and declares that others could write to the filesystem, so that limits use it. Each
/// process has started the one that called next, but every third number belongs to another process by then.
pub fn add(files: &mut BTreeMap<String, Vec<u8>>) {
    let (Some(calls), None) = (files.get(layout::CALL), files.get(layout::FORK)) else {
        return;
    };
    let mut table = header().to_vec();
    let mut seen: Vec<u32> = Vec::new();
    for entry in TableReader::new(&calls[..], layout::CALL.as_ref(), true).unwrap() {
        let Ok(Entry::Call(call)) = entry else {
            continue;
        };
        let tgid = call.tgid.get();
        if seen.contains(&tgid) {
            continue;
        }
        let parent = seen.last().copied().unwrap_or(1);
        seen.push(tgid);
        let before_ns = call.start_ns.get().saturating_sub(1);
        table.extend(fork(tgid, parent, before_ns, fork_flags::OF_COMMAND).as_bytes());
        if seen.len().is_multiple_of(3) {
            let after_ns = call.head.time_ns.get();
            table.extend(fork(tgid, 1, after_ns, Flags(0)).as_bytes());
        }
    }
    files.insert(layout::FORK.into(), table);
    let Some(bytes) = files.get_mut(layout::MANIFEST) else {
        return;
    };
    let mut manifest: Value = serde_json::from_slice(bytes).unwrap();
    if let Some(command) = manifest["command"].as_object_mut() {
        command.insert("pid".into(), seen.first().copied().into());
        command.insert("alone".into(), false.into());
    }
    *bytes = manifest.to_string().into_bytes();
}

fn fork(tgid: u32, parent: u32, time_ns: u64, flags: Flags) -> RawFork {
    RawFork {
        head: RawHead {
            kind: TYPE_FORK.into(),
            size: 40.into(),
            time_ns: time_ns.into(),
            sector: NONE.into(),
            flags,
            ..RawHead::default()
        },
        tgid: tgid.into(),
        parent: parent.into(),
    }
}
