// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporal locality: how much of what is written goes to sectors that the trace wrote before.

use mostrace_bundle::DeviceNumber;
use polars::prelude::{DataType, IntoLazy, PolarsError, UnionArgs, col, concat, lit};

use super::groups::{Keys, columns, labels};
use super::{Result, Table, numbers, percent, reals, texts};
use crate::facts::{
    Column, Facts, Filter, Hot, Part, Rows, bits, labels::file_label, row::flag,
    stored_column as at,
};
use mostrace_trace::attribute::Op;
use mostrace_trace::sums::Label;
use mostrace_trace::tally::sum;

/// The definition of the columns, printed beside the table.
pub const DEFINITION: &str = "rewritten: in sectors that the trace had written before; after: since the last time, on average over rows";

/// The sums of a group.
struct Line {
    labels: Vec<Label>,
    written: u64,
    rewritten: u64,
    /// The number of rows that rewrote something.
    rows: u64,
    after_ms: f64,
}

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
    let number = |name: &str| Ok::<_, PolarsError>(sums.column(name)?.u64()?.clone());
    let (written, rewritten, rows) = (number("written")?, number("rewritten")?, number("rows")?);
    let after = sums.column("after")?.f64()?;
    let row = |row: usize| Line {
        labels: words.iter().map(|labels| labels[row].clone()).collect(),
        written: written.get(row).unwrap_or_default(),
        rewritten: rewritten.get(row).unwrap_or_default(),
        rows: rows.get(row).unwrap_or_default(),
        after_ms: after.get(row).unwrap_or_default(),
    };
    let mut lines: Vec<Line> = (0..sums.height()).map(row).collect();
    let total = Line {
        labels: Vec::new(),
        written: sum(lines.iter().map(|line| line.written)),
        rewritten: sum(lines.iter().map(|line| line.rewritten)),
        rows: sum(lines.iter().map(|line| line.rows)),
        after_ms: lines.iter().map(|line| line.after_ms).sum(),
    };
    lines.sort_by(|a, b| (b.written, &a.labels).cmp(&(a.written, &b.labels)));
    let mut table = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let total = (at == 0).then(|| "total".to_owned());
        let labels = lines.iter().map(|line| line.labels[at].text());
        table.push(texts(name, labels.chain([total])));
    }
    let all = || lines.iter().chain([&total]);
    let mean = |line: &Line| (line.rows > 0).then(|| line.after_ms / line.rows as f64);
    table.extend([
        numbers("write_bytes", all().map(|line| Some(line.written))),
        numbers("rewritten_bytes", all().map(|line| Some(line.rewritten))),
        reals(
            "rewritten_percent",
            all().map(|line| percent(line.rewritten, line.written)),
        ),
        reals("after_mean_ms", all().map(mean)),
    ]);
    Table::with_total(table)
}

/// Returns the ranges that were written most often.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn hottest(facts: &Facts) -> Result<Table> {
    let hottest = || facts.locality().into_iter().flat_map(|l| &l.hottest);
    let number = |name, of: fn(&Hot) -> u64| numbers(name, hottest().map(|hot| Some(of(hot))));
    let kinds = hottest().map(|hot| hot.kind.map(|kind| kind.to_string()));
    let files = hottest().map(|hot| file_label(facts.names().file(hot.file)?));
    let devices = hottest().map(|hot| Some(DeviceNumber::of(hot.device).to_string()));
    Table::new(vec![
        texts("device", devices),
        number("sector", |hot| hot.sector),
        number("sectors", |hot| hot.sectors),
        number("writes", |hot| hot.writes.into()),
        texts("kind", kinds),
        texts("file", files),
    ])
}
