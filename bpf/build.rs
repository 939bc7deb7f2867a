// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the probes with clang and makes their skeletons.
#![forbid(unsafe_code)]

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

/// The sources of the probes: for entries, block events, causes and operations, each loaded without the others. The probes for
/// entries and events come in two forms, one of which does without the types of the kernel's own BTF; those for operations also
/// come in a form without what 5.17 brought. The last sources show whether the kernel runs probes at all times, and where its functions
/// are.
const SOURCES: [(&str, &str, &str); 10] = [
    ("mostrace.bpf.c", "mostrace.skel.rs", "-DMOSTRACE_TYPED"),
    (
        "mostrace.bpf.c",
        "mostrace_untyped.skel.rs",
        "-DMOSTRACE_UNTYPED",
    ),
    ("events.bpf.c", "events.skel.rs", "-DMOSTRACE_TYPED"),
    (
        "events.bpf.c",
        "events_untyped.skel.rs",
        "-DMOSTRACE_UNTYPED",
    ),
    ("causes.bpf.c", "causes.skel.rs", "-DMOSTRACE_TYPED"),
    ("fentry.bpf.c", "fentry.skel.rs", "-DMOSTRACE_TYPED"),
    ("operations.bpf.c", "operations.skel.rs", "-DMOSTRACE_TYPED"),
    (
        "operations.bpf.c",
        "operations_loopless.skel.rs",
        "-DMOSTRACE_LOOPLESS",
    ),
    ("process1.bpf.c", "process1.skel.rs", "-DMOSTRACE_UNTYPED"),
    ("addresses.bpf.c", "addresses.skel.rs", "-DMOSTRACE_TYPED"),
];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let here =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let probes = here.join("probes");
    for (source, skeleton, form) in SOURCES {
        SkeletonBuilder::new()
            .source(probes.join(source))
            .clang_args([
                "-I".as_ref(),
                probes.as_os_str(),
                form.as_ref(),
                "-Wall".as_ref(),
                "-Werror".as_ref(),
            ])
            .build_and_generate(out.join(skeleton))
            .unwrap_or_else(|e| panic!("{source}: {e:#} (is clang installed?)"));
    }
    // Watch the whole folder: each header is included, and a list kept by hand would miss the next one.
    println!("cargo:rerun-if-changed=probes");
}
