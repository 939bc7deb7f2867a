// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables in the page's form; the page sorts, filters and copies them.

use polars::prelude::AnyValue;
use serde::Serialize;
use serde_json::Value;

use mostrace_tables::facts::catalogue::Type;
use mostrace_tables::tables::{Table, type_of, value};

/// A table with its heading.
#[derive(Debug, Serialize)]
pub(super) struct Grid {
    title: String,
    /// A note that is needed to read the table.
    note: Option<String>,
    columns: Vec<Head>,
    rows: Vec<Vec<Value>>,
}

#[derive(Debug, Serialize)]
struct Head {
    name: String,
    /// The unit by which its values are formatted.
    unit: &'static str,
}

impl Grid {
    /// Takes a table without its total and without columns that are empty or zero in all rows.
    pub fn new(title: &str, note: Option<&str>, table: Table) -> Grid {
        let frame = table.without_total().frame;
        let cell = |value: AnyValue<'_>| match (&value, value.get_str()) {
            (AnyValue::Null, _) => Value::Null,
            (AnyValue::Boolean(is), _) => Value::from(*is),
            (AnyValue::Float64(number), _) => Value::from(*number),
            (_, Some(text)) => Value::from(text),
            (_, None) => Value::from(value.extract::<i64>()),
        };
        let mut columns = Vec::new();
        let mut rows = vec![Vec::new(); frame.height()];
        for column in frame.columns() {
            let values = (0..frame.height()).map(|row| value(column, row));
            let values: Vec<Value> = values.map(cell).collect();
            let says = |value: &Value| !value.is_null() && *value != 0 && *value != 0.0;
            if !values.iter().any(says) {
                continue;
            }
            let name = column.name().as_str();
            columns.push(Head {
                name: name.replace('_', " "),
                unit: unit(name, type_of(column)),
            });
            for (row, value) in rows.iter_mut().zip(values) {
                row.push(value);
            }
        }
        Grid {
            title: title.to_owned(),
            note: note.map(str::to_owned),
            columns,
            rows,
        }
    }
}

/// Returns a column's unit, which the end of its name indicates.
fn unit(name: &str, ty: Type) -> &'static str {
    match (ty, name.rsplit('_').next()) {
        (Type::Text | Type::Flag | Type::Time, _) => "text",
        (Type::Id, _) => "id",
        (_, Some("bytes")) => "bytes",
        (_, Some("percent")) => "percent",
        (_, Some("ns")) => "ns",
        (_, Some("ms")) => "ms",
        _ => "count",
    }
}
