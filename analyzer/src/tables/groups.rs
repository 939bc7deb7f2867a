// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums over rows, in groups.

use std::cmp::Reverse;
use std::collections::HashMap;

use polars::prelude::{
    Column as Values, DataFrame, DataType, Expr, IntoLazy, JoinArgs, JoinType, LazyFrame,
    UnionArgs, col, concat, len,
};

use super::totals::{FIELDS, Sort, Totals};
use super::{Result, Table, numbers, texts};
use crate::attribute::Op;
use crate::facts::catalogue::Key;
use crate::facts::row::{Words, code, flag};
use crate::facts::{Column, Facts, Filter, bits, stored_column};

/// A group's name in one column.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// A number.
    Id(u64),
    /// A word.
    Text(String),
    /// Not known, or does not apply.
    Empty,
    /// So many groups that are not shown one by one.
    Rest(usize),
}

impl Label {
    /// As text; None for an empty cell.
    pub fn text(&self) -> Option<String> {
        match self {
            Label::Id(id) => Some(id.to_string()),
            Label::Text(text) => Some(text.clone()),
            Label::Empty => None,
            Label::Rest(groups) => Some(format!("({groups} others)")),
        }
    }
}

/// Rows summed by one or more columns, the group with the most bytes first.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    by: Vec<&'static str>,
    /// A label for each of `by`, and the sums.
    pub groups: Vec<(Vec<Label>, Totals)>,
    /// The sums of all rows.
    pub total: Totals,
}

