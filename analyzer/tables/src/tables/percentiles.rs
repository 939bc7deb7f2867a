// SPDX-License-Identifier: MIT OR Apache-2.0
//! Percentiles of times and sizes by groups, computed from histograms that can be summed over batches. Times are in the
//! buckets of an HDR histogram; each size has its own bucket, because there are few.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use polars::prelude::{
    ChunkApply, DataFrame, DataType, Expr, IntoColumn, IntoLazy, LazyFrame, UnionArgs, col, concat,
    len, lit,
};

use super::groups::{Keys, REQUEST, WHOLE, columns, labels};
use super::{Result, Table, numbers, texts};
use crate::facts::{Column, Facts, Filter, Part, Rows};
use mostrace_trace::sums::Label;
use mostrace_trace::tally::{Tally, sum};

/// Significant digits of a time's percentile.
const DIGITS: u8 = 2;

/// The measured columns; each request of a group counts once, with its rows' largest value.
pub const MEASURES: [&str; 3] = ["q2d_ns", "d2c_ns", "size_bytes"];

/// The percentiles that are printed before the largest value.
const PERCENTILES: [(&str, f64); 3] = [("p50", 0.50), ("p90", 0.90), ("p99", 0.99)];

const BUCKET: &str = "_bucket";
const COUNT: &str = "_count";
const MOST: &str = "_most";

/// The one of [`MEASURES`] that is counted value by value.
const SIZE: &str = MEASURES[2];

/// The number of requests and the largest value of each bucket.
type Distribution = BTreeMap<u64, (u64, u64)>;

