// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cuts rows with several causers into their shares.

use polars::prelude::{
    Column, DataFrame, IdxCa, IdxSize, IntoColumn, NamedFrom, PolarsResult, Series,
};

use super::stored::{ROW, SHARE_BITS, bits, column as at};

/// Cuts each row into its shares, which have bytes, cause and certainty of their own.
pub(super) fn cut(mut rows: DataFrame, shares: &DataFrame) -> PolarsResult<DataFrame> {
    let of_row = shares.column(ROW)?.idx()?;
    let [share_bytes, share_cause] = [at::bytes, at::cause].map(|name| shares.column(name));
    let (share_bytes, share_cause) = (share_bytes?.u32()?, share_cause?.u32()?);
    let share_bits = shares.column(SHARE_BITS)?.u64()?;
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
