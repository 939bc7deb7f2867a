// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables as polars data frames, for the formats that polars writes.

use polars::prelude::{Column as Series, DataFrame, IntoColumn, NamedFrom, PolarsResult};

use crate::tables::{Column, Table, Values};

/// Numbers become u64 or f64, flags booleans, words strings; empty cells nulls.
pub(super) fn frame(table: &Table) -> PolarsResult<DataFrame> {
    DataFrame::new_infer_height(table.columns.iter().map(series).collect())
}

fn series(column: &Column) -> Series {
    let name = column.name.into();
    match &column.values {
        Values::Id(v) | Values::Amount(v) => polars::prelude::Series::new(name, v),
        Values::Real(v) => polars::prelude::Series::new(name, v),
        Values::Flag(v) => polars::prelude::Series::new(name, v),
        Values::Word { codes, words } => {
            let text = |&code: &u32| words.get(code as usize).and_then(Option::as_deref);
            let text: Vec<Option<&str>> = codes.iter().map(text).collect();
            polars::prelude::Series::new(name, text)
        }
    }
    .into_column()
}
