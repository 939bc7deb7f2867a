// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes to files of records: the tables of entries, and the events of a CPU.

use std::ops::Range;

use mostrace_bundle::table::HEADER_LEN;

use super::number::{self, Place};
use super::random::Random;
use super::{bytes, hostile};

/// Length of a blktrace record without its payload; the payload's length is its last number.
const EVENT: usize = 48;
/// Length of `task->comm`, which ends most entries.
const COMM: usize = 16;
/// Length of an entry's head, which has the entry's size.
const HEAD: usize = 32;
/// Length of a file entry without its name, and the offset of the name's length.
const FILE: usize = 72;
const NAME_LEN: usize = 68;
/// The most bytes that repeated records may add.
const ROOM: usize = 4 << 20;

/// The kind of records, which determines how their length is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Entries,
    Events,
}

impl Shape {
    /// Returns the bytes before the first record.
    fn header(self) -> usize {
        match self {
            Shape::Entries => HEADER_LEN,
            Shape::Events => 0,
        }
    }

    /// Returns true if the place has the kind, size or magic number, or the length of a payload.
    fn says_how_long(self, place: &Place) -> bool {
        match self {
            Shape::Entries => place.touches(0..4),
            Shape::Events => place.touches(0..4) || place.touches(EVENT - 2..EVENT),
        }
    }

    /// Returns the length of the record that begins here; None if it is incomplete.
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

/// A file, divided into its records.
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

    /// Makes one change to one record, or the same change to many.
    pub fn change(&mut self, random: &mut Random) {
        if self.records.is_empty() {
            // A table that is rejected hides the other changes.
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

    /// Returns the range of one record, of some consecutive ones, or of all.
    fn run(&self, random: &mut Random) -> Range<usize> {
        let all = self.records.len();
        let from = random.below(all as u64) as usize;
        let most = [1, 1, 10, 1000, all][random.below(5) as usize];
        match most == all {
            true => 0..all,
            false => from..(from + most).min(all),
        }
    }

    /// Puts the same number into each record.
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

    /// Copies the number of another place of the same record.
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

    /// Returns a place of a number in a record; seldom the record's length, because nothing after a wrong one is read.
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

    /// Puts in another name: a process's at the end, a file's after the numbers, an event's as its payload.
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
