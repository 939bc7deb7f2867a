// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restores any runs as a bundle's snapshot. The result must be a device of the size that the snapshot states, or an
//! error that names it.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use mostrace_bundle::manifest::SCHEMA;
use mostrace_bundle::{Bundle, Manifest, layout};

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("scratch folder");
    let manifest = Manifest {
        schema: SCHEMA,
        ..Manifest::default()
    };
    let text = serde_json::to_string(&manifest).expect("in memory");
    fs::write(folder.path().join(layout::MANIFEST), text).expect("scratch file");
    let runs = [b"MOSTSPRS", data].concat();
    let packed = zstd::encode_all(&runs[..], 1).expect("in memory");
    let path = folder.path().join(layout::SNAPSHOT);
    fs::write(&path, packed).expect("scratch file");
    let bundle = Bundle::open(folder.path()).expect("a manifest");
    match bundle.snapshot() {
        Ok(image) => {
            let image = image.expect("there is one");
            let size = fs::metadata(image.path()).expect("its size").len();
            assert_eq!(size.to_le_bytes()[..], data[..8]);
        }
        Err(error) => assert!(
            error.to_string().contains(layout::SNAPSHOT) || path_of_image(&error.to_string()),
            "{error}"
        ),
    }
});

/// Returns true if the error is about the restored image, which may be larger than the scratch folder's filesystem
/// allows.
fn path_of_image(error: &str) -> bool {
    error.contains("mostrace-temporary-")
}
