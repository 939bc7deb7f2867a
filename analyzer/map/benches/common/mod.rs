// SPDX-License-Identifier: MIT OR Apache-2.0
//! This module holds the helpers that the benchmarks of the map share.
#![allow(dead_code)] // each benchmark uses its own share

use std::fs;
use std::time::Duration;

use mostrace_map::class::Kind;
use mostrace_map::{Extent, Map};

pub fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Returns extents of regular files, spread over the disk.
pub fn some_files(map: &Map, number: usize) -> Vec<Extent> {
    let files = map.extents().iter().filter(|e| e.kind == Kind::Regular);
    let files: Vec<_> = files.copied().collect();
    (0..number)
        .map(|n| files[n * 79_193 % files.len()])
        .collect()
}

/// Returns their first sectors.
pub fn some_sectors(map: &Map, number: usize) -> Vec<u64> {
    let files = some_files(map, number).into_iter();
    files.map(|extent| extent.sector).collect()
}

pub fn path_of(map: &Map, sector: u64) -> Option<Vec<u8>> {
    let piece = map.pieces(sector, 1).next()?;
    map.path(piece.inode)
}

/// Returns `VmHWM` in KiB, or 0 if the kernel does not report it.
pub fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let figure = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    figure.unwrap_or(0)
}
