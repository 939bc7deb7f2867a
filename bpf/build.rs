// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the probes with clang and makes their skeleton.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "mostrace.bpf.c";

fn main() {
    let out =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("mostrace.skel.rs");
    let here =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang_args([
            "-I".as_ref(),
            here.as_os_str(),
            "-Wall".as_ref(),
            "-Werror".as_ref(),
        ])
        .build_and_generate(&out)
        .unwrap_or_else(|e| panic!("{SOURCE}: {e:#} (is clang installed?)"));
    println!("cargo:rerun-if-changed={SOURCE}");
    for header in headers(&here) {
        println!("cargo:rerun-if-changed={header}");
    }
}

/// Every header beside the source: each is included, and a list kept by hand would miss the next one.
fn headers(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("cargo runs this in a folder that can be read");
    files
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".h"))
        .collect()
}
