// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps ext2, ext3 and ext4 images with the walker and with debugfs, and prints where the two maps differ.
//!
//! usage: compare_ext4 IMAGE…

use std::path::Path;

use mostrace_map::fs::ext4::{By, build_by};
use mostrace_map::fs::{Error, Image};
use mostrace_map::{Extent, Map};

fn main() {
    let (mut same, mut without, mut other) = (0, 0, 0);
    for path in std::env::args_os().skip(1) {
        let path = Path::new(&path);
        let map = |by| Image::open(path).and_then(|image| build_by(by, &image, 0, &|_| {}));
        let (walked, listed) = (map(By::Walk), map(By::Debugfs));
        match difference(&walked, &listed) {
            None if walked.is_ok() => same += 1,
            None => without += 1,
            Some(difference) => {
                other += 1;
                println!("{}: {difference}", path.display());
                for map in [walked, listed].iter().flatten() {
                    println!("    {:?}", map.notices());
                }
            }
        }
    }
    println!("{same} have the same map, {without} have none either way, {other} differ");
}

/// Returns the first difference; None if both are the same map, or the same error.
fn difference(walked: &Result<Map, Error>, listed: &Result<Map, Error>) -> Option<String> {
    match (walked, listed) {
        (Ok(walked), Ok(listed)) => {
            let extents = walked.extents().iter().zip(listed.extents());
            let first = extents
                .into_iter()
                .find(|(walked, listed)| walked != listed);
            let show = |extent: &Extent| format!("{extent:?}");
            first.map(|(walked, listed)| format!("{} by debugfs {}", show(walked), show(listed)))
        }
        (Err(walked), Err(listed)) => {
            let (walked, listed) = (walked.to_string(), listed.to_string());
            (walked != listed).then(|| format!("{walked}; by debugfs {listed}"))
        }
        (Ok(_), Err(listed)) => Some(format!("mapped; by debugfs {listed}")),
        (Err(walked), Ok(_)) => Some(format!("{walked}; mapped by debugfs")),
    }
}
