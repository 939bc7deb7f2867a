// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes or files, one a line: first the name, then as many figures as fit.

use std::cmp::Reverse;
use std::time::Duration;

use mostrace_map::class::Class;
use mostrace_trace::fitting::{beginning, end};
use mostrace_trace::live::Line;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::Line as Text;
use ratatui::widgets::{Cell, Row, Table, TableState};
use strum::{IntoStaticStr, VariantArray};

use super::figures::{bytes, of_class, rate, times};

/// The least width of a name while there is more than one figure.
const NAME: u16 = 28;
/// The widths of the longest rate, `1023.99 MiB/s`, and of the longest figure of bytes.
const RATE: u16 = 13;
const BYTES: u16 = 11;
/// The number of lines of a page.
const PAGE: usize = 10;

/// A figure of a line.
struct Column {
    title: &'static str,
    width: u16,
    text: fn(&Line, Duration) -> String,
}

/// The columns, the most important first.
const COLUMNS: [Column; 10] = [
    column("now", RATE, |line, lasted| rate(line.now.bytes(), lasted)),
    column("all", BYTES, |line, _| bytes(line.all.bytes())),
    column("×", 8, |line, _| times(line.all.amplification())),
    column("flushes", 8, |line, _| line.all.flushes.to_string()),
    column("read", RATE, |line, lasted| rate(line.now.read, lasted)),
    column("to write()", BYTES, |line, _| match line.all.asked {
        0 => String::new(),
        asked => bytes(asked),
    }),
    column("journal", BYTES, |line, _| class(line, Class::Journal)),
    column("data", BYTES, |line, _| class(line, Class::Data)),
    column("metadata", BYTES, |line, _| class(line, Class::Metadata)),
    column("unknown", BYTES, |line, _| class(line, Class::Unknown)),
];

const fn column(title: &'static str, width: u16, text: fn(&Line, Duration) -> String) -> Column {
    Column { title, width, text }
}

fn class(line: &Line, class: Class) -> String {
    bytes(of_class(&line.all, class))
}

/// The figure by which lines are sorted, the largest first.
#[derive(Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Order {
    /// Bytes written in the last interval.
    #[default]
    Now,
    /// Bytes written in total.
    All,
    /// Bytes written per byte that was asked for.
    #[strum(serialize = "×")]
    Times,
    /// Flushes in total.
    Flushes,
    /// Bytes read in the last interval.
    Read,
    /// The name, in alphabetical order.
    Name,
}

impl Order {
    /// Returns the next order, and the first one after the last.
    pub fn next(self) -> Order {
        let at = Order::VARIANTS.iter().position(|order| *order == self);
        let next = at.map_or(0, |at| at + 1);
        Order::VARIANTS.get(next).copied().unwrap_or_default()
    }

    /// Returns the title of the order's column.
    pub fn title(self) -> &'static str {
        self.into()
    }

    /// Returns the lines in this order, only those whose name contains `search`, regardless of case.
    pub fn of<'l>(self, lines: &'l [Line], search: &str) -> Vec<&'l Line> {
        let search = search.to_lowercase();
        let is_found = |line: &&Line| line.name.to_lowercase().contains(&search);
        let mut lines: Vec<&Line> = lines.iter().filter(is_found).collect();
        match self {
            Order::Now => {
                lines.sort_by_key(|line| Reverse((line.now.bytes(), line.now.flushes)));
            }
            Order::All => lines.sort_by_key(|line| Reverse(line.all.bytes())),
            Order::Times => lines.sort_by(|a, b| {
                let times = |line: &Line| line.all.amplification().unwrap_or(0.0);
                times(b).total_cmp(&times(a))
            }),
            Order::Flushes => lines.sort_by_key(|line| Reverse(line.all.flushes)),
            Order::Read => lines.sort_by_key(|line| Reverse(line.now.read)),
            Order::Name => lines.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        lines
    }
}

/// The visible lines and the selected one.
#[derive(Default)]
pub struct List {
    state: TableState,
    /// The name of the selected line, whose place may change.
    selected: Option<String>,
}

impl List {
    /// Moves the selection if the key does that; returns whether it does.
    pub fn go(&mut self, key: KeyCode, lines: &[&Line]) -> bool {
        let Some(last) = lines.len().checked_sub(1) else {
            return false;
        };
        let at = self.place(lines);
        let below = |lines: usize| at.map_or(0, |at| at.saturating_add(lines)).min(last);
        let above = |lines: usize| at.map_or(0, |at| at.saturating_sub(lines));
        let to = match key {
            KeyCode::Down => below(1),
            KeyCode::Up => above(1),
            KeyCode::PageDown => below(PAGE),
            KeyCode::PageUp => above(PAGE),
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return false,
        };
        self.selected = lines.get(to).map(|line| line.name.clone());
        true
    }

    fn place(&self, lines: &[&Line]) -> Option<usize> {
        let name = self.selected.as_ref()?;
        lines.iter().position(|line| line.name == *name)
    }

    /// Draws as many lines and figures as fit.
    pub fn draw(
        &mut self,
        frame: &mut Frame<'_>,
        room: Rect,
        title: &'static str,
        lines: &[&Line],
        lasted: Duration,
    ) {
        self.state.select(self.place(lines));
        let (columns, name) = fitting(room.width, title != "file");
        let right = |text: String| Cell::from(Text::from(text).right_aligned());
        let row = |line: &&Line| {
            let figures = columns.iter().map(|column| (column.text)(line, lasted));
            let name = Cell::from(shortened(&line.name, name));
            Row::new(std::iter::once(name).chain(figures.map(right)))
        };
        let rows: Vec<Row<'_>> = lines.iter().map(row).collect();
        let titles = columns.iter().map(|column| right(column.title.to_owned()));
        let header =
            Row::new(std::iter::once(Cell::from(format!("caused by {title}"))).chain(titles));
        let widths = std::iter::once(name).chain(columns.iter().map(|column| column.width));
        let table = Table::new(rows, widths.map(Constraint::Length))
            .header(header.style(Style::new().bold().reversed()))
            .row_highlight_style(Style::new().reversed());
        frame.render_stateful_widget(table, room, &mut self.state);
    }
}

/// Returns the columns that fit, and the width that is left for a name.
fn fitting(width: u16, is_process: bool) -> (Vec<&'static Column>, u16) {
    let mut left = width;
    let mut fitting = Vec::new();
    // Files do not have the bytes that were asked for.
    let of_processes = ["×", "to write()"];
    let columns = COLUMNS
        .iter()
        .filter(|column| is_process || !of_processes.contains(&column.title));
    for column in columns {
        let takes = column.width + 1;
        let least = if fitting.is_empty() { NAME / 2 } else { NAME };
        match left.checked_sub(takes).filter(|left| *left >= least) {
            Some(rest) => left = rest,
            None => break,
        }
        fitting.push(column);
    }
    (fitting, left)
}

/// Shortens a name: a path keeps its end, any other name its beginning.
fn shortened(name: &str, room: u16) -> String {
    let room = usize::from(room);
    let left = room.saturating_sub(1);
    match name.starts_with('/') {
        _ if beginning(name, room) == name => name.to_owned(),
        true => format!("…{}", end(name, left)),
        false => format!("{}…", beginning(name, left)),
    }
}
