// SPDX-License-Identifier: MIT OR Apache-2.0
//! Labels of processes and files, and words for the kernel's and the bundle's codes.

use mostrace_bundle::DeviceNumber;
use std::sync::Arc;

use mostrace_bundle::entry::{Origin, Stage};
use mostrace_map::class::{Provenance, Role};
use polars::prelude::Expr;
use strum::VariantArray;

use super::Facts;
use super::field::Field;
use super::packages::package;
use super::row::{Text, code, flag_if_known, number};
use super::stored::{LETTERS, bits, column as at, found_code};
use mostrace_trace::attribute::{File, Process, Stack};
use mostrace_trace::blktrace;
use mostrace_trace::causes::{Cause, Force, Known, Operation, Reason};
pub use mostrace_trace::labels::file_label;
use mostrace_trace::labels::{self, By};
use mostrace_trace::symbols::Symbols;
use mostrace_trace::text::escape;

/// Returns the names of an enum's values in their order.
pub(super) fn words_of<T>() -> impl Iterator<Item = Option<String>>
where
    T: Copy + Into<&'static str> + VariantArray,
{
    let name = |value: &T| Some((*value).into().to_owned());
    T::VARIANTS.iter().map(name)
}

/// Returns what a stored column counts.
fn by(from: &str) -> By {
    match from == at::cause {
        true => By::Cause,
        false => By::Own,
    }
}

/// Returns a value for each process that the stored column `from` counts: each one, or that of each cause.
fn of_processes<T>(
    facts: &Facts,
    from: &str,
    value: impl Fn(usize, &Process) -> Option<T>,
) -> Vec<Option<T>> {
    labels::of_processes(&facts.origins, by(from), value)
}

/// Returns a value for each file that the stored column `from` counts: each one, or that of each cause.
fn of_files<T>(
    facts: &Facts,
    from: &str,
    value: impl Fn(usize, &File) -> Option<T>,
) -> Vec<Option<T>> {
    labels::of_files(&facts.origins, by(from), value)
}

/// Returns a value for each cause; there is at least one.
fn of_causes<T>(facts: &Facts, value: impl Fn(&Cause) -> Option<T>) -> Vec<Option<T>> {
    labels::of_causes(&facts.origins, value)
}

/// Looks up the number that a stored column refers to.
fn looked_up(from: &'static str, numbers: Vec<Option<u64>>) -> Expr {
    number([from], move |[id]| {
        numbers.get(id as usize).copied().flatten()
    })
}

/// Looks up the word that a stored column refers to.
fn worded(from: &'static str, words: Vec<Option<String>>) -> Text {
    Text::new([from], words, |[id]| id)
}

/// Looks up the number of the word that a stored column refers to; `words` are counted from 1.
fn numbered(
    from: &'static str,
    numbers: Vec<Option<u64>>,
    words: impl Iterator<Item = Option<String>>,
) -> Text {
    Text::new([from], std::iter::once(None).chain(words), move |[id]| {
        let number = numbers.get(id as usize).copied().flatten();
        number.unwrap_or_default()
    })
}

/// Looks up a number of a process.
pub(super) fn of_process(
    facts: &Facts,
    from: &'static str,
    value: fn(&Process) -> Option<u32>,
) -> Expr {
    let numbers = of_processes(facts, from, |_, process| value(process).map(u64::from));
    looked_up(from, numbers)
}

/// Looks up a number of a file.
pub(super) fn of_file(facts: &Facts, from: &'static str, value: fn(&File) -> Option<u64>) -> Expr {
    looked_up(from, of_files(facts, from, |_, file| value(file)))
}

pub(super) fn comms(facts: &Facts, from: &'static str) -> Text {
    let comm = |_, process: &Process| process.comm.as_deref().map(escape);
    worded(from, of_processes(facts, from, comm))
}

/// Returns the names of the processes of threads.
pub(super) fn process_comms(facts: &Facts, from: &'static str) -> Text {
    let comm = |_, process: &Process| process.process_comm.as_deref().map(escape);
    worded(from, of_processes(facts, from, comm))
}

