// SPDX-License-Identifier: MIT OR Apache-2.0
//! An ext4 image that is not a file: debugfs, which can only open files, gets a copy.

use crate::ext4::images;

use std::fs;
use std::path::Path;

use mostrace_map::Map;
use mostrace_map::class::Kind;
use mostrace_map::fs::{Error, Image};

fn make(image: &Path, tree: &Path, options: &str) {
    fs::create_dir(tree).expect("tree");
    images::fill(tree);
    images::mke2fs(image, options, 16, Some(tree));
}

fn names(map: &Map) -> Vec<Vec<Vec<u8>>> {
    (0..3000).map(|inode| map.paths(inode)).collect()
}

#[test]
fn bytes_in_memory_are_mapped_as_a_file_is() {
    for options in ["-t ext4 -b 1024", "-t ext2 -b 1024"] {
        let scratch = tempfile::tempdir().expect("scratch folder");
        let image = scratch.path().join("image");
        make(&image, &scratch.path().join("tree"), options);
        let map = mostrace_map::fs::build(&Image::open(&image).expect("image"), 2048);
        let map = map.expect("map of the file");
        assert!(map.extents().iter().any(|e| e.kind == Kind::ExtentTree));

        // The image's name is that of another image, or of no file.
        let other = scratch.path().join("other");
        images::mke2fs(&other, "-t ext4 -b 4096", 8, None);
        for path in [other.as_path(), Path::new("in memory")] {
            let bytes = fs::read(&image).expect("bytes");
            let in_memory = Image::new(path, bytes.len() as u64, bytes);
            let again = mostrace_map::fs::build(&in_memory, 2048).expect("map of the bytes");
            assert_eq!(again.extents(), map.extents(), "{}", path.display());
            assert_eq!(names(&again), names(&map));
            assert_eq!(again.notices(), [""; 0]);
        }
    }
}

#[test]
fn a_file_that_was_replaced_is_read_as_it_was_opened() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = scratch.path().join("image");
    make(&image, &scratch.path().join("tree"), "-t ext4 -b 1024");
    let opened = Image::open(&image).expect("image");
    let map = mostrace_map::fs::build(&opened, 0).expect("map");
    fs::remove_file(&image).expect("remove");
    images::mke2fs(&image, "-t ext4 -b 4096", 8, None);
    let again = mostrace_map::fs::build(&opened, 0).expect("map");
    assert_eq!(again.extents(), map.extents());
}

#[test]
fn what_holds_no_filesystem_is_told_apart() {
    let image = Image::new(Path::new("zeros"), 1 << 16, vec![0; 1 << 16]);
    let error = mostrace_map::fs::build(&image, 0).expect_err("no filesystem");
    assert!(matches!(error, Error::Unrecognised { .. }));
    let line = "zeros: first blocks: no filesystem recognised";
    assert_eq!(error.to_string(), line);
}
