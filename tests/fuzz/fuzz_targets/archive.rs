// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens any bytes as an archive, either as given or compressed first. It must unpack only files with known names into
//! a folder of its own, or give an error that names it.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use mostrace_bundle::{Bundle, archive, layout};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let scratch = tempfile::tempdir().expect("scratch folder");
    let path = scratch.path().join("fuzz.tar.zst");
    let bytes = match choice & 1 {
        0 => zstd::encode_all(data, 1).expect("in memory"),
        _ => data.to_vec(),
    };
    fs::write(&path, bytes).expect("scratch file");
    let shown = path.display().to_string();
    match archive::unpack(&path) {
        Ok(unpacked) => {
            for entry in fs::read_dir(unpacked.dir.path()).expect("its folder") {
                let entry = entry.expect("its folder");
                assert!(entry.file_type().expect("its kind").is_file());
                assert!(layout::is_known(
                    entry.file_name().to_str().expect("a known name")
                ));
            }
        }
        Err(error) => assert!(error.to_string().starts_with(&shown), "{error}"),
    }
    match Bundle::open(&path) {
        Ok(bundle) => drop(bundle.shortfalls()),
        Err(error) => assert!(error.to_string().starts_with(&shown), "{error}"),
    }
    assert_eq!(
        fs::read_dir(scratch.path())
            .expect("scratch folder")
            .count(),
        1
    );
});
