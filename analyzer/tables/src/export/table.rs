// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints tables for people, as wide as the terminal.

use std::io::Write;
use std::ops::Range;

use comfy_table::{CellAlignment, presets};
use polars::prelude::Column;
use unicode_width::UnicodeWidthStr;

use super::Exporter;
use super::cell::{says_nothing, shown};
use crate::facts::catalogue::Type;
use crate::tables::summary::Section;
use crate::tables::{Table, type_of, value};
use mostrace_trace::fitting::{beginning, end};

/// Number of rows that are laid out together; each lot has a header.
const LOT: usize = 5000;
/// Blanks between two columns.
const GAP: usize = 2;
/// Text is not shortened below this many characters.
const SHORTEST: usize = 16;

pub(super) struct Text<'w> {
    out: &'w mut (dyn Write + Send),
    width: Option<usize>,
}

impl<'w> Text<'w> {
    /// `width` is the number of characters in a line; None for as many as are needed.
    pub fn new(out: &'w mut (dyn Write + Send), width: Option<usize>) -> Self {
        Text { out, width }
    }
}

impl Exporter for Text<'_> {
    fn write(&mut self, table: Table) -> super::Result {
        for start in (0..table.len().max(1)).step_by(LOT) {
            let end = table.len().min(start.saturating_add(LOT));
            let columns = table.frame.columns().iter().collect();
            let text = lay_out(columns, start..end, table.has_total, self.width);
            self.out.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Formats a table as text, without columns that have only zeros and empty values.
pub fn to_text(table: &Table, width: Option<usize>) -> String {
    let says = |column: &&Column| {
        let ty = type_of(column);
        (0..table.len()).any(|row| !says_nothing(&value(column, row), ty))
    };
    let columns = table.frame.columns().iter().filter(says).collect();
    lay_out(columns, 0..table.len(), table.has_total, width)
}

/// Formats sections as text, each below its heading and its note, without those that say nothing.
pub fn sections_to_text(sections: &[Section], width: Option<usize>) -> String {
    let saying = sections.iter().filter(|s| s.table.says_something());
    let text = |section: &Section| {
        let note = section.note.map(|note| format!("({note})\n"));
        let (title, note) = (&section.title, note.unwrap_or_default());
        format!("\n{title}\n{note}{}", to_text(&section.table, width))
    };
    saying.map(text).collect()
}

/// A column as it is printed.
struct Printed {
    name: String,
    ty: Type,
    cells: Vec<String>,
}

impl Printed {
    fn new(column: &Column, rows: Range<usize>) -> Printed {
        let ty = type_of(column);
        Printed {
            name: column.name().to_string(),
            ty,
            cells: rows.map(|row| shown(&value(column, row), ty)).collect(),
        }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.width());
        cells.max().unwrap_or(0).max(self.name.width())
    }

    /// Returns the fewest characters that its texts are shortened to. The lines of a tree are not shortened, because their
    /// beginning shows what they branch from.
    fn shortest(&self) -> usize {
        let is_branch = |cell: &&String| cell.starts_with([' ', '│', '├', '└']);
        let branches = self.cells.iter().filter(is_branch);
        let widest = branches.map(|cell| cell.width()).max().unwrap_or(0);
        self.name.width().max(SHORTEST).max(widest)
    }

    /// Shortens the cells in the middle.
    fn shorten(&mut self, width: usize) {
        for cell in &mut self.cells {
            if cell.width() > width {
                *cell = shortened(cell, width);
            }
        }
    }
}

/// Returns the beginning and the end of a text that is too long; a path's end is the file's own name.
fn shortened(text: &str, width: usize) -> String {
    let room = width.saturating_sub(1);
    beginning(text, room / 2) + "…" + &end(text, room.div_ceil(2))
}

fn lay_out(
    columns: Vec<&Column>,
    rows: Range<usize>,
    has_total: bool,
    width: Option<usize>,
) -> String {
    let mut columns: Vec<Printed> = columns
        .into_iter()
        .map(|column| Printed::new(column, rows.clone()))
        .collect();
    let left_out = width.map_or(Vec::new(), |width| fit(&mut columns, width));
    let mut text = comfy_table::Table::new();
    text.load_style(presets::NOTHING);
    text.set_header(columns.iter().map(|column| &column.name));
    let total = rows.len().checked_sub(1).filter(|_| has_total);
    for row in 0..rows.len() {
        if total == Some(row) {
            text.add_row(columns.iter().map(|_| ""));
        }
        text.add_row(columns.iter().map(|column| &column.cells[row]));
    }
    for (at, column) in columns.iter().enumerate() {
        if let Some(c) = text
            .column_mut(at)
            .filter(|_| matches!(column.ty, Type::Id | Type::Amount))
        {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        out += &format!(
            "(too wide for the terminal: {names}; --columns chooses, --format csv has all)\n"
        );
    }
    out
}

/// Makes the columns fit: first the widest text is shortened, then the last columns are dropped. Returns the names of the
/// dropped columns.
fn fit(columns: &mut Vec<Printed>, width: usize) -> Vec<String> {
    let total = |columns: &[Printed]| -> usize {
        let widths = columns.iter().map(|c| c.width().saturating_add(GAP));
        widths.sum()
    };
    loop {
        let over = total(columns).saturating_sub(width);
        if over == 0 {
            return Vec::new();
        }
        let texts = columns.iter_mut().filter(|c| c.ty == Type::Text);
        let Some(widest) = texts
            .filter(|c| c.width() > c.shortest())
            .max_by_key(|c| c.width())
        else {
            break;
        };
        let to = widest.width().saturating_sub(over).max(widest.shortest());
        widest.shorten(to);
    }
    let mut left_out = Vec::new();
    while columns.len() > 1 && total(columns) > width {
        left_out.extend(columns.pop().map(|column| column.name));
    }
    left_out.reverse();
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars::prelude::{DataFrame, IntoColumn, NamedFrom, Series};

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("/data/app/test.db-journal", 13), "/data/…ournal");
        assert_eq!(shortened("größe größe größe", 8), "grö…röße");
    }

    #[test]
    fn a_table_fits_or_says_what_it_leaves_out() {
        let text = |name: &str, value: &str| Series::new(name.into(), [value]).into_column();
        let count = |name: &str, value: i64| Series::new(name.into(), [value]).into_column();
        let columns = vec![
            text("file", "/a/long/way/down/to/the/test.db-journal"),
            count("writes", 1_234_567),
            count("reads", 0),
            count("write_bytes", 1 << 40),
        ];
        let table = Table::from(DataFrame::new_infer_height(columns).unwrap());
        let wide = to_text(&table, None);
        assert!(
            wide.contains("/test.db-journal") && wide.contains("1,234,567"),
            "{wide}"
        );
        assert!(!wide.contains("reads"), "{wide}");
        let narrow = to_text(&table, Some(52));
        assert!(
            narrow.contains("…") && narrow.contains("write_bytes"),
            "{narrow}"
        );
        assert!(narrow.lines().all(|line| line.width() <= 52), "{narrow}");
        let branches = ["a process with a long name", "└─ its directories"];
        let tree = vec![
            Series::new("what".into(), branches).into_column(),
            Series::new("bytes".into(), [1_i64 << 40, 1 << 40]).into_column(),
        ];
        let tree = Table::from(DataFrame::new_infer_height(tree).unwrap());
        let text = to_text(&tree, Some(22));
        assert!(text.contains("└─ its directories"), "{text}");
        let narrowest = to_text(&table, Some(34));
        assert!(
            narrowest.contains("(too wide for the terminal: write_bytes;"),
            "{narrowest}"
        );
    }
}
