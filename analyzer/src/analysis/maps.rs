// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of a filesystem, in the sectors of the traced disk.

use std::path::Path;

use mostrace_bundle::Manifest;
use mostrace_bundle::manifest::Mapping;
use mostrace_map::fs::ext4::By;
use mostrace_map::fs::jbd2::Journal;
use mostrace_map::fs::{self, Image};
use mostrace_map::{ELSEWHERE, Map, Piece};

use super::Progress;

/// Reads the journal of an image with this map. If it cannot be read, adds a notice and returns an empty journal.
pub(super) fn journal_of(
    image: &Path,
    start_sector: u64,
    map: &Map,
    notices: &mut Vec<String>,
) -> Journal {
    let journal = Image::open(image).and_then(|image| Journal::read(&image, map, start_sector));
    journal.unwrap_or_else(|error| {
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

/// Builds the map of an image or a device that begins at sector `start_sector` of its disk; `watcher` is called with the
/// progress.
///
/// # Errors
/// Returns an error if the image cannot be read or holds no known filesystem.
pub fn map_of(image: &Path, start_sector: u64, watcher: &dyn Fn(Progress)) -> fs::Result<Map> {
    map_by(By::Walk, image, start_sector, watcher)
}

/// Builds the map as [`map_of`] does; `by` lists the blocks of ext4's inodes.
///
/// # Errors
/// Returns an error if the image cannot be read, if no filesystem is found there, or if debugfs is to list the blocks and
/// cannot.
pub fn map_by(
    by: By,
    image: &Path,
    start_sector: u64,
    watcher: &dyn Fn(Progress),
) -> fs::Result<Map> {
    let told = |progress: fs::Progress| {
        watcher(Progress {
            step: progress.what,
            done: progress.done,
            total: progress.total,
        });
    };
    fs::build_by(by, &Image::open(image)?, start_sector, &told)
}
