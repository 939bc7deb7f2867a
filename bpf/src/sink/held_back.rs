// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of the next segment that come while the current one is being completed.

/// The records that are held back, in the order in which they came.
#[derive(Debug)]
pub(super) struct HeldBack<T> {
    /// The time from which on a record belongs to the next segment; None while no segment ends.
    from_ns: Option<u64>,
    records: Vec<T>,
}

impl<T> Default for HeldBack<T> {
    fn default() -> HeldBack<T> {
        HeldBack {
            from_ns: None,
            records: Vec::new(),
        }
    }
}

impl<T> HeldBack<T> {
    /// Begins to hold back records of `at_ns` or later.
    pub fn begin(&mut self, at_ns: u64) {
        self.from_ns = Some(at_ns);
    }

    /// Returns true if a record of this time must be held back.
    #[inline]
    pub fn holds(&self, time_ns: u64) -> bool {
        self.from_ns.is_some_and(|from| time_ns >= from)
    }

    /// Holds back a record.
    pub fn push(&mut self, record: T) {
        self.records.push(record);
    }

    /// Ends holding back, and returns the records that were held.
    pub fn take(&mut self) -> Vec<T> {
        self.from_ns = None;
        std::mem::take(&mut self.records)
    }
}
