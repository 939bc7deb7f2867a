// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes to files of records: the tables of entries, and the events of a CPU.

use std::ops::Range;

use mostrace_bundle::table::HEADER_LEN;

use super::number::{self, Place};
use super::random::Random;
use super::{bytes, hostile};

/// Of blktrace, without the payload, whose length is its last number.
const EVENT: usize = 48;
/// `task->comm` at the end of most entries.
const COMM: usize = 16;
/// Of an entry: head, and where its size stands.
const HEAD: usize = 32;
/// Of a file entry, without its name, and where the length of that stands.
const FILE: usize = 72;
const NAME_LEN: usize = 68;
/// What records that are said again may come to.
const ROOM: usize = 4 << 20;

/// How long a record is, and how that stands in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Entries,
    Events,
}

impl Shape {
    /// Bytes ahead of the first record.
    fn header(self) -> usize {
        match self {
            Shape::Entries => HEADER_LEN,
            Shape::Events => 0,
        }
    }

    /// Whether kind, size or magic is there, or the length of a payload.
    fn says_how_long(self, place: &Place) -> bool {
        match self {
            Shape::Entries => place.touches(0..4),
            Shape::Events => place.touches(0..4) || place.touches(EVENT - 2..EVENT),
        }
    }

    /// Length of the record that begins here; None if it is not whole.
    fn length(self, rest: &[u8]) -> Option<usize> {
        let number = |at: usize| {
            Some(usize::from(u16::from_le_bytes(
                *rest.get(at..)?.first_chunk()?,
            )))
        };
        let length = match self {
            Shape::Entries => number(2)?.max(HEAD),
            Shape::Events => number(EVENT - 2)? + EVENT,
        };
        (length <= rest.len()).then_some(length)
    }
}

/// A file, cut into its records.
pub struct Records {
    shape: Shape,
    header: Vec<u8>,
    records: Vec<Vec<u8>>,
}

impl Records {
    pub fn of(shape: Shape, file: &[u8]) -> Records {
        let (header, mut rest) = file.split_at(shape.header().min(file.len()));
        let mut records = Vec::new();
        while let Some(length) = shape.length(rest) {
            let (record, behind) = rest.split_at(length);
            records.push(record.to_vec());
            rest = behind;
        }
        Records {
            shape,
            header: header.to_vec(),
            records,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        [&self.header[..], &self.records.concat()].concat()
    }

    /// One change to one record, or to many in the same way.
    pub fn change(&mut self, random: &mut Random) {
        if self.records.is_empty() {
            // A table that is not taken hides what else was changed.
            if random.one_in(10) {
                bytes::change(random, &mut self.header);
            }
            return;
        }
        let run = self.run(random);
        match random.below(12) {
            0 => self.records[run].reverse(),
            1 => drop(self.records.drain(run)),
            2 => self.say_again(random, run),
            3 => self.swap(random),
            4 => self.records[run.start..].rotate_left(1),
            5 => self.names(random, run),
            6 => bytes::change(random, &mut self.records[run.start]),
            7 => self.take_number(random, run),
            8 => self.one_number(random, run.start..run.start + 1),
            _ => self.one_number(random, run),
        }
    }

    /// One record, some that follow one another, or all.
    fn run(&self, random: &mut Random) -> Range<usize> {
        let all = self.records.len();
        let from = random.below(all as u64) as usize;
        let most = [1, 1, 10, 1000, all][random.below(5) as usize];
        match most == all {
            true => 0..all,
            false => from..(from + most).min(all),
        }
    }

    /// The same number in each.
    fn one_number(&mut self, random: &mut Random, run: Range<usize>) {
        let Some(place) = self.place(random, run.start) else {
            return;
        };
        let was = place.get(&self.records[run.start]).unwrap_or(0);
        let to = number::other(random, was);
        let grows = random.one_in(3);
        for (nth, record) in (0u64..).zip(&mut self.records[run]) {
            place.put(record, to.wrapping_add(if grows { nth } else { 0 }));
        }
    }

    /// The number that another place of the same record has.
    fn take_number(&mut self, random: &mut Random, run: Range<usize>) {
        let length = self.records[run.start].len();
        let (Some(from), Some(to)) = (Place::within(random, length), self.place(random, run.start))
        else {
            return;
        };
        for record in &mut self.records[run] {
            if let Some(number) = from.get(record) {
                to.put(record, number);
            }
        }
    }

    /// Of a number of a record; seldom of that which says how long it is, as nothing behind it is read then.
    fn place(&self, random: &mut Random, nth: usize) -> Option<Place> {
        let place = Place::within(random, self.records[nth].len())?;
        match self.shape.says_how_long(&place) && !random.one_in(20) {
            true => self.place(random, nth),
            false => Some(place),
        }
    }

    fn say_again(&mut self, random: &mut Random, run: Range<usize>) {
        let records = self.records[run.clone()].to_vec();
        let bytes: usize = records.iter().map(Vec::len).sum();
        let most = (ROOM / bytes.max(1)).clamp(1, 5000) as u64;
        let times = 1 + random.below(most) as usize;
        let again = std::iter::repeat_n(records, times).flatten();
        self.records.splice(run.end..run.end, again);
    }

    fn swap(&mut self, random: &mut Random) {
        let all = self.records.len() as u64;
        let (a, b) = (random.below(all) as usize, random.below(all) as usize);
        self.records.swap(a, b);
    }

    /// Another name: of a process at the end, of a file behind the numbers, in an event its payload.
    fn names(&mut self, random: &mut Random, run: Range<usize>) {
        let name = hostile::name(random);
        for record in &mut self.records[run] {
            match (self.shape, record.first()) {
                (Shape::Events, _) => put_payload(record, &name),
                (Shape::Entries, Some(2)) => put_file_name(record, &name),
                (Shape::Entries, _) => put_comm(record, &name),
            }
        }
    }
}

fn put_payload(event: &mut Vec<u8>, name: &[u8]) {
    event.truncate(EVENT);
    event.extend_from_slice(name);
    Place::at(EVENT - 2, 2).put(event, name.len() as u64);
}

fn put_file_name(entry: &mut Vec<u8>, name: &[u8]) {
    entry.truncate(FILE);
    entry.extend_from_slice(name);
    entry.resize(entry.len().next_multiple_of(8), 0);
    let size = entry.len() as u64;
    Place::at(2, 2).put(entry, size);
    Place::at(NAME_LEN, 2).put(entry, name.len() as u64);
}

fn put_comm(entry: &mut [u8], name: &[u8]) {
    let from = entry.len().saturating_sub(COMM);
    for (to, byte) in entry[from..].iter_mut().zip(name) {
        *to = *byte;
    }
}
