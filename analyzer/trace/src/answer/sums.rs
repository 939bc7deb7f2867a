// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sums that the answer is made of, and the fold that sums them up while a trace is read.

use std::cmp::Reverse;
use std::hash::Hash;
use std::io;

use mostrace_map::class::Kind;

use super::GROUPINGS;
use crate::attribute::{FileId, HashMap, ProcessId, Request, Row};
use crate::causes::{Cause, CauseId, Known, Verdicts};
use crate::labels::{self, By};
use crate::origins::{Base, Origins};
use crate::pipeline::{Fold, Step};
use crate::sums::{Groups, Label, Sort, Totals};
use crate::tally::{Tally, sum};

/// The sums by [`GROUPINGS`]. Groups have only bytes, because a request may have rows in several of them; requests are in the totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// By layer, and by role and operation of the cause.
    pub layers: Groups,
    /// By process and file of the cause, and layer.
    pub who: Groups,
    /// By certainty.
    pub known: Groups,
}

impl Sums {
    /// Takes sums by each of [`GROUPINGS`]. Groups of equal bytes are put into the order of their labels.
    pub fn new([layers, who, known]: [Groups; GROUPINGS.len()]) -> Sums {
        let only_bytes = |groups: Groups| {
            let each = groups.groups.into_iter();
            let mut all: Vec<_> = each.map(|(l, totals)| (l, totals.only_bytes())).collect();
            all.sort_by(order);
            Groups {
                groups: all,
                ..groups
            }
        };
        Sums {
            layers: only_bytes(layers),
            who: only_bytes(who),
            known: only_bytes(known),
        }
    }
}

/// A group: a label for each column, and its sums.
type Group = (Vec<Label>, Totals);

/// Puts groups with more bytes first, then those with the first labels. What the others were summed up as is the last of all.
fn order(one: &Group, other: &Group) -> std::cmp::Ordering {
    let rank = |(labels, totals): &Group| {
        let is_rest = matches!(labels.first(), Some(Label::Rest(_)));
        (is_rest, Reverse(totals.bytes()))
    };
    let by_bytes = rank(one).cmp(&rank(other));
    by_bytes.then_with(|| one.0.cmp(&other.0))
}

/// Sums up rows by the numbers of their names. The names are known at the end.
#[derive(Default)]
pub struct Summing {
    base: Base,
    bytes: HashMap<Key, u64>,
    total: Totals,
}

/// All that the groups of a row depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    cause: CauseId,
    process: ProcessId,
    file: FileId,
    kind: Option<Kind>,
    home_kind: Option<Kind>,
    known: Known,
    sort: Sort,
}

impl Fold for Summing {
    fn begin(&mut self, base: Base) {
        self.base = base;
    }

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        self.push(&step.request, step.rows, step.verdicts);
        Ok(())
    }
}

impl Summing {
    /// Adds a completed request.
    pub fn push(&mut self, request: &Request, rows: &[Row], verdicts: Option<&Verdicts>) {
        let base = self.base;
        let sort = Sort::of(request);
        let mut verdicts = verdicts.into_iter().flat_map(Verdicts::iter);
        let mut all: u64 = 0;
        for row in rows {
            all.tally(row.bytes.into());
            let key = |cause: CauseId, known: Known| Key {
                cause: base.cause(cause),
                process: base.process(row.process),
                file: base.file(row.file),
                kind: row.kind,
                home_kind: row.journal.and_then(|journal| journal.home_kind),
                known,
                sort,
            };
            match verdicts.next() {
                Some((_, shares @ [_, _, ..])) => {
                    for share in shares {
                        self.add(key(share.cause, share.known), share.bytes);
                    }
                }
                Some((verdict, shares)) => {
                    let cause = shares.first().map_or(CauseId::UNKNOWN, |share| share.cause);
                    self.add(key(cause, verdict.known), row.bytes);
                }
                None => self.add(key(CauseId::UNKNOWN, Known::Unknown), row.bytes),
            }
        }
        self.total.count(sort, 1, all);
    }

    fn add(&mut self, key: Key, bytes: u32) {
        self.bytes.entry(key).or_default().tally(bytes.into());
    }