impl Groups {
    /// Sums the rows that pass the filter. With `top`, all but so many groups become one, labelled
    /// as the rest.
    ///
    /// # Errors
    /// A temporary file cannot be read, or the filter does not fit its columns.
    pub fn new(
        facts: &Facts,
        by: &[&'static Column],
        top: Option<usize>,
        filter: Option<&Filter>,
    ) -> Result<Groups> {
        let mut all = Groups::several(facts, &[by.to_vec()], filter)?;
        let groups = all.pop().unwrap_or_default();
        match top {
            Some(top) => groups.top(facts, by, top, filter),
            None => Ok(groups),
        }
    }

    /// Sums the rows in several ways in one pass.
    ///
    /// # Errors
    /// As [`Groups::new`].
    pub fn several(
        facts: &Facts,
        sets: &[Vec<&'static Column>],
        filter: Option<&Filter>,
    ) -> Result<Vec<Groups>> {
        let keys = Keys::new(facts, sets.iter().flatten().copied());
        let mut sums: Vec<Sums> = sets.iter().map(|set| Sums::new(keys.names(set))).collect();
        let mut total = Sums::new(Vec::new());
        for view in facts.view(keys.columns(), filter) {
            let batch = view?.collect()?.lazy();
            let whole = batch.clone().filter(col(WHOLE));
            // Requests of one row add up whatever they are grouped by.
            let whole = counted(whole, &keys.all()).collect()?;
            let spanning = batch.filter(col(WHOLE).not()).collect()?;
            for sums in sums.iter_mut().chain([&mut total]) {
                sums.add(&whole, &spanning)?;
            }
        }
        let total = total.finish(&[])?.total;
        sums.into_iter()
            .zip(sets)
            .map(|(sums, set)| {
                let mut groups = sums.finish(&keys.of(set))?;
                groups.total = total;
                groups.by = set.iter().map(|column| column.name).collect();
                Ok(groups)
            })
            .collect()
    }

    /// All but the first `top` as one group. It is summed anew: a request with rows in two of its
    /// groups is one request.
    ///
    /// # Errors
    /// As [`Groups::new`].
    pub fn top(
        mut self,
        facts: &Facts,
        by: &[&'static Column],
        top: usize,
        filter: Option<&Filter>,
    ) -> Result<Groups> {
        let others = self.groups.len().saturating_sub(top);
        if others == 0 {
            return Ok(self);
        }
        let keys = Keys::new(facts, by.iter().copied());
        let shown = keys.frame(by, &self.groups[..top])?;
        let names: Vec<Expr> = keys
            .names(by)
            .iter()
            .map(|name| col(name.as_str()))
            .collect();
        let mut sums = Sums::new(Vec::new());
        for view in facts.view(keys.columns(), filter) {
            let join = JoinArgs {
                nulls_equal: true,
                ..JoinArgs::new(JoinType::Left)
            };
            let rest = view?
                .join(shown.clone().lazy(), &names, &names, join)
                .filter(col(SHOWN).is_null())
                .collect()?
                .lazy();
            let whole = counted(rest.clone().filter(col(WHOLE)), &[]).collect()?;
            sums.add(&whole, &rest.filter(col(WHOLE).not()).collect()?)?;
        }
        self.groups.truncate(top);
        let rest = vec![Label::Rest(others); by.len()];
        self.groups.push((rest, sums.finish(&[])?.total));
        Ok(self)
    }

    /// As a table, its last row the total.
    ///
    /// # Errors
    /// Never, as two columns of one name are not asked for.
    pub fn table(&self) -> Result<Table> {
        let mut columns = self.labels();
        for (name, field) in FIELDS {
            columns.push(numbers(name, self.sums().map(|t| Some(field(t)))));
        }
        Table::with_total(columns)
    }

    /// The columns that name the groups, the first of them saying `total` in the end.
    pub(super) fn labels(&self) -> Vec<Values> {
        let column = |(at, name): (usize, &&'static str)| {
            let total = (at == 0).then(|| "total".to_owned());
            let labels = self.groups.iter().map(|(labels, _)| labels[at].text());
            texts(name, labels.chain([total]))
        };
        self.by.iter().enumerate().map(column).collect()
    }

    /// The sums of the groups, then the total.
    pub fn sums(&self) -> impl Iterator<Item = &Totals> {
        self.groups
            .iter()
            .map(|(_, totals)| totals)
            .chain([&self.total])
    }
}

pub(super) const WHOLE: &str = "_whole";
const SORT: &str = "_sort";
pub(super) const REQUEST: &str = stored_column::request;
const BYTES: &str = stored_column::bytes;
const COUNT: &str = "_count";
const SHOWN: &str = "_shown";

/// What rows are grouped by, and how the groups are called.
pub(super) struct Keys {
    keys: Vec<(&'static str, Key)>,
}

impl Keys {
    pub fn new(facts: &Facts, columns: impl Iterator<Item = &'static Column>) -> Keys {
        let mut keys: Vec<(&'static str, Key)> = Vec::new();
        for column in columns {
            if !keys.iter().any(|(name, _)| *name == column.name) {
                keys.extend(column.key(facts).map(|key| (column.name, key)));
            }
        }
        Keys { keys }
    }

    /// All keys, and what is summed.
    pub fn columns(&self) -> Vec<Expr> {
        let keys = self.keys.iter().map(|(name, key)| {
            let expr = match key {
                Key::Text(text) => text.code.clone(),
                Key::Number(expr) => expr.clone(),
            };
            expr.alias(*name)
        });
        let sums = [
            code([stored_column::bits], |[b]| sort_code(b)).alias(SORT),
            flag([stored_column::bits], |[b]| bits::PART.of(b) == 0).alias(WHOLE),
            col(REQUEST),
            col(BYTES).cast(DataType::UInt64),
        ];
        keys.chain(sums).collect()
    }

    pub fn all(&self) -> Vec<String> {
        self.keys
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect()
    }

    fn names(&self, set: &[&Column]) -> Vec<String> {
        set.iter().map(|column| column.name.to_owned()).collect()
    }

    /// The words of each column of a set; None for numbers.
    pub fn of(&self, set: &[&Column]) -> Vec<Option<Words>> {
        let words = |column: &&Column| {
            let key = self.keys.iter().find(|(name, _)| *name == column.name);
            match key {
                Some((_, Key::Text(text))) => Some(text.words.clone()),
                _ => None,
            }
        };
        set.iter().map(words).collect()
    }

    /// The keys of some groups, as a frame with one more column.
    fn frame(&self, by: &[&Column], groups: &[(Vec<Label>, Totals)]) -> Result<DataFrame> {
        let mut columns = Vec::new();
        for (at, (column, words)) in by.iter().zip(self.of(by)).enumerate() {
            let labels = groups.iter().map(|(labels, _)| &labels[at]);
            columns.push(match words {
                Some(words) => {
                    let code = |label: &Label| {
                        let text = label.text();
                        words.iter().position(|word| *word == text)
                    };
                    let codes = labels.map(|label| code(label).map(|at| at as u64));
                    numbers(column.name, codes).cast(&DataType::UInt32)?
                }
                None => numbers(
                    column.name,
                    labels.map(|label| match label {
                        Label::Id(id) => Some(*id),
                        _ => None,
                    }),
                ),
            });
        }
        columns.push(numbers(SHOWN, groups.iter().map(|_| Some(1))));
        DataFrame::new_infer_height(columns)
    }
}

/// [`Sort`] as a number: the operation, and three flags above it.
fn sort_code(word: u64) -> u32 {
    let letters = bits::RWBS.of(word);
    let (sync, fua) = (letters & 1, letters >> 1 & 1);
    let flags = sync | fua << 1 | bits::FAILED.of(word) << 2;
    (bits::OP.of(word) | flags << 3) as u32
}

fn sort_of(code: u32) -> Sort {
    let flag = |at: u32| code >> at & 1 != 0;
    Sort {
        op: Op::ALL
            .get((code & 7) as usize)
            .copied()
            .unwrap_or_default(),
        sync: flag(3),
        fua: flag(4),
        failed: flag(5),
    }
}

pub(super) fn columns(names: &[String], more: &[&str]) -> Vec<Expr> {
    let names = names.iter().map(String::as_str);
    names.chain(more.iter().copied()).map(col).collect()
}

/// Requests and bytes by keys and sort, of rows of which each is a request.
fn counted(rows: LazyFrame, keys: &[String]) -> LazyFrame {
    rows.group_by(columns(keys, &[SORT]))
        .agg([len().cast(DataType::UInt64).alias(COUNT), col(BYTES).sum()])
}

/// Sums by one set of columns, over batches.
struct Sums {
    keys: Vec<String>,
    sums: Vec<DataFrame>,
}

/// Partial sums that are kept before they are added up.
const PARTIAL: usize = 16;

impl Sums {
    fn new(keys: Vec<String>) -> Sums {
        Sums {
            keys,
            sums: Vec::new(),
        }
    }

    /// Adds a batch: requests of one row, which are counted, and the rows of the others.
    fn add(&mut self, whole: &DataFrame, spanning: &DataFrame) -> Result<()> {
        let mut parts = vec![whole.clone().lazy()];
        if spanning.height() > 0 {
            let once = spanning
                .clone()
                .lazy()
                .group_by(columns(&self.keys, &[REQUEST]))
                .agg([col(SORT).first(), col(BYTES).sum()]);
            parts.push(counted(once, &self.keys));
        }
        for part in parts {
            self.sums.push(self.added(part)?);
        }
        if self.sums.len() >= PARTIAL {
            self.sums = vec![self.whole()?];
        }
        Ok(())
    }

    fn added(&self, part: LazyFrame) -> Result<DataFrame> {
        part.group_by(columns(&self.keys, &[SORT]))
            .agg([col(COUNT).sum(), col(BYTES).sum()])
            .collect()
    }

    /// All that was added, each group once.
    fn whole(&self) -> Result<DataFrame> {
        let parts: Vec<LazyFrame> = self.sums.iter().map(|sums| sums.clone().lazy()).collect();
        self.added(concat(parts, UnionArgs::default())?)
    }

    fn finish(&self, words: &[Option<Words>]) -> Result<Groups> {
        let frame = self.whole()?;
        let keys: Vec<Vec<Label>> = self
            .keys
            .iter()
            .zip(words)
            .map(|(name, words)| labels(frame.column(name)?, words.as_ref()))
            .collect::<Result<_>>()?;
        let (sorts, counts, bytes) = (
            frame.column(SORT)?.u32()?,
            frame.column(COUNT)?.u64()?,
            frame.column(BYTES)?.u64()?,
        );
        let mut sums: HashMap<Vec<&Label>, Totals> = HashMap::new();
        let mut total = Totals::default();
        for row in 0..frame.height() {
            let key = keys.iter().map(|labels| &labels[row]).collect();
            let (count, bytes) = (counts.get(row).unwrap_or(0), bytes.get(row).unwrap_or(0));
            let sort = sort_of(sorts.get(row).unwrap_or(0));
            sums.entry(key).or_default().add(sort, count, bytes);
            total.add(sort, count, bytes);
        }
        let mut groups: Vec<_> = sums.into_iter().collect();
        groups.sort_by(|(a_key, a), (b_key, b)| {
            let rank = |t: &Totals| Reverse((t.bytes(), t.requests));
            rank(a).cmp(&rank(b)).then_with(|| a_key.cmp(b_key))
        });
        Ok(Groups {
            by: Vec::new(),
            groups: groups
                .into_iter()
                .map(|(key, totals)| (key.into_iter().cloned().collect(), totals))
                .collect(),
            total,
        })
    }
}

/// The labels of a column's keys.
pub(super) fn labels(keys: &Values, words: Option<&Words>) -> Result<Vec<Label>> {
    Ok(match words {
        Some(words) => {
            let word = |code: Option<u32>| match words.get(code? as usize)?.as_ref() {
                Some(word) => Some(Label::Text(word.clone())),
                None => None,
            };
            let codes = keys.u32()?.iter();
            codes
                .map(|code| word(code).unwrap_or(Label::Empty))
                .collect()
        }
        None => {
            let id = |id: Option<i64>| id.and_then(|id| u64::try_from(id).ok());
            let ids = keys.i64()?.iter();
            ids.map(|key| id(key).map_or(Label::Empty, Label::Id))
                .collect()
        }
    })
}
