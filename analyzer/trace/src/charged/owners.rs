// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sums that a tree is made of: by owner, by owner and layer, and by the files of submitters.

use std::hash::Hash;

use mostrace_map::class::Kind;

use super::{Charged, Owner};
use crate::answer::Key;
use crate::attribute::{HashMap, HashSet};
use crate::labels::{self, By, kind_code};
use crate::sums::{Groups, Label, Sort, Totals};
use crate::text::escape;
use crate::tree::GROUPINGS;

/// The recording, the number of the cause's process, and the codes of the other words.
type Code = (usize, Option<u32>, u32, u32);

/// Sums up all rows as a tree needs them.
pub(super) fn groups(charged: &Charged) -> [Groups; GROUPINGS.len()] {
    let origins = charged.origins();
    let tgids = labels::of_processes(origins, By::Cause, |_, process| process.tgid);
    let databases = labels::of_files(origins, By::Cause, |_, file| file.database().map(escape));
    let databases = labels::Lookup::new(databases, |[cause]: [u64; 1]| cause);
    let who = labels::causes_or_submitters(origins);
    let files = labels::cause_or_final_files(origins);
    let roles = labels::roles(origins);
    let numbers = |of: &Owner| [of.cause.0, of.process.0, of.file.0].map(u64::from);
    let code = |nth: usize, of: &Owner| -> Code {
        let [cause, process, file] = numbers(of);
        let tgid = tgids.get(cause as usize).copied().flatten();
        let who = who.code([cause, process, file]);
        (nth, tgid, who, databases.code([cause]))
    };
    let leaf = |nth: usize, of: &Owner| {
        let kind = of.kind.map_or(0, kind_code);
        let role = roles.code([kind, of.file.0.into()]);
        (code(nth, of), (of.kind, role, of.home_kind))
    };
    let mut owners: HashMap<Code, Totals> = HashMap::default();
    let mut leaves: HashMap<(Code, Layer), Totals> = HashMap::default();
    let mut targets: HashMap<(u32, u32, u32), Totals> = HashMap::default();
    for (nth, charges) in charged.of_each.iter().enumerate() {
        for ((sort, all), count) in charges.requests() {
            let of: HashSet<_> = all.iter().map(|owner| leaf(nth, owner)).collect();
            let owned: HashSet<Code> = of.iter().map(|(code, _)| *code).collect();
            for leaf in of {
                leaves.entry(leaf).or_default().count(sort, count, 0);
            }
            for owner in owned {
                owners.entry(owner).or_default().count(sort, count, 0);
            }
        }
        for (key, bytes) in charges.summing.keys() {
            let owner = Owner::of(key);
            let leaf = leaf(nth, &owner);
            let (code, _) = leaf;
            let [cause, _, file] = numbers(&owner);
            let target = (code.2, files.code([cause, file]), code.3);
            let each = [
                owners.entry(code).or_default(),
                leaves.entry(leaf).or_default(),
                targets.entry(target).or_default(),
            ];
            for totals in each {
                totals.count(Sort::only(key.op), 0, bytes);
            }
        }
    }
    let total = charged.totals(|_| true);
    let (who, databases) = (who.words(), databases.words());
    let (files, roles) = (files.words(), roles.words());
    let owner = |&(nth, tgid, process, database): &Code| {
        let bundle = origins.list.get(nth).map(|origin| origin.name.as_str());
        vec![
            tgid.map_or(Label::Empty, |tgid| Label::Id(tgid.into())),
            label(word(&who, process)),
            label(word(&databases, database)),
            label(bundle),
        ]
    };
    [
        labelled(owners, total, owner),
        labelled(leaves, total, |(of, (kind, role, home))| {
            let class = kind.map(|kind| kind.class().as_str());
            let (kind, home) = (kind.map(Into::into), home.map(Into::into));
            let layer = [class, kind, word(&roles, *role), home].map(label);
            [owner(of), layer.into()].concat()
        }),
        labelled(targets, total, |&(process, file, database)| {
            let words = [
                word(&who, process),
                word(&files, file),
                word(&databases, database),
            ];
            words.map(label).into()
        }),
    ]
}

/// Kind, code of the role, kind at the home.
type Layer = (Option<Kind>, u32, Option<Kind>);

impl Owner {
    fn of(key: &Key) -> Owner {
        Owner {
            cause: key.cause,
            process: key.process,
            file: key.file,
            kind: key.kind,
            home_kind: key.home_kind,
        }
    }
}

fn word(words: &[Option<String>], code: u32) -> Option<&str> {
    words.get(code as usize)?.as_deref()
}

fn label(word: Option<&str>) -> Label {
    word.map_or(Label::Empty, |word| Label::Text(word.to_owned()))
}

fn labelled<K: Eq + Hash>(
    sums: HashMap<K, Totals>,
    total: Totals,
    labels: impl Fn(&K) -> Vec<Label>,
) -> Groups {
    Groups {
        groups: sums.iter().map(|(key, sum)| (labels(key), *sum)).collect(),
        total,
        ..Groups::default()
    }
}
