// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expressions that compute one value for each row out of stored columns.

use std::sync::Arc;

use mostrace_trace::labels::Lookup;

use polars::prelude::{
    BooleanChunked, Column, DataType, Expr, Field, Int64Chunked, IntoColumn, NewChunkedArray,
    PlSmallStr, PolarsResult, StringChunked, UInt32Chunked, col,
};

/// The values of a stored column.
enum Values<'c> {
    Long(&'c [u64]),
    Short(&'c [u32]),
}

impl Values<'_> {
    fn of(column: &Column) -> PolarsResult<Values<'_>> {
        let series = column.as_materialized_series();
        Ok(match series.dtype() {
            DataType::UInt64 => Values::Long(series.u64()?.cont_slice()?),
            _ => Values::Short(series.u32()?.cont_slice()?),
        })
    }

    fn at(&self, row: usize) -> u64 {
        match self {
            Values::Long(values) => values[row],
            Values::Short(values) => u64::from(values[row]),
        }
    }
}

/// Computes one value for each row.
fn each<T, const N: usize>(
    columns: &[Column],
    value: impl Fn([u64; N]) -> T,
) -> PolarsResult<Vec<T>> {
    let values: Vec<Values<'_>> = columns.iter().map(Values::of).collect::<Result<_, _>>()?;
    let one = |v: u64| value([v; N]);
    Ok(match &values[..] {
        [Values::Long(values)] => values.iter().map(|&v| one(v)).collect(),
        [Values::Short(values)] => values.iter().map(|&v| one(v.into())).collect(),
        _ => (0..columns[0].len())
            .map(|row| value(std::array::from_fn(|at| values[at].at(row))))
            .collect(),
    })
}

/// Makes an expression over stored columns.
fn over<T: 'static, const N: usize>(
    from: [&'static str; N],
    output: DataType,
    value: impl Fn([u64; N]) -> T + Send + Sync + 'static,
    column: fn(PlSmallStr, Vec<T>) -> Column,
) -> Expr {
    const { assert!(N > 0) };
    let rest: Vec<Expr> = from[1..].iter().map(|&name| col(name)).collect();
    col(from[0]).map_many(
        move |columns| {
            for column in columns.iter_mut() {
                *column = column.rechunk();
            }
            Ok(column(columns[0].name().clone(), each(columns, &value)?))
        },
        &rest,
        move |_, fields| Ok(Field::new(fields[0].name().clone(), output.clone())),
    )
}

/// Makes a column of numbers or nulls. A number that does not fit into 63 bits becomes null.
pub(crate) fn number<const N: usize>(
    from: [&'static str; N],
    value: impl Fn([u64; N]) -> Option<u64> + Send + Sync + 'static,
) -> Expr {
    let signed = move |row| value(row).and_then(|v| i64::try_from(v).ok());
    over(from, DataType::Int64, signed, |name, values| {
        Int64Chunked::from_iter_options(name, values.into_iter()).into_column()
    })
}

/// Makes a column of booleans.
pub(crate) fn flag<const N: usize>(
    from: [&'static str; N],
    value: impl Fn([u64; N]) -> bool + Send + Sync + 'static,
) -> Expr {
    over(from, DataType::Boolean, value, |name, values| {
        BooleanChunked::from_iter_values(name, values.into_iter()).into_column()
    })
}

/// Makes a column of booleans or nulls.
pub(crate) fn flag_if_known<const N: usize>(
    from: [&'static str; N],
    value: impl Fn([u64; N]) -> Option<bool> + Send + Sync + 'static,
) -> Expr {
    over(from, DataType::Boolean, value, |name, values| {
        BooleanChunked::from_iter_options(name, values.into_iter()).into_column()
    })
}

/// Makes a column of codes, of which every row has one.
pub(crate) fn code<const N: usize>(
    from: [&'static str; N],
    value: impl Fn([u64; N]) -> u32 + Send + Sync + 'static,
) -> Expr {
    over(from, DataType::UInt32, value, |name, values| {
        UInt32Chunked::from_vec(name, values).into_column()
    })
}

/// The words of a column, all different; None is the empty one.
pub type Words = Arc<[Option<String>]>;

/// A column of text: each word once, and a code for each row's word.
pub struct Text {
    /// The index of a row's word.
    pub code: Expr,
    /// The words by index.
    pub words: Words,
}

impl Text {
    /// Makes a column with `words[number(row)]`; numbers with equal words get one code.
    pub fn new<const N: usize>(
        from: [&'static str; N],
        words: impl IntoIterator<Item = Option<String>>,
        number: impl Fn([u64; N]) -> u64 + Send + Sync + 'static,
    ) -> Text {
        Text::of(from, Lookup::new(words, number))
    }

    /// Makes a column of the words that are looked up by these stored columns.
    pub fn of<const N: usize>(
        from: [&'static str; N],
        words: Lookup<impl Fn([u64; N]) -> u64 + Send + Sync + 'static>,
    ) -> Text {
        Text {
            words: words.words(),
            code: code(from, move |row| words.code(row)),
        }
    }

    /// Returns the rows' words as a column of text.
    pub fn text(self) -> Expr {
        let words = self.words;
        let text = move |codes: Column| {
            let codes = codes.u32()?.clone();
            let word = |code: u32| words.get(code as usize).and_then(Option::as_deref);
            let text = codes.iter().map(|code| code.and_then(word));
            let name = codes.name().clone();
            Ok(StringChunked::from_iter_options(name, text).into_column())
        };
        self.code.map(text, |_, field| {
            Ok(Field::new(field.name().clone(), DataType::String))
        })
    }
}
