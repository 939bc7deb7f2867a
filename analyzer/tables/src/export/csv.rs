// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comma-separated values as in RFC 4180.
//!
//! A spreadsheet runs a text that begins like a formula, and a file's name may be such a text. A second form therefore puts an
//! apostrophe before such texts.

use std::io::Write;

use polars::prelude::{
    AnyValue, Column, DataFrame, DataType, IntoColumn, NamedFrom, PolarsResult, Series,
};
use polars_io::SerWriter;
use polars_io::csv::write::CsvWriter;

use super::Exporter;
use super::cell::moment;
use crate::tables::{Table, value};

/// The form in which texts are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    /// Unchanged.
    Exact,
    /// An apostrophe precedes each text that could be a formula.
    NoFormula,
}

pub(super) struct Csv<'w> {
    out: &'w mut (dyn Write + Send),
    texts: Texts,
    first: bool,
}

impl<'w> Csv<'w> {
    pub fn new(out: &'w mut (dyn Write + Send), texts: Texts) -> Self {
        Csv {
            out,
            texts,
            first: true,
        }
    }
}

impl Exporter for Csv<'_> {
    fn write(&mut self, table: Table) -> super::Result {
        let first = std::mem::take(&mut self.first);
        let mut frame = times_as_text(table.frame)?;
        if self.texts == Texts::NoFormula {
            frame = without_formulas(frame)?;
        }
        CsvWriter::new(&mut *self.out)
            .include_header(first)
            .finish(&mut frame)?;
        Ok(())
    }
}

/// Formats times as in JSON.
fn times_as_text(mut frame: DataFrame) -> PolarsResult<DataFrame> {
    let is_time = |column: &&Column| matches!(column.dtype(), DataType::Datetime(..));
    let times: Vec<Column> = frame.columns().iter().filter(is_time).cloned().collect();
    for time in times {
        let text = |row| match value(&time, row) {
            AnyValue::Datetime(us, ..) => Some(moment(us)),
            _ => None,
        };
        let texts: Vec<Option<String>> = (0..time.len()).map(text).collect();
        frame.with_column(Series::new(time.name().clone(), texts).into_column())?;
    }
    Ok(frame)
}

/// Puts an apostrophe before each text that a spreadsheet would take for a formula, or for the rest of the cell before.
fn without_formulas(mut frame: DataFrame) -> PolarsResult<DataFrame> {
    let texts: Vec<Column> = frame.columns().iter().filter(holds_text).cloned().collect();
    for column in texts {
        let text = |row| {
            column
                .get(row)
                .ok()
                .and_then(|value| value.get_str().map(as_text))
        };
        let texts: Vec<Option<String>> = (0..column.len()).map(text).collect();
        frame.with_column(Series::new(column.name().clone(), texts).into_column())?;
    }
    Ok(frame)
}

fn holds_text(column: &&Column) -> bool {
    (0..column.len()).any(|row| column.get(row).is_ok_and(|value| value.get_str().is_some()))
}

/// The wide characters are those of East Asian keyboards, which some spreadsheets treat alike.
fn as_text(text: &str) -> String {
    let begins = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    match text.starts_with(begins) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(texts: Texts, names: &[Option<&str>]) -> String {
        let names = Series::new("file".into(), names).into_column();
        let numbers = Series::new("n".into(), vec![-1i64; names.len()]).into_column();
        let mut out = Vec::new();
        let mut csv = Box::new(Csv::new(&mut out, texts));
        let frame = DataFrame::new_infer_height(vec![names, numbers]).unwrap();
        csv.write(frame.into()).unwrap();
        csv.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_text_is_a_formula_where_that_is_asked_for() {
        for formula in ["=cmd", "+1", "-1", "@SUM(1)", "\t=1", "＝1"] {
            let names = [Some(formula), Some("/a=b"), None];
            let exact = format!("file,n\n{formula},-1\n/a=b,-1\n,-1\n");
            assert_eq!(written(Texts::Exact, &names), exact);
            let safe = format!("file,n\n'{formula},-1\n/a=b,-1\n,-1\n");
            assert_eq!(written(Texts::NoFormula, &names), safe);
        }
        assert_eq!(
            written(Texts::NoFormula, &[Some("\r=1")]),
            "file,n\n\"'\r=1\",-1\n"
        );
    }
}
