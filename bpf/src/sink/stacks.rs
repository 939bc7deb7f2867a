// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stacks that calls and handles refer to by number. The table of each segment has those that its entries refer to, each
//! ahead of the first of them.

use std::collections::{HashMap, HashSet};

use mostrace_bundle::entry::stack::RawStack;
use mostrace_bundle::entry::{RawHead, TYPE_CALL, TYPE_HANDLE};
use zerocopy::FromBytes;

use super::Retention;
/// The most stacks that are kept; at one more, those so far are forgotten. The probes tell a stack again after some seconds.
const STACKS: usize = 1 << 14;

/// The stacks of a recording.
pub(super) struct Stacks {
    retention: Retention,
    /// The entries that the table may still need, by number.
    kept: HashMap<u64, Vec<u8>>,
    /// The stacks in the segment's table.
    written: HashSet<u64>,
}

impl Stacks {
    /// Keeps nothing yet.
    pub fn new(retention: Retention) -> Stacks {
        Stacks {
            retention,
            kept: HashMap::new(),
            written: HashSet::new(),
        }
    }

    /// Returns true if the stack of this number is known.
    pub fn knows(&self, id: u64) -> bool {
        self.written.contains(&id) || self.kept.contains_key(&id)
    }

    /// Keeps the entry of a stack.
    pub fn learn(&mut self, stack: &[u8]) {
        let Ok((RawStack { id, .. }, _)) = RawStack::ref_from_prefix(stack) else {
            return;
        };
        if self.kept.len() >= STACKS {
            self.kept.clear();
        }
        self.kept.insert(id.get(), stack.to_vec());
    }

    /// Returns the stack that the entry of a call or a handle refers to, if the segment's table does not have it yet.
    pub fn news(&mut self, entry: &[u8]) -> Option<Vec<u8>> {
        // The sectors of other entries are those of blocks.
        let (head, _) = RawHead::ref_from_prefix(entry).ok()?;
        let (refers, id) = (
            matches!(head.kind.get(), TYPE_CALL | TYPE_HANDLE),
            head.sector.get(),
        );
        if !refers || self.written.contains(&id) {
            return None;
        }
        let stack = match self.retention.room(1) {
            0 => self.kept.remove(&id)?,
            _ => self.kept.get(&id)?.clone(),
        };
        self.written.insert(id);
        Some(stack)
    }

    /// Begins a segment, whose table is empty.
    pub fn begin_segment(&mut self) {
        self.written.clear();
    }
}