pub(super) fn paths(facts: &Facts, from: &'static str) -> Text {
    let path = |_, file: &File| file.path.as_deref().map(escape);
    worded(from, of_files(facts, from, path))
}

/// Returns the path that each file has in the end.
pub(super) fn final_paths(facts: &Facts, from: &'static str) -> Text {
    let path = |_, file: &File| file.final_path.as_deref().map(escape);
    worded(from, of_files(facts, from, path))
}

pub(super) fn files(facts: &Facts, from: &'static str) -> Text {
    worded(from, labels::file_labels(&facts.origins, by(from)))
}

/// Returns the labels `name:tgid`.
pub(super) fn processes(facts: &Facts, from: &'static str) -> Text {
    let labels = process_labels(facts);
    worded(
        from,
        of_processes(facts, from, |at, _| labels.get(at)?.clone()),
    )
}

/// Returns the cgroup of each process.
pub(super) fn cgroups(facts: &Facts, from: &'static str) -> Text {
    let path = |_, process: &Process| process.cgroup.as_deref().map(escape);
    worded(from, of_processes(facts, from, path))
}

/// Returns the label of each process by its number; if there are several recordings, with the recording's name.
pub(crate) fn process_labels(facts: &Facts) -> Vec<Option<String>> {
    labels::process_labels(&facts.origins)
}

/// Returns the Android package of each process; empty on other machines.
pub(super) fn packages(facts: &Facts, from: &'static str) -> Text {
    worded(
        from,
        of_processes(facts, from, |at, _| package_of(facts, at)),
    )
}

/// Returns the package of the process at index `at`.
pub(crate) fn package_of(facts: &Facts, at: usize) -> Option<String> {
    let origin = facts.origins.list.get(facts.origins.of_process(at))?;
    let uid = facts.origins.names.processes.get(at)?.uid?;
    package(origin.packages.as_ref()?, uid)
}

pub(super) fn bundles(facts: &Facts) -> Text {
    let names = facts.origins.list.iter();
    let names = names.map(|origin| Some(origin.name.clone()));
    Text::new([at::origin], names, |[origin]| origin)
}

/// Returns whether the cause's process belongs to the command's tree.
pub(super) fn cause_of_command(facts: &Facts) -> Expr {
    let of = of_processes(facts, at::cause, |_, process| process.of_command);
    flag_if_known([at::cause], move |[id]| {
        of.get(id as usize).copied().flatten()
    })
}

/// Returns the stack of each cause in the form of folded stacks: the outermost frame first, with semicolons between them.
pub(super) fn cause_stacks(facts: &Facts) -> Text {
    let stacks = facts.stacks.get_or_init(|| {
        let mut symbols = Symbols::new(&facts.programs);
        let stacks = facts.names().stacks.iter();
        stacks.map(|stack| folded(stack, &mut symbols)).collect()
    });
    let folded = |cause: &Cause| {
        let stack = stacks.get(cause.stack.0 as usize);
        stack.filter(|frames| !frames.is_empty()).cloned()
    };
    worded(at::cause, of_causes(facts, folded))
}

/// The kernel's functions are marked as flamegraph.pl and perf mark them.
fn folded(stack: &Stack, symbols: &mut Symbols) -> String {
    let cut = stack.is_cut.then(|| "[cut]".to_owned());
    let user = stack.user.iter().rev().map(|place| symbols.text(place));
    let kernel = stack.kernel.iter().rev();
    let kernel = kernel.map(|function| format!("{}_[k]", escape(function.as_bytes())));
    let frames = cut.into_iter().chain(user).chain(kernel);
    let frames = frames.map(|frame| frame.replace(';', "\\x3b"));
    frames.collect::<Vec<_>>().join(";")
}

/// Returns the process that caused the row, or else its submitter, marked as such.
pub(super) fn causes_or_submitters(facts: &Facts) -> Text {
    let words = labels::causes_or_submitters(&facts.origins);
    Text::of([at::cause, at::process, at::file], words)
}

/// Returns the file of the cause, or else the file that is written or read.
pub(super) fn cause_or_files(facts: &Facts) -> Text {
    Text::of(
        [at::cause, at::file],
        labels::cause_or_files(&facts.origins),
    )
}

