// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stacks that calls and handles refer to.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::stack::{CUT, Frame, Place, StackRef};
use mostrace_bundle::entry::{EntryRef, NONE};
use mostrace_bundle::table::TableReader;

use super::HashMap;
use crate::tally::Tally;

/// The number of a [`Stack`] in its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// The stack is unknown.
    pub const UNKNOWN: StackId = StackId(0);
}

/// A stack, the innermost frames first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The kernel's functions.
    pub kernel: Vec<String>,
    /// The places in the program's code from which it came into the kernel.
    pub user: Vec<Place>,
    /// True if the program's outermost frames are missing.
    pub is_cut: bool,
}

impl From<StackRef<'_>> for Stack {
    fn from(entry: StackRef<'_>) -> Stack {
        let mut stack = Stack {
            is_cut: entry.raw.head.flags.has(CUT),
            ..Stack::default()
        };
        for frame in entry.frames() {
            match frame {
                Frame::Kernel(function) => stack.kernel.push(function),
                Frame::User(place) => stack.user.push(place),
            }
        }
        stack
    }
}

/// The stacks of a trace. Equal stacks of several processes have one number.
#[derive(Debug)]
pub(super) struct Stacks {
    list: Vec<Stack>,
    by_frames: HashMap<Stack, StackId>,
    /// The numbers by those of the recording.
    numbers: HashMap<u64, StackId>,
    /// The calls and handles whose stack is not in the table.
    missing: u64,
}

impl Default for Stacks {
    fn default() -> Stacks {
        Stacks {
            list: vec![Stack::default()],
            by_frames: HashMap::default(),
            numbers: HashMap::default(),
            missing: 0,
        }
    }
}

impl Stacks {
    /// Reads the table to its present end.
    pub fn read<R: Read>(&mut self, table: &mut TableReader<R>) -> Result<(), Error> {
        while let Some(entry) = table.next_if(|_| true)? {
            if let EntryRef::Stack(entry) = entry {
                let id = self.number(entry.into());
                self.numbers.insert(entry.raw.id.get(), id);
            }
        }
        Ok(())
    }

    fn number(&mut self, stack: Stack) -> StackId {
        let next = StackId(u32::try_from(self.list.len()).unwrap_or(0));
        *self.by_frames.entry(stack).or_insert_with_key(|stack| {
            self.list.push(stack.clone());
            next
        })
    }

    /// Returns the number of the stack that the recording has numbered `id`.
    pub fn find(&mut self, id: u64) -> StackId {
        let found = self.numbers.get(&id).copied();
        self.missing.tally((id != NONE && found.is_none()).into());
        found.unwrap_or_default()
    }

    /// Returns the stacks by number, and how often a stack was asked for that is not in the table.
    pub fn into_list(self) -> (Vec<Stack>, u64) {
        (self.list, self.missing)
    }
}