/// Returns p50, p90, p99 and max of q2d, d2c and sizes by some columns; the groups with the most requests come first, and
/// the last row is for all. A percentile is a value that occurs: exact for sizes, to two digits for times.
///
/// # Errors
/// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
pub fn table(
    facts: &Facts,
    by: &[&'static Column],
    top: Option<usize>,
    filter: Option<&Filter>,
) -> Result<Table> {
    let mut groups = count(facts, by, filter)?;
    let all = count(facts, &[], filter)?
        .remove(&Vec::new())
        .unwrap_or_default();
    let mut order: Vec<(Vec<Label>, [Distribution; 3])> =
        std::mem::take(&mut groups).into_iter().collect();
    // Every request has a size.
    order.sort_by_key(|(_, measured)| std::cmp::Reverse(requests(&measured[2])));
    order.truncate(top.unwrap_or(usize::MAX));
    let rows: Vec<&[Distribution; 3]> = order.iter().map(|(_, m)| m).chain([&all]).collect();
    let mut table = Vec::new();
    for (at, column) in by.iter().enumerate() {
        let total = (at == 0).then(|| "total".to_owned());
        let label = order.iter().map(|(labels, _)| labels[at].text());
        table.push(texts(column.name, label.chain([total])));
    }
    table.push(numbers(
        "requests",
        rows.iter().map(|m| Some(requests(&m[2]))),
    ));
    for (at, measure) in MEASURES.iter().enumerate() {
        let (quantity, unit) = measure.split_once('_').unwrap_or((measure, ""));
        for (name, part) in PERCENTILES {
            let name = format!("{quantity}_{name}_{unit}");
            table.push(numbers(
                &name,
                rows.iter().map(|m| percentile(&m[at], part)),
            ));
        }
        let most = |m: &Distribution| m.values().next_back().map(|&(_, most)| most);
        let name = format!("{quantity}_max_{unit}");
        table.push(numbers(&name, rows.iter().map(|m| most(&m[at]))));
    }
    Table::with_total(table)
}

fn requests(distribution: &Distribution) -> u64 {
    sum(distribution.values().map(|(count, _)| *count))
}

/// Returns the value that the given part of a distribution does not exceed: the largest one in its bucket.
fn percentile(distribution: &Distribution, part: f64) -> Option<u64> {
    let rank = (requests(distribution) as f64 * part).ceil() as u64;
    let mut passed = 0_u64;
    let mut buckets = distribution.values();
    let reached = buckets.find(|(count, _)| {
        passed.tally(*count);
        passed >= rank.max(1)
    });
    reached.map(|&(_, most)| most)
}

/// Returns the distributions of each group.
fn count(
    facts: &Facts,
    by: &[&'static Column],
    filter: Option<&Filter>,
) -> Result<BTreeMap<Vec<Label>, [Distribution; 3]>> {
    let keys = Keys::new(facts, by.iter().copied());
    let names = keys.all();
    let measures = Column::all_of(&MEASURES);
    let mut expressions = keys.columns();
    expressions.extend(measures.iter().map(|measure| measure.expr(facts)));
    let bucket = bucketing();
    let mut groups: BTreeMap<Vec<Label>, [Distribution; 3]> = BTreeMap::new();
    for view in facts.view(expressions, Part::Any, filter, Rows::Whole) {
        let batch = view?.collect()?;
        let requests = once(batch, &names)?;
        for (at, measure) in MEASURES.iter().enumerate() {
            let bucket = match *measure {
                SIZE => col(SIZE),
                time => bucket(col(time)),
            };
            let counts = requests
                .clone()
                .lazy()
                .filter(col(*measure).is_not_null())
                .with_column(bucket.alias(BUCKET))
                .group_by(columns(&names, &[BUCKET]))
                .agg([
                    len().cast(DataType::UInt64).alias(COUNT),
                    col(*measure).max().alias(MOST),
                ])
                .collect()?;
            let labels: Vec<Vec<Label>> = names
                .iter()
                .zip(keys.of(by))
                .map(|(name, words)| labels(counts.column(name)?, words.as_ref()))
                .collect::<Result<_>>()?;
            let (buckets, most) = (counts.column(BUCKET)?.i64()?, counts.column(MOST)?.i64()?);
            let number =
                |value: Option<i64>| value.and_then(|v| u64::try_from(v).ok()).unwrap_or(0);
            for (row, count) in counts.column(COUNT)?.u64()?.iter().enumerate() {
                let group = labels.iter().map(|labels| labels[row].clone()).collect();
                let in_bucket = groups.entry(group).or_default()[at]
                    .entry(number(buckets.get(row)))
                    .or_default();
                in_bucket.0.tally(count.unwrap_or(0));
                in_bucket.1 = in_bucket.1.max(number(most.get(row)));
            }
        }
    }
    Ok(groups)
}

/// Returns each request of a group once.
fn once(batch: DataFrame, keys: &[String]) -> Result<DataFrame> {
    let wanted = columns(keys, &MEASURES);
    let batch = batch.lazy();
    let whole = batch.clone().filter(col(WHOLE)).select(&wanted);
    let spanning: LazyFrame = batch
        .filter(col(WHOLE).not())
        .group_by(columns(keys, &[REQUEST]))
        .agg(MEASURES.map(|measure| col(measure).max()))
        .select(&wanted);
    concat([whole, spanning], UnionArgs::default())?.collect()
}

/// Returns a function that computes the upper end of each value's bucket.
fn bucketing() -> impl Fn(Expr) -> Expr {
    // The histogram is used only for its buckets; its bounds are valid for any number of digits.
    let scale = Histogram::<u64>::new_with_bounds(1, i64::MAX as u64, DIGITS).map(Arc::new);
    move |values| {
        let Ok(scale) = scale.clone() else {
            return lit(0i64);
        };
        values.map(
            move |values| {
                let upper = |value: i64| {
                    let end = scale.highest_equivalent(u64::try_from(value).unwrap_or(0));
                    i64::try_from(end).unwrap_or(i64::MAX)
                };
                Ok(values.i64()?.apply_values(upper).into_column())
            },
            |_, field| Ok(field.clone()),
        )
    }
}
