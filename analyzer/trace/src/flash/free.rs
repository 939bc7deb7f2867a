// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the snapshot at the end of a recording says is free.

use std::ops::Range;

use mostrace_map::class::Kind;
use mostrace_map::fs::{How, Image, State};

use crate::reading::{Error, map_of, on_the_disk};
use crate::recording::Recording;

/// Returns the free sectors of the disk; None if there is no snapshot.
///
/// # Errors
/// Returns an error if the snapshot cannot be read.
pub fn free(recording: &Recording) -> Result<Option<Vec<Range<u64>>>, Error> {
    let Some(bundle) = recording.last() else {
        return Ok(None);
    };
    let Some(image) = bundle.snapshot()? else {
        return Ok(None);
    };
    let start = bundle.manifest().snapshot.as_ref();
    let start = start.map_or(0, |snapshot| snapshot.start_sector);
    let image = Image::open(image.path())?;
    let map = map_of(&image, start, How::from(State::Mounted), &|_| {})?;
    let map = on_the_disk(map, bundle.manifest());
    let free = map.extents().iter().filter(|e| e.kind == Kind::Free);
    let sectors = free.map(|e| e.sector..e.sector.saturating_add(e.sectors));
    Ok(Some(sectors.collect()))
}
