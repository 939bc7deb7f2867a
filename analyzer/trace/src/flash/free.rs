// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the snapshot at the end of a recording says is free.

use std::ops::Range;

use mostrace_map::class::Kind;
use mostrace_map::fs::State;

use crate::reading::{Error, map_of_snapshot};
use crate::recording::Recording;

/// Returns the free sectors of the disk; None if there is no snapshot.
///
/// # Errors
/// Returns an error if the snapshot cannot be read.
pub fn free(recording: &Recording) -> Result<Option<Vec<Range<u64>>>, Error> {
    let Some(bundle) = recording.last() else {
        return Ok(None);
    };
    let map = map_of_snapshot(bundle, None, State::Mounted, &|_| {})?;
    Ok(map.map(|map| {
        let free = map.extents().iter().filter(|e| e.kind == Kind::Free);
        free.map(|extent| extent.sector..extent.end()).collect()
    }))
}
