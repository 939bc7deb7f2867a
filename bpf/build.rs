// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the probes with clang and makes their skeletons.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libbpf_cargo::SkeletonBuilder;

/// The sources of the probes: for entries, block events, causes and operations, each loaded without the others. The probes for
/// entries and events come in two forms, one of which does without the types of the kernel's own BTF; those for causes and operations
/// also come in a form without what 5.17 brought. The last sources show whether the kernel runs probes at all times, and where its functions
/// are.
const SOURCES: [(&str, &str, &str); 11] = [
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
    (
        "causes.bpf.c",
        "causes_loopless.skel.rs",
        "-DMOSTRACE_LOOPLESS",
    ),
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
        let skeleton = out.join(skeleton);
        SkeletonBuilder::new()
            .source(probes.join(source))
            .clang_args([
                "-I".as_ref(),
                probes.as_os_str(),
                form.as_ref(),
                "-Wall".as_ref(),
                "-Werror".as_ref(),
            ])
            .build_and_generate(&skeleton)
            .unwrap_or_else(|e| panic!("{source}: {e:#} (is clang installed?)"));
        pack(&skeleton);
    }
    // Watch the whole folder: each header is included, and a list kept by hand would miss the next one.
    println!("cargo:rerun-if-changed=probes");
}

/// Puts a compressed object, of a fifth of the size, in the place of the object in its skeleton.
fn pack(skeleton: &Path) {
    const SECTION: &str = "#[unsafe(link_section = \".bpf.objs\")]";
    let parts = |text: &str| {
        let (before, data) = text.split_once(SECTION)?;
        let (_, data) = data.split_once("] = [")?;
        let (numbers, after) = data.split_once("];")?;
        let bytes = numbers.split(',').map(str::trim).filter(|n| !n.is_empty());
        let bytes = bytes.map(str::parse).collect::<Result<Vec<u8>, _>>().ok()?;
        Some((before.to_owned(), bytes, after.to_owned()))
    };
    let text = fs::read_to_string(skeleton).expect("the skeleton was made");
    let (before, bytes, after) = parts(&text).expect("the skeleton is as libbpf-cargo writes it");
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes).expect("memory is written to");
    let packed = skeleton.with_extension("z");
    fs::write(&packed, encoder.finish().expect("memory is written to")).expect("OUT_DIR");
    let text = format!(
        "{before}static DATA: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {{\n    \
         crate::source::bpf::object::unpacked(include_bytes!({packed:?}))\n}});{after}"
    );
    fs::write(skeleton, text).expect("OUT_DIR");
}
