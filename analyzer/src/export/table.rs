// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for people.

use std::io::Write;

use comfy_table::{CellAlignment, presets};

use super::Exporter;
use crate::tables::{Cell, Column, Table, Values};

/// Rows that are laid out together; the header stands above each lot.
const LOT: usize = 5000;

pub(super) struct Text<'w> {
    out: &'w mut (dyn Write + Send),
}

impl<'w> Text<'w> {
    pub fn new(out: &'w mut (dyn Write + Send)) -> Self {
        Text { out }
    }
}

impl Exporter for Text<'_> {
    fn write(&mut self, table: &Table) -> super::Result {
        let columns: Vec<&Column> = table.columns.iter().collect();
        for start in (0..table.len().max(1)).step_by(LOT) {
            let end = table.len().min(start + LOT);
            self.out
                .write_all(lay_out(&columns, start..end, table.has_total).as_bytes())?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> super::Result {
        Ok(())
    }
}

/// A table as text, without the columns in which nothing but zeros and gaps stands.
pub fn to_text(table: &Table) -> String {
    let says_nothing = |cell: Cell<'_>| match cell {
        Cell::Empty | Cell::Amount(0) => true,
        Cell::Real(v) => v == 0.0,
        _ => false,
    };
    let says =
        |column: &&Column| (0..table.len()).any(|row| !says_nothing(column.values.cell(row)));
    let columns: Vec<&Column> = table.columns.iter().filter(says).collect();
    lay_out(&columns, 0..table.len(), table.has_total)
}

fn lay_out(columns: &[&Column], rows: std::ops::Range<usize>, has_total: bool) -> String {
    let mut text = comfy_table::Table::new();
    text.load_style(presets::NOTHING);
    text.set_header(columns.iter().map(|column| column.name));
    let last = rows.end;
    for row in rows {
        if has_total && row + 1 == last {
            text.add_row(columns.iter().map(|_| ""));
        }
        text.add_row(columns.iter().map(|column| show(column.values.cell(row))));
    }
    for (at, column) in columns.iter().enumerate() {
        let is_text = matches!(column.values, Values::Word { .. } | Values::Flag(_));
        if let Some(c) = text.column_mut(at).filter(|_| !is_text) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn show(cell: Cell<'_>) -> String {
    match cell {
        Cell::Empty => "-".into(),
        Cell::Id(v) => v.to_string(),
        Cell::Amount(v) => grouped(v),
        Cell::Real(v) => format!("{v:.2}"),
        Cell::Flag(v) => if v { "yes" } else { "no" }.into(),
        Cell::Text(v) => v.into(),
    }
}

/// Digits in groups of three.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1234567, "1,234,567"),
        ] {
            assert_eq!(grouped(value), text);
        }
    }
}
