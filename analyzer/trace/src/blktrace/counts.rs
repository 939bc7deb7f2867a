// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the events of each action; two captures of the same IO are compared by these counts.

use mostrace_bundle::blk_io_trace::action::{act, is_note, letter, tn};

/// The letters in output order, each with its index in the counts: the number of its action, or 0 for messages.
const LETTERS: [(&str, usize); 16] = [
    ("Q", 1),
    ("M", 2),
    ("F", 3),
    ("G", 4),
    ("S", 5),
    ("R", 6),
    ("D", 7),
    ("C", 8),
    ("P", 9),
    ("U", 10),
    ("UT", 11),
    ("I", 12),
    ("X", 13),
    ("B", 14),
    ("A", 15),
    ("m", 0),
];

/// Counts of events by the letter of their action ([`letter`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    counts: [u64; LETTERS.len()],
}

impl Counts {
    /// Counts an event by its action; process names, timestamps and actions without a letter are
    /// not counted.
    #[inline]
    pub fn push(&mut self, action: u64) {
        let place = match (is_note(action), act(action)) {
            (true, tn::MESSAGE) => 0,
            (false, act) if act != 0 => usize::try_from(act).unwrap_or(usize::MAX),
            _ => return,
        };
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(1);
        }
        debug_assert_eq!(letter(action).is_some(), place < self.counts.len());
    }

    /// Returns the count of a letter; 0 for an unknown one.
    #[must_use]
    pub fn get(&self, letter: &str) -> u64 {
        self.iter()
            .find(|&(known, _)| known == letter)
            .map_or(0, |(_, count)| count)
    }

    /// Returns every letter with its count, in the order Q M F G S R D C P U UT I X B A m.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        LETTERS
            .iter()
            .filter_map(|&(letter, place)| Some((letter, *self.counts.get(place)?)))
    }
}
