// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls, and which of them a request came of.

use std::collections::HashMap;
use std::fs::File;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, EntryRef};
use mostrace_bundle::table::TableReader;

/// Bytes of a page: what calls and requests are held against each other by.
const PAGE: u64 = 4096;
/// Pages of one call that are noted; of a longer one, its first ones.
const MOST_PAGES: u64 = 4096;

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    pub kind: CallKind,
    pub pid: u32,
    pub tgid: u32,
    pub comm: Box<[u8]>,
    pub inode: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
}

/// All calls of a trace, in the order of their returns, and where they can be found.
#[derive(Default)]
pub struct Calls {
    pub list: Vec<Call>,
    /// Those that wrote a page of a file: their places in the list.
    by_page: HashMap<(u64, u64), Vec<usize>, foldhash::fast::RandomState>,
    /// Those of a thread on a file.
    by_thread: HashMap<(u32, u64), Vec<usize>, foldhash::fast::RandomState>,
}

impl Calls {
    /// Reads the table.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(table: &mut TableReader<File>) -> Result<Calls, Error> {
        let mut calls = Calls::default();
        while let Some(entry) = table.next_if(|_| true)? {
            let EntryRef::Call(raw) = entry else { continue };
            let kind = CallKind::of(raw.kind.get());
            let at = calls.list.len();
            let (inode, bytes) = (raw.ino.get(), raw.bytes.get());
            if matches!(kind, CallKind::Write | CallKind::Splice)
                && let Some(end) = raw.offset.get().checked_add(bytes)
            {
                let first = raw.offset.get() / PAGE;
                for page in (first..end.div_ceil(PAGE)).take(MOST_PAGES as usize) {
                    calls.by_page.entry((inode, page)).or_default().push(at);
                }
            }
            let thread = (raw.pid.get(), inode);
            calls.by_thread.entry(thread).or_default().push(at);
            calls.list.push(Call {
                kind,
                pid: raw.pid.get(),
                tgid: raw.tgid.get(),
                comm: raw
                    .comm
                    .split(|&b| b == 0)
                    .next()
                    .unwrap_or_default()
                    .into(),
                inode,
                start_ns: raw.start_ns.get(),
                end_ns: raw.head.time_ns.get(),
                bytes,
            });
        }
        Ok(calls)
    }

    /// The last call that wrote a page of the file and was made before then.
    pub fn wrote(&self, inode: u64, offset: u64, before_ns: u64) -> Option<usize> {
        let calls = self.by_page.get(&(inode, offset / PAGE))?;
        let is_before = |&&at: &&usize| self.list[at].start_ns <= before_ns;
        calls.iter().rev().find(is_before).copied()
    }

    /// The last call of a thread that did this to a file and was made before then.
    pub fn did(&self, pid: u32, operation: &str, inode: u64, before_ns: u64) -> Option<usize> {
        let calls = self.by_thread.get(&(pid, inode))?;
        let is = |&&at: &&usize| {
            let call = &self.list[at];
            call.start_ns <= before_ns && does(call.kind, operation)
        };
        calls.iter().rev().find(is).copied()
    }
}

/// Whether such a call does what a cause is said to have done.
fn does(kind: CallKind, operation: &str) -> bool {
    match operation {
        "create" => matches!(kind, CallKind::Open | CallKind::Link),
        "mkdir" => kind == CallKind::Mkdir,
        "unlink" => kind == CallKind::Unlink,
        "rename" => kind == CallKind::Rename,
        "truncate" => matches!(kind, CallKind::Truncate | CallKind::Open),
        "allocate" => matches!(
            kind,
            CallKind::Write | CallKind::Splice | CallKind::Fallocate
        ),
        "write" | "time" => matches!(kind, CallKind::Write | CallKind::Splice),
        "xattr" => kind == CallKind::Xattr,
        _ => false,
    }
}
