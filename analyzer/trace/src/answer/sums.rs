// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sums that the answer is made of, and the fold that sums them up while a trace is read.

use std::cmp::Reverse;
use std::hash::Hash;
use std::io;

use mostrace_map::class::Kind;

use super::GROUPINGS;
use super::destinations::names;
use super::keys::{ByKey, Key, OwnerKey};
use crate::attribute::{HashMap, Op, Request, Row};
use crate::causes::{CauseId, Known, Verdicts};
use crate::labels::{self, By, Lookup};
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

    /// Sums up what has these keys; `total` are the sums of all.
    pub fn of<'k>(
        keys: impl Iterator<Item = (&'k Key, u64)>,
        origins: &Origins,
        total: Totals,
    ) -> Sums {
        let words = words(origins);
        let cause_roles = labels::of_files(origins, By::Cause, |_, file| file.role);
        let operation = |cause: CauseId| origins.causes.get(cause.0 as usize)?.operation;
        let mut layers = Grouped::default();
        let mut who = Vec::new();
        let mut known = Grouped::default();
        for (key, bytes) in keys {
            let (whose, layer) = words.codes(&key.owner);
            let role = cause_roles
                .get(key.owner.cause.0 as usize)
                .copied()
                .flatten();
            layers.add((layer, role, operation(key.owner.cause)), key.op, bytes);
            who.push(((whose, layer), key.op, bytes));
            known.add(key.known, key.op, bytes);
        }
        let [of_layers, of_who, of_known] = GROUPINGS.map(|(by, top)| (by, top, total));
        Sums {
            layers: groups(
                layers.into_list(),
                of_layers,
                |&(layer, role, operation)| {
                    let [class, kind, of, home] = words.layer(layer);
                    let role = role.map(|role| role.as_str());
                    [class, kind, of, home, role, operation.map(Into::into)]
                },
            ),
            who: groups(sorted_up(who), of_who, |&(whose, layer)| {
                words.all(whose, layer)
            }),
            known: groups(known.into_list(), of_known, |known| [Some(known.as_str())]),
        }
    }
}

/// The codes of the process and the file of a cause.
type Whose = (u32, u32);
/// What a layer depends on: the kind, the code of the role, and the kind at home.
type Of = (Option<Kind>, u32, Option<Kind>);

/// Which word a row has, by its numbers.
trait Number<const N: usize>: Fn([u64; N]) -> u64 {}

impl<const N: usize, F: Fn([u64; N]) -> u64> Number<N> for F {}

/// The words of keys. Equal words have equal codes.
struct Words<W, F, R> {
    who: Lookup<W>,
    files: Lookup<F>,
    roles: Lookup<R>,
}

fn words(origins: &Origins) -> Words<impl Number<3>, impl Number<2>, impl Number<2>> {
    Words {
        who: labels::causes_or_submitters(origins),
        files: labels::cause_or_final_files(origins),
        roles: labels::roles(origins),
    }
}

impl<W: Number<3>, F: Number<2>, R: Number<2>> Words<W, F, R> {
    fn codes(&self, owner: &OwnerKey) -> (Whose, Of) {
        let [cause, process, file] = [owner.cause.0, owner.process.0, owner.file.0].map(u64::from);
        let process = self.who.code([cause, process, file]);
        let role = [owner.kind.map_or(0, labels::kind_code), file];
        (
            (process, self.files.code([cause, file])),
            (owner.kind, self.roles.code(role), owner.home_kind),
        )
    }

    /// Returns the words of the columns of a [`layer`](crate::sums::layer).
    fn layer(&self, (kind, role, home): Of) -> [Option<&str>; 4] {
        let class = kind.map(|kind| kind.class().as_str());
        let role = self.roles.word(role);
        [class, kind.map(Into::into), role, home.map(Into::into)]
    }

    /// Returns the words of the second of [`GROUPINGS`].
    fn all(&self, (process, file): Whose, layer: Of) -> [Option<&str>; 6] {
        let [class, kind, role, home] = self.layer(layer);
        let (process, file) = (self.who.word(process), self.files.word(file));
        [process, file, class, kind, role, home]
    }
}

/// Returns what gives the program and the file of an owner, and its layer, by the names that destinations have; what carries no data has
/// no layer.
pub fn names_of_owners(
    origins: &Origins,
    filesystem: &str,
) -> impl Fn(&OwnerKey) -> ([String; 2], Option<String>) {
    let words = words(origins);
    move |owner| {
        let (whose, layer) = words.codes(owner);
        names(&words.all(whose, layer).map(label), filesystem)
    }
}

fn label(word: Option<&str>) -> Label {
    word.map_or(Label::Empty, |word| Label::Text(word.into()))
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
    bytes: ByKey,
    total: Totals,
}

impl Fold for Summing {
    fn begin(&mut self, base: Base) {
        self.base = base;
        self.bytes.begin(base);
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
        let mut verdicts = verdicts.into_iter().flat_map(Verdicts::iter);
        let mut all: u64 = 0;
        for row in rows {
            all.tally(row.bytes.into());
            let op = request.op;
            let key = |cause, known| Key {
                owner: OwnerKey::new(base, row, cause),
                known,
                op,
            };
            match verdicts.next() {
                Some((_, shares @ [_, _, ..])) => {
                    for share in shares {
                        self.bytes.add(key(share.cause, share.known), share.bytes);
                    }
                }
                Some((verdict, shares)) => {
                    let cause = shares.first().map_or(CauseId::UNKNOWN, |share| share.cause);
                    self.bytes.add(key(cause, verdict.known), row.bytes);
                }
                None => self
                    .bytes
                    .add(key(CauseId::UNKNOWN, Known::Unknown), row.bytes),
            }
        }
        self.total.count(Sort::of(request), 1, all);
    }

