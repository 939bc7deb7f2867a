// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the spans of time that were in progress at a moment.

use crate::tally::Tally;
use crate::timeline::Timeline;

/// Number of spans that are looked at for one question. A recording may come from anybody, and the work for each of its entries must
/// be bounded.
const SEARCHED: usize = 1 << 12;

/// A class has the spans whose lengths differ in no more than this many bits. If there were fewer, a question would go through more
/// classes; if there were more, through more spans that were not in progress.
const CLASS_BITS: u32 = 2;

/// Something that lasted.
pub(super) trait Lasting {
    fn start_ns(&self) -> u64;
    fn end_ns(&self) -> u64;
}

/// Spans by their length and end. The spans of a class have lengths with about the same number of bits. In each class, the spans in
/// progress at a moment end shortly after it, so a lookup visits about as many spans as were in progress, however long the others
/// are.
#[derive(Debug)]
pub(super) struct Spans<T> {
    classes: Vec<Class<T>>,
    len: usize,
    arrived: u64,
}

/// Spans whose lengths have about the same number of bits.
#[derive(Debug)]
struct Class<T> {
    /// They are in the order of their ends, and each has the number of its arrival.
    spans: Timeline<(u64, T)>,
    /// The first end, or the largest time if there is none, and the last one, or 0. Most questions are about times before the first
    /// or after the last end: a comparison answers these.
    first_ns: u64,
    last_ns: u64,
}

impl<T> Default for Class<T> {
    fn default() -> Self {
        Class {
            spans: Timeline::default(),
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }
}

impl<T> Class<T> {
    fn insert(&mut self, end_ns: u64, arrived: u64, span: T) {
        self.spans.push(end_ns, (arrived, span));
        self.first_ns = self.first_ns.min(end_ns);
        self.last_ns = self.last_ns.max(end_ns);
    }

    /// Returns the first end and the number of that span's arrival.
    fn first(&self) -> Option<(u64, u64)> {
        let (end_ns, (arrived, _)) = self.spans.first()?;
        Some((end_ns, *arrived))
    }

    fn pop(&mut self) -> Option<T> {
        let (_, span) = self.spans.pop(u64::MAX)?;
        self.find_ends();
        Some(span)
    }

    fn drop_before(&mut self, time_ns: u64) {
        if self.first_ns < time_ns {
            self.spans.drop_before(time_ns);
            self.find_ends();
        }
    }

    /// Finds the first end again, after spans are gone, and the last one if none is left.
    fn find_ends(&mut self) {
        let first = self.first();
        self.first_ns = first.map_or(u64::MAX, |(end_ns, _)| end_ns);
        if first.is_none() {
            self.last_ns = 0;
        }
    }

    /// Returns true if spans may have ended within these times.
    fn may_end(&self, from_ns: u64, to_ns: u64) -> bool {
        self.first_ns <= to_ns && from_ns <= self.last_ns
    }
}

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Spans {
            classes: Vec::new(),
            len: 0,
            arrived: 0,
        }
    }
}

impl<T: Lasting> Spans<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push(&mut self, span: T) {
        let length_ns = span.end_ns().saturating_sub(span.start_ns());
        let class = class_of(length_ns);
        while self.classes.len() <= class {
            self.classes.push(Class::default());
        }
        self.arrived.tally(1);
        if let Some(class) = self.classes.get_mut(class) {
            class.insert(span.end_ns(), self.arrived, span);
            self.len.tally(1);
        }
    }

    /// Passes those that began by `from_ns` and ended at `to_ns` or later to `take`. Returns false if there may be more, because too many
    /// had to be looked at.
    pub fn each_over<'s>(&'s self, from_ns: u64, to_ns: u64, mut take: impl FnMut(&'s T)) -> bool {
        let mut left = SEARCHED;
        let mut look = |(_, span): &'s (u64, T)| {
            left = left.checked_sub(1)?;
            if span.start_ns() <= from_ns {
                take(span);
            }
            Some(())
        };
        let mut classes = self.classes.iter().zip(0..);
        let all = classes.try_for_each(|(class, number)| {
            let last_ns = last_end(from_ns, to_ns, number);
            match class.may_end(to_ns, last_ns) {
                true => class.spans.between(to_ns, last_ns).try_for_each(&mut look),
                false => Some(()),
            }
        });
        all.is_some()
    }

    /// Returns the last end.
    pub fn last_end(&self) -> Option<u64> {
        let filled = self.classes.iter().filter(|class| class.spans.len() > 0);
        filled.map(|class| class.last_ns).max()
    }

    /// Takes the span that ended first, if that was by `time_ns`.
    pub fn pop(&mut self, time_ns: u64) -> Option<T> {
        let classes = self.classes.iter_mut();
        let firsts = classes.filter(|class| class.first_ns <= time_ns);
        let firsts = firsts.filter_map(|class| Some((class.first()?, class)));
        let (_, class) = firsts.min_by_key(|(first, _)| *first)?;
        let span = class.pop()?;
        self.len = self.len.saturating_sub(1);
        Some(span)
    }

    /// Drops those that ended before `time_ns`.
    pub fn drop_before(&mut self, time_ns: u64) {
        for class in &mut self.classes {
            class.drop_before(time_ns);
        }
        self.len = self.classes.iter().map(|class| class.spans.len()).sum();
    }
}

