// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of a filesystem, in the sectors of the traced disk.

use std::path::Path;

use mostrace_bundle::manifest::Mapping;
use mostrace_bundle::{Bundle, Manifest};
use mostrace_map::fs::jbd2::Journal;
use mostrace_map::fs::{self, How, Image, Wanted};
use mostrace_map::{ELSEWHERE, Map, Piece};

use super::{Progress, Result};

/// Reads the journal of an image with this map. If it cannot be read, adds a notice and returns an empty journal.
pub(super) fn journal_of(
    image: &Image,
    start_sector: u64,
    map: &Map,
    notices: &mut Vec<String>,
) -> Journal {
    Journal::read(image, map, start_sector).unwrap_or_else(|error| {
        notices.push(format!("the journal is not looked into: {error}"));
        Journal::default()
    })
}

/// Moves the map of a bundle's snapshot to the sectors of the traced disk: the filesystem may lie on a mapped device above
/// that disk, or on several devices.
pub fn on_the_disk(map: Map, manifest: &Manifest) -> Map {
    let piece = |m: &Mapping| Piece {
        upper: m.start_sector,
        sectors: m.sectors,
        lower: match m.lower_disk_dev == manifest.device.disk_dev {
            true => m.lower_start_sector,
            false => ELSEWHERE.saturating_add(m.start_sector),
        },
    };
    let pieces: Vec<_> = manifest.mapping.iter().map(piece).collect();
    if manifest.mapping.is_empty() {
        map
    } else {
        map.through(&pieces)
    }
}

/// Where a map comes from, and what it is to show.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// An image file or a device.
    pub image: &'a Path,
    /// The part of it that is wanted.
    pub wanted: Wanted,
    /// The state of the filesystem, and who lists the blocks of ext4's inodes.
    pub how: How,
}

/// Opens an image. What was unpacked or chosen is added to `notices`.
///
/// # Errors
/// Returns an error if the image cannot be read or unpacked, or is a disk with several partitions of which none is wanted.
pub fn opened(source: &Source, notices: &mut Vec<String>) -> fs::Result<(Image, u64)> {
    let opened = fs::open(source.image, source.wanted)?;
    notices.extend(opened.notices);
    Ok((opened.image, opened.start_sector))
}

/// Builds the map of an opened image that begins at sector `start_sector` of its disk; `watcher` is called with the progress.
///
/// # Errors
/// Returns an error if the image cannot be read or has no known filesystem, or if debugfs is to list the blocks and cannot.
pub fn map_of(
    image: &Image,
    start_sector: u64,
    how: How,
    watcher: &dyn Fn(Progress),
) -> fs::Result<Map> {
    let told = |progress: fs::Progress| {
        watcher(Progress {
            step: progress.what,
            done: progress.done,
            total: progress.total,
        });
    };
    fs::build_by(how, image, start_sector, &told)
}

/// Builds the map of a bundle's snapshot in the sectors of the traced disk; None if it has none. The snapshot begins at
/// `start_sector` of its disk, or where the recording says.
///
/// # Errors
/// Returns an error if the snapshot cannot be unpacked, and in the same cases as [`map_of`].
pub fn map_of_snapshot(
    bundle: &Bundle,
    start_sector: Option<u64>,
    how: impl Into<How>,
    watcher: &dyn Fn(Progress),
) -> Result<Option<Map>> {
    let Some(snapshot) = bundle.snapshot()? else {
        return Ok(None);
    };
    let recorded = bundle.manifest().snapshot.as_ref();
    let start = start_sector.unwrap_or(recorded.map_or(0, |s| s.start_sector));
    let image = Image::open(snapshot.path())?;
    let map = map_of(&image, start, how.into(), watcher)?;
    Ok(Some(on_the_disk(map, bundle.manifest())))
}
