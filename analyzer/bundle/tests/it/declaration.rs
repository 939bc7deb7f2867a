// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bpf/probes/mostrace.h` declares the records, and Rust's structures have its fields, at its offsets, of its lengths, and its
//! numbers: a C compiler says so.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::mem::offset_of;
use std::process::Command;

use mostrace_bundle::entry::stack::RawStack;
use mostrace_bundle::entry::{
    CallKind, Contents, Home, Jbd2, Origin, RawCall, RawCgroup, RawComm, RawDirtied, RawDirtier,
    RawF2fs, RawFile, RawFork, RawFreed, RawHandle, RawHead, RawProcess, RawServed, Stage, Step,
    What,
};
use mostrace_bundle::operation::{OperationKind, RawOperation};

const HEADER: &str = include_str!("../../../../bpf/probes/mostrace.h");

/// A structure of C, and the assertions about each of its fields.
struct Declared {
    name: &'static str,
    fields: Vec<&'static str>,
    asserts: String,
}

/// `Rust's type = C's: field, …;`, where a field that Rust calls otherwise is `rust as c`.
macro_rules! declared {
    ($($raw:ident = $name:ident: $($field:ident $(as $c:ident)?),+;)+) => { vec![$({
        let mut asserts = String::new();
        let zero = $raw::default();
        $({
            let c = [$(stringify!($c),)? stringify!($field)][0];
            let (offset, size) = (offset_of!($raw, $field), size_of_val(&zero.$field));
            let name = stringify!($name);
            writeln!(asserts, "_Static_assert(offsetof(struct {name}, {c}) == {offset}, \"{name}.{c}: offset\");").unwrap();
            writeln!(asserts, "_Static_assert(sizeof(((struct {name} *)0)->{c}) == {size}, \"{name}.{c}: length\");").unwrap();
        })+
        let size = size_of::<$raw>();
        writeln!(asserts, "_Static_assert(sizeof(struct {}) == {size}, \"size\");", stringify!($name)).unwrap();
        Declared {
            name: stringify!($name),
            fields: vec![$([$(stringify!($c),)? stringify!($field)][0]),+],
            asserts,
        }
    }),+] };
}

fn structures() -> Vec<Declared> {
    declared! {
        RawHead = mostrace_entry: kind as type, size, dev, time_ns, sector, bytes, cpu, stage, flags;
        RawProcess = mostrace_process: head, submit_ns, home_sector, pid, tgid, uid, opf, tid, origin, jbd2, home, contents, comm;
        RawFile = mostrace_file: head, ino, offset, parent, generation, s_dev, nlink, name_len, origin, what;
        RawDirtier = mostrace_dirtier: head, dirty_ns, pid, tgid, uid, pad, comm;
        RawHandle = mostrace_handle: head, id, start_ns, ino, function, generation, s_dev, tid, pid, tgid, uid, requested, dirtied,
            named, kind as type, call, comm;
        RawDirtied = mostrace_dirtied: head, handle, tid, home, pad;
        RawCall = mostrace_call: head, start_ns, ino, offset, bytes, result, first_bytes, generation, s_dev, pid, tgid, uid, kind,
            cp_reason, comm;
        RawFork = mostrace_fork: head, tgid, parent;
        RawFreed = mostrace_freed: head, ino, generation, s_dev, tid, home, pad;
        RawF2fs = mostrace_f2fs: head, s_dev, pid, tgid, uid, step, reason, call, pad, comm;
        RawCgroup = mostrace_cgroup: head, id, tgid, path_len, pad;
        RawComm = mostrace_comm: head, tgid, pad, comm;
        RawServed = mostrace_served: head, start_ns, unique, pid, tgid, for_pid, for_tgid, for_uid, opcode, for_comm;
        RawStack = mostrace_stack: head, id, tgid, kernel, user;
        RawOperation = mostrace_operation: head, start_ns, file, other_file, offset, other_offset, bytes, result, ino, size,
            generation, s_dev, pid, tgid, flags, mode, uid, gid, kind, i_mode, path_len, other_len;
    }
}

