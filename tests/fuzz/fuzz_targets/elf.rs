// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged shared objects, and any bytes, as the file of a program; and any bytes as the name of a function. A place in a file
//! has a function or none, and a name is never longer than what is written of one.
//!
//! The first byte chooses one of the objects, which gcc makes once; patches follow, each a place (3 bytes), a length (1 byte)
//! and that many bytes. Otherwise all the rest of the input is the file. The places at which objects have something are few,
//! so that patches meet them.
//!
//! The two modules are those of the analyser, whose crate would bring polars with them.
#![no_main]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[path = "../../../analyzer/trace/src/symbols/demangle.rs"]
mod demangle;
#[path = "../../../analyzer/trace/src/symbols/elf.rs"]
mod elf;

use demangle::demangle;
use elf::{Functions, has_id};

const SOURCE: &str = r#"
    int begun;
    __attribute__((visibility("default"))) int _ZN5store4saveERKSs(int n) { return begun += n; }
    __attribute__((visibility("default"))) int _RNvCs1234_7mycrate3foo(int n) { return begun -= n; }
    __attribute__((visibility("default"))) int fsync_all(int n) { return n ? _ZN5store4saveERKSs(n - 1) : 0; }
    static int __attribute__((noinline, used)) hidden(int n) { return n * begun; }
"#;

/// Objects of 64 and of 32 bits, with all symbols and without.
static OBJECTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let kinds: [&[&str]; 3] = [&["-m64"], &["-m32"], &["-m64", "-s"]];
    kinds.into_iter().map(object).collect()
});

fn object(options: &[&str]) -> Vec<u8> {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let (source, object) = (scratch.path().join("a.c"), scratch.path().join("a.so"));
    fs::write(&source, SOURCE).expect("source");
    let gcc = Command::new("gcc")
        .args([
            "-shared",
            "-fPIC",
            "-nostdlib",
            "-Wl,--build-id,-z,noseparate-code",
        ])
        .args(options)
        .arg("-o")
        .args([&object, &source])
        .status();
    assert!(gcc.expect("gcc").success());
    fs::read(object).expect("object")
}

static DISK: LazyLock<File> = LazyLock::new(|| tempfile::tempfile().expect("scratch file"));

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    if choice & 7 == 7 {
        drop(demangle(data));
        drop(demangle(&[b"_Z", data].concat()));
        drop(demangle(&[b"_R", data].concat()));
        return;
    }
    let file = match OBJECTS.get(usize::from(choice & 7)) {
        Some(object) => patched(object, data),
        None => data.to_vec(),
    };
    let mut functions = Functions::default();
    functions.add(&file);
    // What a second file knows is added to the first's.
    if choice & 8 == 0 && !functions.are_all() {
        functions.add(&OBJECTS[0]);
    }
    for at in (0..0x3000).step_by(16).chain([u64::MAX, 1 << 63]) {
        if let Some(name) = functions.at(at) {
            assert!((1..=1 << 16).contains(&name.len()));
            demangle(name);
        }
    }
    DISK.set_len(0).expect("scratch file");
    DISK.write_all_at(&file, 0).expect("scratch file");
    has_id(&DISK, &file[..file.len().min(20)]);
});

/// Counts the places at which a patch may begin from the bytes that are not zero.
fn patched(object: &[u8], mut data: &[u8]) -> Vec<u8> {
    let mut file = object.to_vec();
    let places = object.iter().enumerate().filter(|(_, byte)| **byte != 0);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    while let [low, high, back, len, rest @ ..] = data {
        let (patch, rest) = rest.split_at(usize::from(len & 31).min(rest.len()));
        let nth = usize::from(u16::from_le_bytes([*low, *high])) % places.len();
        let at = places[nth].saturating_sub(usize::from(back & 7));
        let to = file.iter_mut().skip(at).zip(patch);
        to.for_each(|(to, from)| *to = *from);
        data = rest;
    }
    file
}
