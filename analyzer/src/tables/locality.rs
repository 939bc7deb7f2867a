// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporal locality: how much of what is written goes to sectors that the trace wrote before.

use polars::prelude::{DataType, IntoLazy, UnionArgs, col, concat, lit};

use super::groups::{Keys, Label, columns, labels};
use super::{Result, Table, numbers, percent, reals, texts};
use crate::attribute::Op;
use crate::facts::{
    Column, Facts, Filter, Part, Rows, bits,
    labels::{device_name, file_label},
    row::flag,
    stored_column as at,
};

/// The definition of the columns, printed beside the table.
pub const DEFINITION: &str = "rewritten: in sectors that the trace had written before; after: since the last time, on average over rows";

/// Returns the bytes written and rewritten by some columns, the most written first; the last row is the total.
///
/// # Errors
/// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
pub fn table(facts: &Facts, by: &[&'static Column], filter: Option<&Filter>) -> Result<Table> {
    let keys = Keys::new(facts, by.iter().copied());
    let names = keys.all();
    let mut expressions = keys.columns();
    expressions.extend([
        flag([at::bits], |[b]| bits::OP.of(b) == Op::Write as u64).alias("_written"),
        Column::find("rewritten_bytes")
            .map_or(lit(0), |column| column.expr(facts))
            .cast(DataType::UInt64)
            .alias("_rewritten"),
        Column::find("rewrite_ns")
            .map_or(lit(0), |column| column.expr(facts))
            .alias("_after"),
    ]);
    let mut sums = Vec::new();
    for view in facts.view(expressions, Part::Any, filter, Rows::Whole) {
        let written = view?.filter(col("_written"));
        // These are floats, which do not overflow.
        #[allow(clippy::arithmetic_side_effects)]
        let after_ms = col("_after").cast(DataType::Float64) / lit(1e6);
        sums.push(
            written
                .group_by(columns(&names, &[]))
                .agg([
                    col(at::bytes).sum().alias("written"),
                    col("_rewritten").sum().alias("rewritten"),
                    col("_after").count().cast(DataType::UInt64).alias("rows"),
                    after_ms.sum().alias("after"),
                ])
                .collect()?
                .lazy(),
        );
    }
    let sums = concat(sums, UnionArgs::default())?
        .group_by(columns(&names, &[]))
        .agg(["written", "rewritten", "rows", "after"].map(|name| col(name).sum()))
        .collect()?;
    let of = keys.of(by);
    let words: Vec<Vec<Label>> = names
        .iter()
        .zip(&of)
        .map(|(name, words)| labels(sums.column(name)?, words.as_ref()))
        .collect::<Result<_>>()?;
    let number = |name: &str| -> Result<Vec<u64>> {
        Ok(sums
            .column(name)?
            .u64()?
            .iter()
            .map(Option::unwrap_or_default)
            .collect())
    };
    let (written, rewritten, rows) = (number("written")?, number("rewritten")?, number("rows")?);
    let after: Vec<f64> = sums
        .column("after")?
        .f64()?
        .iter()
        .map(Option::unwrap_or_default)
        .collect();
    let mut order: Vec<usize> = (0..sums.height()).collect();
    order.sort_by_key(|&row| {
        (
            std::cmp::Reverse(written[row]),
            words.iter().map(|w| w[row].clone()).collect::<Vec<_>>(),
        )
    });
    let amounts = |values: &[u64]| -> Vec<u64> {
        order
            .iter()
            .map(|&row| values[row])
            .chain([values.iter().sum()])
            .collect()
    };
    let (written, rewritten, rows) = (amounts(&written), amounts(&rewritten), amounts(&rows));
    let after: Vec<f64> = order
        .iter()
        .map(|&row| after[row])
        .chain([after.iter().sum()])
        .collect();
    let mut table = Vec::new();
    for (at, (name, words)) in names.iter().zip(&words).enumerate() {
        let total = (at == 0).then(|| "total".to_owned());
        table.push(texts(
            name,
            order.iter().map(|&row| words[row].text()).chain([total]),
        ));
    }
    let some = |values: &[u64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    table.push(numbers("write_bytes", some(&written)));
    table.push(numbers("rewritten_bytes", some(&rewritten)));
    let shares = rewritten
        .iter()
        .zip(&written)
        .map(|(&part, &whole)| percent(part, whole));
    table.push(reals("rewritten_percent", shares));
    let means = after
        .iter()
        .zip(&rows)
        .map(|(sum, &rows)| (rows > 0).then(|| sum / rows as f64));
    table.push(reals("after_mean_ms", means));
    Table::with_total(table)
}

/// Returns the ranges that were written most often.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn hottest(facts: &Facts) -> Result<Table> {
    let hottest = facts
        .locality()
        .map_or(&[][..], |locality| &locality.hottest);
    Table::new(vec![
        texts(
            "device",
            hottest.iter().map(|hot| Some(device_name(hot.device))),
        ),
        numbers("sector", hottest.iter().map(|hot| Some(hot.sector))),
        numbers("sectors", hottest.iter().map(|hot| Some(hot.sectors))),
        numbers("writes", hottest.iter().map(|hot| Some(hot.writes.into()))),
        texts(
            "kind",
            hottest
                .iter()
                .map(|hot| hot.kind.map(|kind| kind.to_string())),
        ),
        texts(
            "file",
            hottest
                .iter()
                .map(|hot| file_label(facts.names().file(hot.file)?)),
        ),
    ])
}