/// The header without its comments.
fn code() -> String {
    let mut parts = HEADER.split("/*");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |code, part| {
        code + part.split_once("*/").expect("a comment ends").1
    })
}

/// The bodies of the header's declarations that begin with `word`, by name.
fn bodies(word: &str) -> BTreeMap<String, String> {
    let code = code();
    let begin = format!("\n{word} ");
    let declarations = code.split(&begin).skip(1);
    declarations
        .filter_map(|text| {
            let (name, rest) = text.split_once(" {")?;
            let (body, _) = rest.split_once("\n}")?;
            Some((name.to_owned(), body.to_owned()))
        })
        .collect()
}

/// The names of a structure's fields, but for the text of no fixed length at its end.
fn fields(body: &str) -> Vec<&str> {
    let declarations = body.split(';').map(str::trim);
    let names = declarations.filter_map(|field| field.rsplit(' ').next());
    let fixed = names.filter(|name| !name.is_empty() && !name.ends_with("[]"));
    fixed.map(|name| name.split('[').next().unwrap()).collect()
}

#[test]
fn rust_has_every_field_of_the_header() {
    let bodies = bodies("struct");
    let ours = structures();
    let declared: Vec<&str> = bodies.keys().map(String::as_str).collect();
    let mut names: Vec<&str> = ours.iter().map(|structure| structure.name).collect();
    names.sort_unstable();
    assert_eq!(declared, names);
    for structure in ours {
        assert_eq!(
            fields(&bodies[structure.name]),
            structure.fields,
            "{}",
            structure.name
        );
    }
}

/// A variant's name as C writes it.
fn upper(variant: impl Debug) -> String {
    let mut name = String::new();
    for letter in format!("{variant:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// Asserts that C's constants of this prefix have the numbers for which `of` has a name.
fn numbered(asserts: &mut String, prefix: &str, of: impl Fn(u8) -> Option<String>) {
    for number in 0..=u8::MAX {
        let Some(name) = of(number) else { continue };
        writeln!(
            asserts,
            "_Static_assert({prefix}{name} == {number}, \"{name}\");"
        )
        .unwrap();
    }
}

/// The name of one of the numbers that Rust keeps as they are. What has no name is called as 0 is by some of them.
fn word(number: u8, word: String) -> Option<String> {
    (number == 0 || word != "unknown").then(|| word.to_uppercase())
}

#[test]
fn a_compiler_finds_the_same_offsets_and_numbers() {
    let mut source = format!("#include <stddef.h>\n#include <linux/types.h>\n{HEADER}\n");
    for structure in structures() {
        source += &structure.asserts;
    }
    let asserts = &mut source;
    let call = |n: u8| CallKind::from_repr(n.into()).map(upper);
    numbered(asserts, "MOSTRACE_CALL_", call);
    numbered(asserts, "MOSTRACE_F2FS_", |n| {
        Step::from_repr(n.into()).map(upper)
    });
    numbered(asserts, "MOSTRACE_OP_", |n| {
        let kind = OperationKind::from_repr(n.into());
        kind.filter(|kind| *kind != OperationKind::Unknown)
            .map(upper)
    });
    numbered(asserts, "MOSTRACE_", |n| {
        word(n, Stage(n).word()).filter(|_| n <= 3)
    });
    numbered(asserts, "MOSTRACE_ORIGIN_", |n| word(n, Origin(n).word()));
    numbered(asserts, "MOSTRACE_WHAT_", |n| word(n, What(n).word()));
    numbered(asserts, "MOSTRACE_JBD2_", |n| {
        word(n, Jbd2(n).word()).filter(|name| name != "UNKNOWN")
    });
    numbered(asserts, "MOSTRACE_HOME_", |n| word(n, Home(n).word()));
    numbered(asserts, "MOSTRACE_CONTENTS_", |n| {
        word(n, Contents(n).word())
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("declaration.c");
    std::fs::write(&file, source).unwrap();
    let compiled = Command::new("cc")
        .args(["-fsyntax-only", "-Wall", "-Werror"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
}