/// Returns the number of the class for spans of this length.
fn class_of(length_ns: u64) -> usize {
    let bits = u64::BITS.saturating_sub(length_ns.leading_zeros());
    usize::try_from(bits / CLASS_BITS).unwrap_or(0)
}

/// Returns the last end of what began by `from_ns` and is of a class, but no earlier time than `to_ns`.
fn last_end(from_ns: u64, to_ns: u64, class: u32) -> u64 {
    let bits = class
        .saturating_mul(CLASS_BITS)
        .saturating_add(CLASS_BITS - 1);
    let beyond = 1u64.checked_shl(bits).unwrap_or(0);
    from_ns.saturating_add(beyond.wrapping_sub(1)).max(to_ns)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    /// A span that counts how often it is looked at.
    struct Counted(u64, u64, Rc<Cell<u64>>);

    impl Lasting for Counted {
        fn start_ns(&self) -> u64 {
            self.2.set(self.2.get() + 1);
            self.0
        }

        fn end_ns(&self) -> u64 {
            self.1
        }
    }

    impl Lasting for (u64, u64) {
        fn start_ns(&self) -> u64 {
            self.0
        }

        fn end_ns(&self) -> u64 {
            self.1
        }
    }

    proptest! {
        #[test]
        fn those_in_progress_are_found(
            spans in prop::collection::vec((0u64..200, 0u64..70), 0..60),
            from_ns in 0u64..200,
            longer in 0u64..40,
        ) {
            let mut kept = Spans::default();
            let all: Vec<_> = spans.iter().map(|&(from, length)| (from, from + length)).collect();
            all.iter().for_each(|&span| kept.push(span));
            let to_ns = from_ns + longer;
            let mut found = Vec::new();
            prop_assert!(kept.each_over(from_ns, to_ns, |span| found.push(*span)));
            let lasted = |span: &&(u64, u64)| span.0 <= from_ns && span.1 >= to_ns;
            let mut expected: Vec<_> = all.iter().filter(lasted).copied().collect();
            found.sort();
            expected.sort();
            prop_assert_eq!(&found, &expected);
            kept.drop_before(from_ns);
            let left: Vec<_> = std::iter::from_fn(|| kept.pop(to_ns)).collect();
            let mut expected: Vec<_> = all.to_vec();
            expected.retain(|span| (from_ns..=to_ns).contains(&span.1));
            expected.sort_by_key(|span| span.1);
            let ends = |spans: &[(u64, u64)]| spans.iter().map(|span| span.1).collect::<Vec<_>>();
            prop_assert_eq!(ends(&left), ends(&expected));
            prop_assert_eq!(kept.len(), all.iter().filter(|span| span.1 > to_ns).count());
        }
    }

    #[test]
    fn a_span_is_in_progress_from_its_beginning_to_its_end() {
        let mut spans = Spans::default();
        let count = |spans: &Spans<(u64, u64)>, from_ns, to_ns| {
            let mut count = 0;
            assert!(spans.each_over(from_ns, to_ns, |_| count += 1));
            count
        };
        for _ in 0..2 {
            spans.push((10, 20));
            for (from_ns, to_ns, expected) in [(10, 10, 1), (15, 20, 1), (9, 20, 0), (10, 21, 0)] {
                assert_eq!(count(&spans, from_ns, to_ns), expected, "{from_ns} {to_ns}");
            }
            assert_eq!((spans.last_end(), spans.pop(19)), (Some(20), None));
            assert_eq!(spans.pop(20), Some((10, 20)));
            assert_eq!((spans.last_end(), count(&spans, 15, 20)), (None, 0));
        }
    }

    /// Calls of one thread follow each other; a minute's call of another one is in progress all the time.
    #[test]
    fn a_question_looks_at_no_more_than_what_is_about_in_progress() {
        let looked = Rc::new(Cell::new(0));
        let mut spans = Spans::default();
        let count = 100_000;
        for at in 0..count {
            spans.push(Counted(at * 20, at * 20 + 5 + at % 15, looked.clone()));
        }
        spans.push(Counted(0, 60_000_000_000, looked.clone()));
        looked.set(0);
        for at in 0..count {
            let mut count = 0;
            assert!(spans.each_over(at * 20 + 1, at * 20 + 1, |_| count += 1));
            assert_eq!(count, 2);
        }
        assert!(looked.get() < 8 * count, "{}", looked.get());
    }
}
