// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress that is reported while a map is built.

use crate::ext4::images;

use std::cell::RefCell;

use mostrace_map::fs::{self, Image, Progress};

/// Returns the progress reports for an image.
fn steps(image: &std::path::Path) -> Vec<Progress> {
    let image = Image::open(image).expect("image");
    let steps = RefCell::new(Vec::new());
    let watched = fs::build_with(&image, 0, &|step| steps.borrow_mut().push(step));
    let silent = fs::build(&image, 0).expect("map");
    assert_eq!(watched.expect("map").extents(), silent.extents());
    steps.into_inner()
}

#[test]
fn every_part_comes_once_and_goes_on_to_its_end() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let (image, tree) = (scratch.path().join("image"), scratch.path().join("tree"));
    std::fs::create_dir(&tree).expect("tree");
    images::fill(&tree);
    images::mke2fs(&image, "-t ext4 -b 1024", 16, Some(&tree));
    let steps = steps(&image);
    let mut parts: Vec<&[Progress]> = steps.chunk_by(|a, b| a.what == b.what).collect();
    for part in &parts {
        assert!(part.is_sorted_by(|a, b| a.done <= b.done && a.total == b.total));
        let last = part.last().expect("step");
        assert_eq!(last.done, last.total, "{last:?}");
    }
    let count = parts.len();
    parts.sort_by_key(|part| part[0].what);
    parts.dedup_by_key(|part| part[0].what);
    assert_eq!(parts.len(), count, "{steps:?}");
    assert!(count >= 3, "{steps:?}");
}