/// The same under the names that files have in the end.
pub(super) fn cause_or_final_files(facts: &Facts) -> Text {
    let words = labels::cause_or_final_files(&facts.origins);
    Text::of([at::cause, at::file], words)
}

pub(super) fn cause_databases(facts: &Facts) -> Text {
    let database = |_, file: &File| file.database().map(escape);
    worded(at::cause, of_files(facts, at::cause, database))
}

pub(super) fn cause_roles(facts: &Facts) -> Text {
    let role = |_, file: &File| Some(file.role?.number().saturating_add(1) as u64);
    let words = Role::all().map(|role| Some(role.as_str().to_owned()));
    numbered(at::cause, of_files(facts, at::cause, role), words)
}

pub(super) fn cause_operations(facts: &Facts) -> Text {
    let operation = |cause: &Cause| Some((cause.operation? as u64).saturating_add(1));
    let words = words_of::<Operation>();
    numbered(at::cause, of_causes(facts, operation), words)
}

pub(super) fn cause_known(_: &Facts) -> Text {
    Text::new([at::bits], words_of::<Known>(), |[b]| bits::KNOWN.of(b))
}

pub(super) fn cause_process_known(_: &Facts) -> Text {
    Text::new(
        [at::bits],
        words_of::<Known>(),
        |[b]| match bits::ONE_PROCESS.of(b) {
            0 => bits::KNOWN.of(b),
            _ => Known::Exact as u64,
        },
    )
}

pub(super) fn checkpoint_reasons(_: &Facts) -> Text {
    let words = std::iter::once(None).chain(words_of::<Reason>());
    Text::new([at::bits], words, |[b]| bits::REASON.of(b))
}

pub(super) fn forced_by(_: &Facts) -> Text {
    let words = std::iter::once(None).chain(words_of::<Force>());
    Text::new([at::bits], words, |[b]| bits::FORCE.of(b))
}

pub(super) fn devices(facts: &Facts) -> Text {
    let devices = facts
        .devices
        .iter()
        .map(|&device| Some(DeviceNumber::of(device).to_string()));
    Text::new([at::device], devices, |[code]| code)
}

/// Returns roles, which only regular files and their flushes have.
pub(super) fn roles(facts: &Facts) -> Text {
    let roles = labels::roles(&facts.origins);
    Text {
        words: roles.words(),
        code: code([at::bits, at::file], move |[word, file]| {
            roles.code([bits::KIND.of(word), file])
        }),
    }
}

/// Returns how names are known: by the file, or by the row itself if its blocks belong to no file.
pub(super) fn provenances(facts: &Facts) -> Text {
    let words = words_of::<Provenance>();
    let of_file = |file: &File| found_code(file.provenance);
    let of_file: Arc<[u64]> = facts.names().files.iter().map(of_file).collect();
    Text::new(
        [at::bits, at::file],
        std::iter::once(None).chain(words),
        move |[word, file]| match (bits::FOUND.of(word), file) {
            (0, _) => 0,
            (found, 0) => found,
            (found, file) => of_file.get(file as usize).copied().unwrap_or(found),
        },
    )
}

pub(super) fn stages(_: &Facts) -> Text {
    words_of_codes(bits::STAGE, |code| Stage(code).word())
}

pub(super) fn origins(_: &Facts) -> Text {
    words_of_codes(bits::ORIGIN, |code| Origin(code).word())
}

/// Returns the words of a field that has the bundle's codes, each one larger than there; 0 has no word.
fn words_of_codes(field: Field, word: fn(u8) -> String) -> Text {
    let word = |code: u64| Some(word(u8::try_from(code.checked_sub(1)?).ok()?));
    Text::new([at::bits], (0..=field.max()).map(word), move |[b]| {
        field.of(b)
    })
}

/// Returns blkparse's letters for a code of [`bits::RWBS`].
pub(super) fn rwbs(code: u64) -> &'static str {
    let mut action = 0;
    for (at, letter) in LETTERS.iter().enumerate() {
        if code >> at & 1 != 0 {
            action |= letter;
        }
    }
    blktrace::rwbs(action, u32::from(code >> LETTERS.len() != 0))
}
