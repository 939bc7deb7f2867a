// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of ftrace in a trace of Perfetto, and their fields by the names that the kernel gives them.
//!
//! An event is either a message of its own (protos/perfetto/trace/ftrace/*.proto), one that the trace describes, or a list of
//! named fields.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use mostrace_bundle::tracepoints::{Fields, Tells};

use super::super::requests::{Shape, shape};
use super::super::sched::{Sched, sched};
use super::super::told::tells;
use super::wire::{Message, Value};

macro_rules! events {
    ($($number:literal $event:ident: $($field:ident)+;)+) => {
        [$(($number, stringify!($event), &[$(stringify!($field),)+]),)+]
    };
}

/// Messages of which the numbers are public: that of the event in FtraceEvent, its name, and its fields from 1 on.
const PUBLIC: [(u32, &str, &[&str]); 20] = events! {
    41 ext4_da_write_begin: dev ino pos len flags;
    45 block_rq_issue: dev sector nr_sector bytes rwbs comm;
    119 block_bio_queue: dev sector nr_sector rwbs comm;
    120 block_bio_remap: dev sector nr_sector old_dev old_sector;
    125 block_rq_complete: dev sector nr_sector errors rwbs cmd error;
    126 block_rq_insert: dev sector nr_sector bytes rwbs comm;
    129 block_rq_requeue: dev sector nr_sector errors rwbs;
    131 block_split: dev sector new_sector rwbs comm;
    160 ext4_evict_inode: dev ino nlink;
    167 ext4_ext_map_blocks_exit: dev ino flags pblk lblk len mflags ret;
    178 ext4_free_blocks: dev ino block count;
    183 ext4_ind_map_blocks_exit: dev ino flags pblk lblk len mflags ret;
    219 ext4_write_begin: dev ino pos len flags;
    235 task_newtask: pid comm clone_flags;
    236 task_rename: pid oldcomm newcomm;
    237 sched_process_exec: filename pid old_pid;
    239 sched_process_fork: parent_comm parent_pid child_comm child_pid;
    244 f2fs_evict_inode: dev ino;
    271 f2fs_write_begin: dev ino pos len flags;
    434 android_fs_datawrite_start: bytes cmdline i_size ino offset pathbuf pid;
};

/// FtraceEvent.generic: a GenericFtraceEvent.
const GENERIC: u32 = 327;

/// The most events that a trace describes, and fields of one; kernels have some thousands of events.
const MANY: usize = 1 << 13;
const MANY_FIELDS: usize = 64;

/// What an event is good for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Good {
    Request(Shape),
    Remap,
    File(Tells),
    Task(Sched),
}

fn good(name: &[u8]) -> Option<Good> {
    if name == b"block_bio_remap" {
        return Some(Good::Remap);
    }
    let request = shape(name).map(Good::Request);
    let file = || tells(name).map(Good::File);
    request
        .or_else(file)
        .or_else(|| sched(name).map(Good::Task))
}

/// A kind of event, with the numbers of its fields.
struct Described {
    good: Good,
    fields: Vec<(u32, Vec<u8>)>,
}

/// The kinds of events that are good for something.
pub(super) struct Kinds(HashMap<u32, Described, RandomState>);

impl Default for Kinds {
    fn default() -> Kinds {
        let kinds = PUBLIC.into_iter().filter_map(|(number, name, fields)| {
            let fields = (1_u32..).zip(fields.iter().map(|name| name.as_bytes().to_vec()));
            let described = Described {
                good: good(name.as_bytes())?,
                fields: fields.collect(),
            };
            Some((number, described))
        });
        Kinds(kinds.collect())
    }
}

impl Kinds {
    /// Takes a GenericEventDescriptor: { field_id = 1; event_descriptor = 2: { name = 1; field = 2: { name = 1; number = 3 } } }
    pub fn describe(&mut self, descriptor: Message<'_>) -> Option<()> {
        let number = u32::try_from(descriptor.number(1)?).ok()?;
        let event = Message(descriptor.bytes(2)?);
        let good = good(event.bytes(1)?)?;
        if self.0.len() >= MANY || PUBLIC.iter().any(|(public, ..)| *public == number) {
            return None;
        }
        let fields = event.all(2).take(MANY_FIELDS).filter_map(|field| {
            let number = u32::try_from(field.number(3)?).ok()?;
            Some((number, field.bytes(1)?.to_vec()))
        });
        let fields = fields.collect();
        self.0.insert(number, Described { good, fields });
        Some(())
    }

    /// Returns what an event is good for, if anything.
    pub fn good(&self, number: u32, message: Message<'_>) -> Option<Good> {
        match number {
            GENERIC => good(message.bytes(1)?),
            _ => Some(self.0.get(&number)?.good),
        }
    }

    /// Returns an event's fields.
    pub fn event<'a>(&'a self, thread: u32, number: u32, message: Message<'a>) -> Event<'a> {
        Event {
            thread,
            message,
            fields: self.0.get(&number).map(|described| &described.fields[..]),
        }
    }
}

/// An event's fields.
pub(super) struct Event<'a> {
    thread: u32,
    message: Message<'a>,
    /// The numbers of the fields; None if the message names them.
    fields: Option<&'a [(u32, Vec<u8>)]>,
}

impl<'a> Event<'a> {
    fn value(&self, name: &str) -> Option<Value<'a>> {
        let name = name.as_bytes();
        let Some(fields) = self.fields else {
            // GenericFtraceEvent: { field = 2: { name = 1; str_value = 3; int_value = 4; uint_value = 5 } }
            let mut all = self.message.all(2);
            let field = all.find(|field| field.bytes(1) == Some(name))?;
            return [3, 4, 5].into_iter().find_map(|number| field.find(number));
        };
        let (number, _) = fields.iter().find(|(_, known)| known == name)?;
        self.message.find(*number)
    }

    /// Returns a number of 32 bits.
    pub fn short(&self, name: &str) -> Option<u32> {
        u32::try_from(self.number(name)?).ok()
    }

    /// Returns a device as the kernel numbers it: a message has what makedev() returns for users.
    pub fn device(&self, name: &str) -> Option<u32> {
        let dev = self.value(name)?.number()?;
        let (major, minor) = ((dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xf_ff00));
        u32::try_from(major << 20 | minor).ok()
    }

    pub fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        self.value(name)?.bytes()
    }
}

/// Numbers of ext4's flags of a lookup, EXT4_GET_BLOCKS_* of fs/ext4/ext4.h: the same in 3.10 to 6.18.
const EXT4_FLAGS: [(&str, u64); 4] = [
    ("UNWRIT", 0x2),
    ("DELALLOC", 0x4),
    ("PRE_IO", 0x8),
    ("IO_SUBMIT", 0x400),
];

impl Fields for Event<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        match field {
            "dev" => self.device(field).map(u64::from),
            _ => self.value(field)?.number(),
        }
    }

    fn signed(&self, field: &str) -> Option<i64> {
        Some(self.value(field)?.number()?.cast_signed())
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        self.bytes(field)
    }

    fn has_flag(&self, field: &str, names: &[&str]) -> Option<bool> {
        let set = self.number(field)?;
        let of = |(name, bit): &(&str, u64)| if names.contains(name) { *bit } else { 0 };
        Some(EXT4_FLAGS.iter().any(|flag| set & of(flag) != 0))
    }

    fn thread(&self) -> Option<u32> {
        Some(self.thread)
    }
}