    /// Returns the bytes by all that groups depend on.
    pub fn keys(&self) -> impl Iterator<Item = (&Key, u64)> {
        self.bytes.iter()
    }

    /// Returns the sums of all rows.
    pub fn total(&self) -> Totals {
        self.total
    }

    /// Returns the sums, given the names that the rows refer to.
    pub fn finish(&self, origins: &Origins) -> Sums {
        Sums::of(self.keys(), origins, self.total)
    }
}

/// The operations whose bytes have a sum of their own; the last one stands for all others.
const OPS: [Op; 5] = [Op::Write, Op::Read, Op::Discard, Op::WriteZeroes, Op::Other];

/// Bytes by [`OPS`].
type Bytes = [u64; OPS.len()];

fn totals(bytes: &Bytes) -> Totals {
    let mut totals = Totals::default();
    for (op, bytes) in OPS.into_iter().zip(bytes) {
        totals.count(Sort::only(op), 0, *bytes);
    }
    totals
}

/// Sums by codes of words.
struct Grouped<K>(HashMap<K, Bytes>);

impl<K> Default for Grouped<K> {
    fn default() -> Self {
        Grouped(HashMap::default())
    }
}

impl<K: Eq + Hash> Grouped<K> {
    fn add(&mut self, key: K, op: Op, bytes: u64) {
        add(self.0.entry(key).or_default(), op, bytes);
    }

    fn into_list(self) -> Vec<(K, Bytes)> {
        self.0.into_iter().collect()
    }
}

fn add(sums: &mut Bytes, op: Op, bytes: u64) {
    let at = OPS.iter().position(|one| *one == op);
    // What it does not have, such as a zone's operations, counts as the last: others.
    if let Some(sum) = sums.get_mut(at.unwrap_or(OPS.len().saturating_sub(1))) {
        sum.tally(bytes);
    }
}

/// Sums up by codes of words of which there may be so many that sorting them is faster than hashing.
fn sorted_up<K: Ord + Copy>(mut all: Vec<(K, Op, u64)>) -> Vec<(K, Bytes)> {
    all.sort_unstable_by_key(|(key, ..)| *key);
    let equal = all.chunk_by(|(a, ..), (b, ..)| a == b);
    let sums = equal.filter_map(|equal| {
        let mut sums = Bytes::default();
        for (_, op, bytes) in equal {
            add(&mut sums, *op, *bytes);
        }
        Some((equal.first()?.0, sums))
    });
    sums.collect()
}

/// Returns the groups with the words of their keys; those beyond the first `top` are one. Only those that are shown get labels of
/// their own, because there may be many.
fn groups<'w, K, const N: usize>(
    mut all: Vec<(K, Bytes)>,
    (by, top, total): (&[&'static str], Option<usize>, Totals),
    words: impl Fn(&K) -> [Option<&'w str>; N],
) -> Groups {
    let bytes = |sums: &Bytes| sums[0].saturating_add(sums[1]);
    // The empty label is the last.
    let names = |key: &K| words(key).map(|word| (word.is_none(), word));
    let top = top.unwrap_or(usize::MAX).min(all.len());
    all.sort_unstable_by_key(|(_, sums)| Reverse(bytes(sums)));
    let mut sorted: usize = 0;
    // Words decide between groups of equal bytes, and are looked up once for each.
    for equal in all.chunk_by_mut(|(_, a), (_, b)| bytes(a) == bytes(b)) {
        if sorted >= top {
            break;
        }
        sorted.tally(equal.len());
        if equal.len() > 1 {
            equal.sort_by_cached_key(|(key, _)| names(key));
        }
    }
    let rest = all.split_off(top);
    let group = |(key, sums): &(K, Bytes)| (words(key).map(label).to_vec(), totals(sums));
    let mut groups: Vec<Group> = all.iter().map(group).collect();
    if !rest.is_empty() {
        let sums = sum(rest.iter().map(|(_, sums)| *sums));
        groups.push((vec![Label::Rest(rest.len()); N], totals(&sums)));
    }
    Groups {
        by: by.to_vec(),
        groups,
        total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_summed_up_as_the_rest_comes_last() {
        let words = [Some("b"), Some("c"), Some("a"), None];
        let mut all = Grouped::default();
        for (at, bytes) in [(0, 1), (1, 3), (2, 1), (3, 1)] {
            all.add(at, Op::Write, bytes);
            all.add(at, Op::Flush, 0);
        }
        let named = |top| {
            let all = all.0.clone().into_iter().collect();
            let groups = groups(all, (&["x"], top, Totals::default()), |at: &usize| {
                [words[*at]]
            });
            // Whoever summed them up, they are in the same order.
            let sums = Sums::new([groups.clone(), Groups::default(), Groups::default()]);
            assert_eq!(sums.layers, groups);
            let name = |(labels, totals): &Group| (labels[0].text(), totals.write_bytes);
            groups.groups.iter().map(name).collect::<Vec<_>>()
        };
        let word = |word: &str| Some(word.to_owned());
        let each = [(word("c"), 3), (word("a"), 1), (word("b"), 1), (None, 1)];
        assert_eq!(named(None), each);
        assert_eq!(named(Some(4)), each);
        let cut = [(word("c"), 3), (word("a"), 1), (word("(2 others)"), 2)];
        assert_eq!(named(Some(2)), cut);
    }
}
