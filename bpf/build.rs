// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the probes with clang and makes their skeleton.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "mostrace.bpf.c";

fn main() {
    let out =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("mostrace.skel.rs");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang_args(["-I", &here, "-Wall", "-Werror"])
        .build_and_generate(&out)
        .unwrap_or_else(|e| panic!("{SOURCE}: {e:#} (is clang installed?)"));
    for file in [
        SOURCE,
        "mostrace.h",
        "kernel.bpf.h",
        "compat.bpf.h",
        "target.bpf.h",
        "submitter.bpf.h",
        "file.bpf.h",
        "f2fs.bpf.h",
        "pages.bpf.h",
        "direct.bpf.h",
        "journal.bpf.h",
        "owner.bpf.h",
        "blockevents.bpf.h",
    ] {
        println!("cargo:rerun-if-changed={file}");
    }
}