    /// Returns the sums, given the names that the rows refer to.
    pub fn finish(self, origins: &Origins) -> Sums {
        let who = labels::causes_or_submitters(origins);
        let files = labels::cause_or_final_files(origins);
        let roles = labels::roles(origins);
        let cause_roles = labels::of_files(origins, By::Cause, |_, file| Some(file.role?.as_str()));
        let operations =
            labels::of_causes(origins, |cause: &Cause| Some(cause.operation?.as_str()));
        let of_cause = |words: &[Option<&'static str>], cause: CauseId| {
            words.get(cause.0 as usize).copied().flatten()
        };
        let mut layers = Grouped::default();
        let mut causers = Grouped::default();
        let mut known = Grouped::default();
        for (key, bytes) in &self.bytes {
            let [cause, process, file] = [key.cause.0, key.process.0, key.file.0].map(u64::from);
            let kind_code = key.kind.map_or(0, labels::kind_code);
            let layer = (key.kind, roles.code([kind_code, file]), key.home_kind);
            let (role, operation) = (
                of_cause(&cause_roles, key.cause),
                of_cause(&operations, key.cause),
            );
            layers.add((layer, role, operation), key.sort, *bytes);
            let whose = (who.code([cause, process, file]), files.code([cause, file]));
            causers.add((whose, layer), key.sort, *bytes);
            known.add(key.known, key.sort, *bytes);
        }
        let (who, files, roles) = (who.words(), files.words(), roles.words());
        let word = |words: &[Option<String>], code: u32| {
            let word = words.get(code as usize).cloned().flatten();
            word.map_or(Label::Empty, Label::Text)
        };
        let layer = |(kind, role, home): (Option<Kind>, u32, Option<Kind>)| {
            let class = kind.map(|kind| kind.class().as_str());
            [
                label(class),
                label(kind.map(Into::into)),
                word(&roles, role),
                label(home.map(Into::into)),
            ]
        };
        let groups = [
            layers.groups(|(of, role, operation)| {
                let cause = [label(role), label(operation)];
                layer(of).into_iter().chain(cause).collect()
            }),
            causers.groups(|((process, file), of)| {
                let whose = [word(&who, process), word(&files, file)];
                whose.into_iter().chain(layer(of)).collect()
            }),
            known.groups(|known| vec![Label::Text(known.as_str().to_owned())]),
        ];
        let mut groupings = GROUPINGS.into_iter();
        Sums::new(groups.map(|groups| {
            let (by, top) = groupings.next().unwrap_or_default();
            Groups {
                by: by.to_vec(),
                groups: first(groups, top),
                total: self.total,
            }
        }))
    }
}

fn label(word: Option<&'static str>) -> Label {
    word.map_or(Label::Empty, |word| Label::Text(word.to_owned()))
}

/// Sums by codes of words.
struct Grouped<K>(HashMap<K, Totals>);

impl<K> Default for Grouped<K> {
    fn default() -> Self {
        Grouped(HashMap::default())
    }
}

impl<K: Eq + Hash> Grouped<K> {
    fn add(&mut self, key: K, sort: Sort, bytes: u64) {
        self.0.entry(key).or_default().count(sort, 0, bytes);
    }

    fn groups(self, labels: impl Fn(K) -> Vec<Label>) -> Vec<Group> {
        let each = self.0.into_iter();
        each.map(|(key, totals)| (labels(key), totals)).collect()
    }
}

/// Returns the first groups, and the others as one.
fn first(mut groups: Vec<Group>, top: Option<usize>) -> Vec<Group> {
    let top = top.unwrap_or(usize::MAX);
    if groups.len() > top {
        groups.sort_by(order);
        let rest = groups.split_off(top);
        let columns = groups.first().map_or(0, |(labels, _)| labels.len());
        let all = sum(rest.iter().map(|(_, totals)| *totals));
        groups.push((vec![Label::Rest(rest.len()); columns], all));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_summed_up_as_the_rest_comes_last() {
        let group = |name: &str, write_bytes| {
            let totals = Totals {
                write_bytes,
                ..Totals::default()
            };
            (vec![Label::Text(name.into()), Label::Empty], totals)
        };
        let all = vec![group("b", 1), group("c", 3), group("a", 1), group("d", 2)];
        let named = |groups: Vec<Group>| {
            let name = |(labels, totals): &Group| (labels[0].text(), totals.write_bytes);
            groups.iter().map(name).collect::<Vec<_>>()
        };
        let word = |word: &str| Some(word.to_owned());
        assert_eq!(
            named(first(all.clone(), Some(1))),
            [(word("c"), 3), (word("(3 others)"), 4)]
        );
        assert_eq!(first(all.clone(), Some(4)), all);
        let sums = Sums::new([
            Groups {
                groups: first(all, Some(1)),
                ..Groups::default()
            },
            Groups::default(),
            Groups::default(),
        ]);
        assert_eq!(
            named(sums.layers.groups),
            [(word("c"), 3), (word("(3 others)"), 4)]
        );
    }
}
