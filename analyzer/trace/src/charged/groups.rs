// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums by columns that depend on the owners of rows and their layers.

use std::cmp::Reverse;

use mostrace_map::class::{Class, Kind};

use super::{Charged, OwnerKey};
use crate::attribute::{File, HashMap, HashSet};
use crate::causes::{Cause, CauseId};
use crate::labels::{self, By, Lookup, kind_code};
use crate::origins::Origins;
use crate::sums::{Groups, Label, Sort, Totals};
use crate::text::escape;

/// Returns the code that an owner's rows of the recording at an index have in a column.
type Code<'o> = Box<dyn Fn(usize, &OwnerKey) -> u64 + 'o>;

/// A column: the code of rows, and the label of a code.
struct Column<'o> {
    code: Code<'o>,
    label: Box<dyn Fn(u64) -> Label + 'o>,
}

/// Sums up by these columns what has a cause that is wanted.
pub(super) fn of(
    charged: &Charged<'_>,
    by: &[&'static str],
    total: Totals,
    is_wanted: impl Fn(CauseId) -> bool,
) -> Groups {
    let columns = by.iter().map(|name| column(name, charged.origins));
    let columns: Vec<Column<'_>> = columns.collect();
    let code = |nth: usize, owner: &OwnerKey| -> Box<[u64]> {
        let codes = columns.iter().map(|column| (column.code)(nth, owner));
        codes.collect()
    };
    let mut sums: HashMap<Box<[u64]>, Totals> = HashMap::default();
    for (nth, charges) in charged.charging.of_each.iter().enumerate() {
        for ((sort, owners), count) in charges.requests() {
            let owners = owners.iter().filter(|owner| is_wanted(owner.cause));
            let codes: HashSet<_> = owners.map(|owner| code(nth, owner)).collect();
            for code in codes {
                sums.entry(code).or_default().count(sort, count, 0);
            }
        }
        for (key, bytes) in charges.summing.keys() {
            if is_wanted(key.owner.cause) {
                let sum = sums.entry(code(nth, &key.owner)).or_default();
                sum.count(Sort::only(key.op), 0, bytes);
            }
        }
    }
    let labels = |codes: &[u64]| {
        let labels = codes.iter().zip(&columns);
        labels.map(|(code, column)| (column.label)(*code)).collect()
    };
    let mut groups: Vec<(Vec<Label>, Totals)> = sums
        .iter()
        .map(|(codes, totals)| (labels(codes), *totals))
        .collect();
    let rank = |totals: &Totals| Reverse((totals.bytes(), totals.requests));
    groups.sort_unstable_by(|a, b| (rank(&a.1), &a.0).cmp(&(rank(&b.1), &b.0)));
    Groups {
        by: by.to_vec(),
        groups,
        total,
    }
}

fn column<'o>(name: &str, origins: &'o Origins) -> Column<'o> {
    let cause = |owner: &OwnerKey| owner.cause.0;
    match name {
        "bundle" => Column {
            code: Box::new(|nth, _| nth as u64),
            label: Box::new(|nth| {
                let origin = usize::try_from(nth)
                    .ok()
                    .and_then(|nth| origins.list.get(nth));
                text(origin.map(|origin| &*origin.name))
            }),
        },
        "class" => Column {
            code: Box::new(|_, owner| number(owner.kind.map(|kind| kind.class() as u64))),
            label: Box::new(|code| text(nth(Class::ALL, code).map(|class| class.as_str()))),
        },
        "kind" => of_kinds(|owner| owner.kind),
        "home_kind" => of_kinds(|owner| owner.home_kind),
        "cause_tgid" => {
            let tgids = labels::of_processes(origins, By::Cause, |_, process| process.tgid);
            let tgid = move |owner: &OwnerKey| tgids.get(owner.cause.0 as usize).copied().flatten();
            Column {
                code: Box::new(move |_, owner| number(tgid(owner).map(u64::from))),
                label: Box::new(|code| code.checked_sub(1).map_or(Label::Empty, Label::Id)),
            }
        }
        "role" => worded(labels::roles(origins), |owner| {
            [owner.kind.map_or(0, kind_code), owner.file.0.into()]
        }),
        "file" => listed(labels::file_labels(origins, By::Own), |owner| owner.file.0),
        "cause_or_submitter" => worded(labels::causes_or_submitters(origins), |owner| {
            [owner.cause.0, owner.process.0, owner.file.0].map(u64::from)
        }),
        "cause_or_final_file" => worded(labels::cause_or_final_files(origins), |owner| {
            [owner.cause.0, owner.file.0].map(u64::from)
        }),
        "cause_database" => {
            let database = |_, file: &File| file.database().map(escape);
            listed(labels::of_files(origins, By::Cause, database), cause)
        }
        "cause_role" => {
            let role = |_, file: &File| Some(file.role?.as_str().to_owned());
            listed(labels::of_files(origins, By::Cause, role), cause)
        }
        "cause_op" => {
            let operation = |cause: &Cause| Some(cause.operation?.as_str().to_owned());
            listed(labels::of_causes(origins, operation), cause)
        }
        name => unreachable!("{name}: no column of owners"),
    }
}

/// A word for each number that an owner may have.
fn listed<'o>(words: Vec<Option<String>>, number: fn(&OwnerKey) -> u32) -> Column<'o> {
    let words = Lookup::new(words, |[number]: [u64; 1]| number);
    worded(words, move |owner| [number(owner).into()])
}

fn worded<'o, const N: usize>(
    words: Lookup<impl Fn([u64; N]) -> u64 + 'o>,
    row: impl Fn(&OwnerKey) -> [u64; N] + 'o,
) -> Column<'o> {
    let all = words.words();
    let word = move |code: u64| all.get(usize::try_from(code).ok()?)?.clone();
    Column {
        code: Box::new(move |_, owner| words.code(row(owner)).into()),
        label: Box::new(move |code| word(code).map_or(Label::Empty, Label::Text)),
    }
}

fn of_kinds<'o>(kind: fn(&OwnerKey) -> Option<Kind>) -> Column<'o> {
    Column {
        code: Box::new(move |_, owner| kind(owner).map_or(0, kind_code)),
        label: Box::new(|code| text(nth(Kind::ALL, code).map(Kind::as_str))),
    }
}

/// Returns the code of a number that may be unknown.
fn number(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number.saturating_add(1))
}

/// Returns the value of such a code.
fn nth<T: Copy>(all: &[T], code: u64) -> Option<T> {
    all.get(usize::try_from(code.checked_sub(1)?).ok()?)
        .copied()
}

fn text(word: Option<&str>) -> Label {
    word.map_or(Label::Empty, |word| Label::Text(word.to_owned()))
}
