// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps as many of the latest records as there is room for.

/// Consecutive records in two halves; when the newer half is full, the older one is dropped.
#[derive(Debug, Default)]
pub(super) struct Recent {
    older: Half,
    newer: Half,
    /// The size of one half, bytes.
    room: usize,
    /// The time of the latest record that was dropped.
    gone_ns: u64,
}

#[derive(Debug, Default)]
struct Half {
    bytes: Vec<u8>,
    last_ns: u64,
}

impl Recent {
    /// Makes room for `bytes`; at least the latest half of that is always kept.
    pub fn new(bytes: usize) -> Recent {
        Recent {
            room: bytes / 2,
            ..Recent::default()
        }
    }

    /// Returns true if records are kept.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.room > 0
    }

    /// Keeps a record, if there is room for any.
    #[inline]
    pub fn push(&mut self, time_ns: u64, record: &[u8]) {
        if self.has_room() {
            self.keep(time_ns, record);
        }
    }

    fn keep(&mut self, time_ns: u64, record: &[u8]) {
        if self.newer.bytes.len() + record.len() > self.room {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.gone_ns = self.gone_ns.max(self.newer.last_ns);
            self.newer.bytes.clear();
            self.newer.last_ns = 0;
        }
        self.newer.bytes.extend_from_slice(record);
        self.newer.last_ns = self.newer.last_ns.max(time_ns);
    }

    /// Takes all records in the order in which they came, and the time from which on none is missing; the records of several CPUs
    /// do not come in time order. Afterwards there is as much room as before, and what was taken does not count as missing: the
    /// caller pushes the records that are still needed again.
    pub fn take(&mut self) -> (u64, Vec<u8>) {
        let older = std::mem::take(&mut self.older);
        let newer = std::mem::take(&mut self.newer);
        let all = [older.bytes, newer.bytes].concat();
        (self.gone_ns.saturating_add(1), all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_last_ones_are_kept_whole(lens in prop::collection::vec(1usize..30, 0..60)) {
            let records: Vec<Vec<u8>> = (0u8..).zip(&lens).map(|(i, &len)| vec![i; len]).collect();
            let mut recent = Recent::new(200);
            for (time_ns, record) in (1..).zip(&records) {
                recent.push(time_ns, record);
            }
            let (since_ns, kept) = recent.take();
            let all = records.concat();
            prop_assert!(all.ends_with(&kept));
            prop_assert!(kept.len() <= 200 && kept.len() >= all.len().min(100 - 29));
            // It begins at the start of a record.
            let first = (0..=records.len()).find(|&first| records[first..].concat() == kept);
            prop_assert_eq!(first, usize::try_from(since_ns - 1).ok());
            prop_assert!(recent.take().1.is_empty());
        }
    }

    #[test]
    fn what_was_taken_is_not_missing_later() {
        let mut recent = Recent::new(200);
        (1..=4).for_each(|time_ns| recent.push(time_ns, &[0; 50]));
        assert_eq!(recent.take().0, 1);
        // One record is still needed; the halves are filled anew.
        (3..=6).for_each(|time_ns| recent.push(time_ns, &[0; 50]));
        assert_eq!(recent.take(), (1, vec![0; 200]));
        (5..=9).for_each(|time_ns| recent.push(time_ns, &[0; 50]));
        assert_eq!(recent.take(), (7, vec![0; 150]));
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut recent = Recent::default();
        recent.push(1, &[1; 48]);
        assert!(recent.take().1.is_empty());
    }

    #[test]
    fn what_went_last_says_from_when_on_none_is_missing() {
        let mut recent = Recent::new(200);
        // These are a CPU's records, and those of another one that came at the same time.
        for time_ns in [10, 20, 30, 5, 15, 25] {
            recent.push(time_ns, &[0; 40]);
        }
        let (since_ns, kept) = recent.take();
        assert_eq!((since_ns, kept.len()), (21, 4 * 40));
    }
}
