// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hour that is not over. It is written nowhere, because that would be recorded too: its keeper hands it to whoever asks.

use std::sync::{Arc, Mutex, PoisonError};

use polars::prelude::{DataFrame, DataType, PolarsResult};

use super::{Error, Hour, Result, day};

/// The hour that a keeper sums up.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<Hour>>);

impl Running {
    /// Returns the hour so far, in the form of a day's file; it is as complete as the last segment that was summed up.
    ///
    /// # Errors
    /// Returns an error if there is no memory for it.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let rows = self.with(|hour| day::frame(hour));
        rows.and_then(day::packed).map_err(Error::Hours)
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Hour) -> T) -> T {
        // A keeper that panicked ends the program.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns true if a day has the running hour already, because it was added meanwhile.
pub(super) fn is_added(day: &DataFrame, running: &DataFrame) -> PolarsResult<bool> {
    let (added, running) = (ends(day)?, ends(running)?);
    let Some(&(hour, end)) = running.iter().max_by_key(|(_, end)| *end) else {
        return Ok(false);
    };
    Ok(added.iter().any(|&(of, at)| of == hour && at >= end))
}

/// Returns the beginning of each hour, and when it ended.
fn ends(rows: &DataFrame) -> PolarsResult<Vec<(Option<i64>, u64)>> {
    let hours = rows.column("hour")?.cast(&DataType::Int64)?;
    let ends = rows.column("end_unix_ms")?.u64()?;
    let all = hours.i64()?.iter().zip(ends.iter());
    Ok(all.filter_map(|(hour, end)| Some((hour, end?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_that_was_added_meanwhile_is_not_counted_twice() {
        let hour = |begin, unix_ms| {
            let mut hour = Hour {
                begin,
                ..Hour::default()
            };
            hour.watched.ns = 1;
            hour.watched.end.unix_ms = unix_ms;
            day::frame(&hour).unwrap()
        };
        let day = hour(0, 100).vstack(&hour(3600, 4_000_000)).unwrap();
        assert!(is_added(&day, &hour(3600, 4_000_000)).unwrap());
        assert!(is_added(&day, &hour(3600, 3_999_000)).unwrap());
        assert!(
            !is_added(&day, &hour(3600, 4_000_001)).unwrap(),
            "a later recorder's"
        );
        assert!(!is_added(&day, &hour(7200, 100)).unwrap());
    }
}
