// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the spans of time that were in progress at a moment.

use std::collections::BTreeMap;

use crate::tally::Tally;

/// Number of spans that are looked at for one question. A recording may come from anybody, and the work for each of its entries must
/// be bounded.
const SEARCHED: usize = 1 << 12;

/// Something that lasted.
pub(super) trait Lasting {
    fn start_ns(&self) -> u64;
    fn end_ns(&self) -> u64;
}

/// Spans by their length and end. The spans of a class have lengths with the same number of bits. In each class, the spans in
/// progress at a moment end shortly after it, so a lookup visits about as many spans as were in progress, however long the others
/// are.
#[derive(Debug)]
pub(super) struct Spans<T> {
    classes: Vec<Class<T>>,
    len: usize,
    arrived: u64,
}

/// Spans whose lengths have the same number of bits.
#[derive(Debug)]
struct Class<T> {
    /// By the end and the order of arrival.
    spans: BTreeMap<(u64, u64), T>,
    /// The first end, or the largest time if there is none. Most questions are about times before it: a comparison answers these.
    first_ns: u64,
}

impl<T> Default for Class<T> {
    fn default() -> Self {
        Class::of(BTreeMap::new())
    }
}

impl<T> Class<T> {
    fn of(spans: BTreeMap<(u64, u64), T>) -> Class<T> {
        let first = spans.first_key_value();
        let first_ns = first.map_or(u64::MAX, |(place, _)| place.0);
        Class { spans, first_ns }
    }

    fn insert(&mut self, place: (u64, u64), span: T) {
        self.spans.insert(place, span);
        self.first_ns = self.first_ns.min(place.0);
    }

    fn pop(&mut self) -> Option<T> {
        let (_, span) = self.spans.pop_first()?;
        let first = self.spans.first_key_value();
        self.first_ns = first.map_or(u64::MAX, |(place, _)| place.0);
        Some(span)
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
        let class = usize::try_from(u64::BITS.saturating_sub(length_ns.leading_zeros()));
        let class = class.unwrap_or_default();
        while self.classes.len() <= class {
            self.classes.push(Class::default());
        }
        self.arrived.tally(1);
        let place = (span.end_ns(), self.arrived);
        if let Some(class) = self.classes.get_mut(class) {
            class.insert(place, span);
            self.len.tally(1);
        }
    }

    /// Returns those that began by `from_ns` and ended at `to_ns` or later. Those of [`Spans::are_too_many`] are cut short.
    pub fn over(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = &T> {
        let near = self.near(from_ns, to_ns).take(SEARCHED);
        near.filter(move |span| span.start_ns() <= from_ns)
    }

    /// Returns the same, to be changed; their beginnings and ends stay.
    pub fn over_mut(&mut self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = &mut T> {
        let classes = self.classes.iter_mut().zip(0..);
        let near = classes.filter_map(move |(class, bits)| {
            let last_ns = last_end(from_ns, to_ns, bits);
            let places = (to_ns, 0)..=(last_ns, u64::MAX);
            (class.first_ns <= last_ns).then(|| class.spans.range_mut(places))
        });
        let near = near.flatten().map(|(_, span)| span).take(SEARCHED);
        near.filter(move |span| span.start_ns() <= from_ns)
    }

    /// Returns true if too many spans to look at may have lasted from `from_ns` to `to_ns`.
    pub fn are_too_many(&self, from_ns: u64, to_ns: u64) -> bool {
        self.near(from_ns, to_ns).nth(SEARCHED).is_some()
    }

    /// Returns the last end.
    pub fn last_end(&self) -> Option<u64> {
        let last = |class: &Class<T>| Some(class.spans.last_key_value()?.0.0);
        self.classes.iter().filter_map(last).max()
    }

    /// Takes the span that ended first, if that was by `time_ns`.
    pub fn pop(&mut self, time_ns: u64) -> Option<T> {
        let classes = self.classes.iter_mut();
        let firsts = classes.filter(|class| class.first_ns <= time_ns);
        let firsts = firsts.filter_map(|class| Some((*class.spans.first_key_value()?.0, class)));
        let (_, class) = firsts.min_by_key(|(place, _)| *place)?;
        let span = class.pop()?;
        self.len = self.len.saturating_sub(1);
        Some(span)
    }

    /// Drops those that ended before `time_ns`.
    pub fn drop_before(&mut self, time_ns: u64) {
        for class in &mut self.classes {
            if class.first_ns < time_ns {
                *class = Class::of(class.spans.split_off(&(time_ns, 0)));
            }
        }
        self.len = self.classes.iter().map(|class| class.spans.len()).sum();
    }

    /// Returns the spans of each class that may have lasted from `from_ns` to `to_ns`, and at least all that did.
    fn near(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = &T> {
        let classes = self.classes.iter().zip(0..);
        let near = classes.filter_map(move |(class, bits)| {
            let last_ns = last_end(from_ns, to_ns, bits);
            let places = (to_ns, 0)..=(last_ns, u64::MAX);
            (class.first_ns <= last_ns).then(|| class.spans.range(places))
        });
        near.flatten().map(|(_, span)| span)
    }
}

/// Returns the last end of what began by `from_ns` and is of a class, but no earlier time than `to_ns`.
fn last_end(from_ns: u64, to_ns: u64, bits: u32) -> u64 {
    let beyond = 1u64.checked_shl(bits);
    let longest = beyond.map_or(u64::MAX, |beyond| beyond.saturating_sub(1));
    from_ns.saturating_add(longest).max(to_ns)
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
            let mut found: Vec<_> = kept.over(from_ns, to_ns).copied().collect();
            let mut changed: Vec<_> = kept.over_mut(from_ns, to_ns).map(|span| *span).collect();
            let lasted = |span: &&(u64, u64)| span.0 <= from_ns && span.1 >= to_ns;
            let mut expected: Vec<_> = all.iter().filter(lasted).copied().collect();
            found.sort();
            changed.sort();
            expected.sort();
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(&changed, &expected);
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
            assert_eq!(spans.over(at * 20 + 1, at * 20 + 1).count(), 2);
        }
        assert!(looked.get() < 8 * count, "{}", looked.get());
    }
}
