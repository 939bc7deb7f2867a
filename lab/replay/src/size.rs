// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size that a file must have had before the first operation, deduced from the operations on it.

/// What the operations so far tell about a file's size at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// The exact size.
    exact: Option<u64>,
    /// The least size.
    least: u64,
    /// The end of what the operations wrote; the bytes before it tell nothing about the start.
    written: u64,
    /// True if the operations made the file shorter; nothing after that tells anything about the start.
    cut: bool,
}

impl Size {
    /// Returns the file's size at the start, bytes: the size that was seen, otherwise the least that explains the operations.
    pub(crate) fn at_start(self) -> u64 {
        self.exact.unwrap_or(self.least)
    }

    /// Notes that bytes up to `end` exist.
    pub(crate) fn reaches(&mut self, end: u64) {
        if !self.cut && end > self.written {
            self.least = self.least.max(end);
        }
    }

    /// Notes that the file has this size.
    pub(crate) fn is(&mut self, size: u64) {
        if self.exact.is_some() || self.cut {
            return;
        }
        if size > self.written || self.written == 0 {
            self.exact = Some(size);
        }
    }

    /// Notes that an operation wrote up to `end`; [`u64::MAX`] if the end is unknown.
    pub(crate) fn write(&mut self, end: u64) {
        self.written = self.written.max(end);
    }

    /// Notes that the size was changed to a value that does not depend on the size before.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(facts: impl Fn(&mut Size)) -> u64 {
        let mut size = Size::default();
        facts(&mut size);
        size.at_start()
    }

    #[test]
    fn a_size_is_what_was_seen_before_it_changed() {
        assert_eq!(size(|_| ()), 0);
        assert_eq!(size(|size| size.is(70)), 70);
        assert_eq!(size(|size| (size.reaches(10), size.is(7)).1), 7);
        let grown = |size: &mut Size| {
            size.write(100);
            size.is(100);
        };
        assert_eq!(size(grown), 0);
        let overwritten = |size: &mut Size| {
            size.write(100);
            size.is(300);
            size.is(900);
        };
        assert_eq!(size(overwritten), 300);
    }

    #[test]
    fn reads_tell_the_least_size() {
        let read = |size: &mut Size| {
            size.write(50);
            size.reaches(40);
            assert_eq!(size.at_start(), 0);
            size.reaches(60);
            size.cut();
            size.reaches(1000);
            size.is(1000);
        };
        assert_eq!(size(read), 60);
    }
}
