// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shares of rows with several causers; cuts rows into them.

use polars::prelude::{
    Column, DataFrame, IdxCa, IdxSize, IntoColumn, NamedFrom, PolarsResult, Series,
};

use super::stored::{bits, column as at};
use mostrace_trace::causes::Share;
use mostrace_trace::origins::Base;

const ROW: &str = "_row";
const BITS: &str = "_share_bits";

/// The collected shares, grouped by row, the first share of each row first.
#[derive(Default)]
pub(super) struct Shares {
    /// The row's index in its batch.
    row: Vec<IdxSize>,
    bytes: Vec<u32>,
    cause: Vec<u32>,
    /// The fields of [`bits`] in which a share differs from its row.
    bits: Vec<u64>,
}

impl Shares {
    /// Adds the shares of a row; `base` is where its recording's numbers begin.
    pub fn push(&mut self, row: usize, shares: &[Share], base: Base) {
        for (nth, share) in shares.iter().enumerate() {
            // A batch has fewer rows than fit.
            self.row.push(row as IdxSize);
            self.bytes.push(share.bytes);
            self.cause.push(base.cause(share.cause).0);
            let later = bits::LATER_SHARE.word((nth > 0).into());
            self.bits.push(bits::KNOWN.word(share.known as u64) | later);
        }
    }

    /// Removes all shares and returns them as a frame; None if there are none.
    pub fn take(&mut self) -> PolarsResult<Option<DataFrame>> {
        let Shares {
            row,
            bytes,
            cause,
            bits,
        } = std::mem::take(self);
        if row.is_empty() {
            return Ok(None);
        }
        let columns: Vec<Column> = vec![
            Series::new(ROW.into(), row).into(),
            Series::new(at::bytes.into(), bytes).into(),
            Series::new(at::cause.into(), cause).into(),
            Series::new(BITS.into(), bits).into(),
        ];
        DataFrame::new_infer_height(columns).map(Some)
    }
}

/// Cuts each row into its shares, which have bytes, cause and certainty of their own.
pub(super) fn cut(mut rows: DataFrame, shares: &DataFrame) -> PolarsResult<DataFrame> {
    let of_row = shares.column(ROW)?.idx()?;
    let [share_bytes, share_cause] = [at::bytes, at::cause].map(|name| shares.column(name));
    let (share_bytes, share_cause) = (share_bytes?.u32()?, share_cause?.u32()?);
    let share_bits = shares.column(BITS)?.u64()?;
    // The row of each share, and the share's index if the row was cut.
    let mut places: Vec<IdxSize> = Vec::with_capacity(rows.height().saturating_add(of_row.len()));
    let mut share_of: Vec<Option<usize>> = Vec::with_capacity(places.capacity());
    let mut of_row = of_row.into_no_null_iter().enumerate().peekable();
    for row in 0..rows.height() as IdxSize {
        let before = places.len();
        while let Some((share, _)) = of_row.next_if(|&(_, of)| of == row) {
            places.push(row);
            share_of.push(Some(share));
        }
        if places.len() == before {
            places.push(row);
            share_of.push(None);
        }
    }
    rows = rows.take(&IdxCa::from_vec("".into(), places))?;
    let own = |name: &str| rows.get_column_names().iter().any(|own| *own == name);
    let mut replaced: Vec<Column> = Vec::new();
    for (name, of_share) in [(at::bytes, share_bytes), (at::cause, share_cause)] {
        if own(name) {
            let whole = rows.column(name)?.u32()?.into_no_null_iter();
            let value = |(whole, share): (u32, &Option<usize>)| {
                share.and_then(|share| of_share.get(share)).unwrap_or(whole)
            };
            let values: Vec<u32> = whole.zip(&share_of).map(value).collect();
            replaced.push(Series::new(name.into(), values).into_column());
        }
    }
    if own(at::bits) {
        let mine = bits::KNOWN.word(bits::KNOWN.max()) | bits::LATER_SHARE.word(1);
        let whole = rows.column(at::bits)?.u64()?.into_no_null_iter();
        let value = |(whole, share): (u64, &Option<usize>)| {
            let share = share.and_then(|share| share_bits.get(share));
            share.map_or(whole, |share| whole & !mine | share)
        };
        let values: Vec<u64> = whole.zip(&share_of).map(value).collect();
        replaced.push(Series::new(at::bits.into(), values).into_column());
    }
    for column in replaced {
        rows.with_column(column)?;
    }
    Ok(rows)
}
