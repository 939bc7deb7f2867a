// SPDX-License-Identifier: MIT OR Apache-2.0
//! The view that fills a terminal.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use mostrace::live::{Line, View};
use mostrace_map::class::Class;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table};
use ratatui::{DefaultTerminal, Frame};

use super::figures::{bytes, of_class, per_second, percent, rate, times};
use super::show::Show;

/// How long a key may wait.
const ANSWER: Duration = Duration::from_millis(100);
/// Intervals of which the rate is kept: as many as a wide terminal has columns.
const HISTORY: usize = 400;

/// The terminal; put back when it is dropped.
pub struct Screen {
    terminal: DefaultTerminal,
    shown: Shown,
}

/// What is on the screen.
#[derive(Default)]
struct Shown {
    device: String,
    view: View,
    /// Bytes written in a second, the newest last.
    history: VecDeque<u64>,
    /// Lines in the order of what they caused in all.
    by_all: bool,
    files_first: bool,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It is none.
    pub fn new(device: String) -> anyhow::Result<Screen> {
        Ok(Screen {
            terminal: ratatui::try_init()?,
            shown: Shown {
                device,
                ..Shown::default()
            },
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl Show for Screen {
    fn run(&mut self, views: &Receiver<View>) -> anyhow::Result<()> {
        let Screen { terminal, shown } = self;
        terminal.draw(|frame| shown.draw(frame))?;
        loop {
            let mut is_new = false;
            if event::poll(ANSWER)? {
                match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press && is_end(key) => {
                        return Ok(());
                    }
                    Event::Key(key) => is_new |= shown.obey(key.code),
                    Event::Resize(..) => is_new = true,
                    _ => {}
                }
            }
            match views.try_recv() {
                Ok(view) => {
                    shown.take(view);
                    is_new = true;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            if is_new {
                terminal.draw(|frame| shown.draw(frame))?;
            }
        }
    }
}

fn is_end(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => control,
        _ => false,
    }
}

impl Shown {
    fn take(&mut self, view: View) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history
            .push_back(per_second(view.now.write_bytes, view.lasted));
        self.view = view;
    }

    /// Whether the key changes what is shown.
    fn obey(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Tab => self.files_first = !self.files_first,
            KeyCode::Char('a') => self.by_all = !self.by_all,
            _ => return false,
        }
        true
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let shown = [3, Class::ALL.len() as u16, 4].map(Constraint::Length);
        let rest = [
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(1),
        ];
        let rooms: [Rect; 6] = Layout::vertical(shown.into_iter().chain(rest)).areas(frame.area());
        let [head, classes, history, first, second, keys] = rooms;
        frame.render_widget(self.head(), head);
        frame.render_widget(self.classes(classes.width), classes);
        self.draw_history(frame, history);
        let (processes, files) = match self.files_first {
            true => (second, first),
            false => (first, second),
        };
        let View {
            processes: by_process,
            files: by_file,
            ..
        } = &self.view;
        frame.render_widget(self.table("caused by process", by_process, true), processes);
        frame.render_widget(self.table("caused for file", by_file, false), files);
        let order = if self.by_all { "now" } else { "all" };
        let help = format!("q end   Tab files or processes first   a order by {order}");
        frame.render_widget(Paragraph::new(help).dim(), keys);
    }

    fn head(&self) -> Paragraph<'_> {
        let View { now, lasted, .. } = &self.view;
        let lost = format!("{} lost", self.view.lost);
        let lost = match self.view.lost {
            0 => lost.into(),
            _ => lost.red().bold(),
        };
        let mut title = vec![
            Span::from("mostrace top ").bold(),
            Span::from(mostrace::text::escape(self.device.as_bytes())),
            format!("   {:.0} s   ", self.view.since.as_secs_f64()).into(),
            lost,
        ];
        let interference = self.view.interference.iter();
        title.extend(interference.map(|what| format!("   INTERFERED: {what}").red()));
        let now = format!(
            "now    {} written ({} writes/s)   {} read   {} flushes/s",
            rate(now.write_bytes, *lasted),
            per_second(now.writes, *lasted),
            rate(now.read_bytes, *lasted),
            per_second(now.flushes, *lasted),
        );
        let device = &self.view.device;
        let mut all = format!("all    {} written", bytes(device.write_bytes));
        if let Some((_, asked)) = self.view.asked {
            all += &format!(" for {} to write()", bytes(asked));
        }
        let amplified = times(self.view.amplification());
        if !amplified.is_empty() {
            all += &format!(": {amplified}");
        }
        all += &format!("   {} flushes", device.flushes);
        Paragraph::new(vec![title.into(), now.into(), all.into()])
    }

    /// A bar for each class: its share of what is written now, and of all.
    fn classes(&self, width: u16) -> Paragraph<'_> {
        let room = usize::from(width.saturating_sub(52)).clamp(10, 40);
        let line = |(class, &(now, all)): (&Class, &(u64, u64))| {
            let share = percent(now, self.view.now.write_bytes);
            let filled = room * usize::try_from(share).unwrap_or(0) / 100;
            Text::from(vec![
                format!("{:<9}{share:>4} % ", class.as_str()).into(),
                Span::styled("█".repeat(filled), colour(*class)),
                Span::styled("░".repeat(room - filled.min(room)), Color::DarkGray),
                format!(" {:>14}", rate(now, self.view.lasted)).into(),
                format!("   all {:>3} %", percent(all, self.view.device.write_bytes)).into(),
            ])
        };
        let lines = Class::ALL.iter().zip(&self.view.classes).map(line);
        Paragraph::new(lines.collect::<Vec<_>>())
    }

    fn draw_history(&self, frame: &mut Frame<'_>, room: Rect) {
        let width = usize::from(room.width);
        let skipped = self.history.len().saturating_sub(width);
        let newest: Vec<u64> = self.history.iter().skip(skipped).copied().collect();
        let most = newest.iter().max().copied().unwrap_or(0);
        let title = format!("written, at most {}/s", bytes(most));
        let block = Block::new().title(title.dim());
        let history = Sparkline::default().data(&newest).block(block);
        frame.render_widget(history.style(Color::Cyan), room);
    }

    fn table(&self, title: &'static str, lines: &[Line], asked: bool) -> Table<'static> {
        let mut header = vec![title, "now", "all"];
        header.extend(["data", "journal", "metadata", "unknown", "flushes"]);
        if asked {
            header.extend(["to write()", "×"]);
        }
        let right = |text: String| Cell::from(Text::from(text).right_aligned());
        let row = |line: &Line| {
            let of = |class| bytes(of_class(&line.all, class));
            let mut cells = vec![
                Cell::from(line.name.clone()),
                right(rate(line.now.bytes(), self.view.lasted)),
                right(bytes(line.all.bytes())),
            ];
            let classes = [Class::Data, Class::Journal, Class::Metadata, Class::Unknown];
            cells.extend(classes.map(|class| right(of(class))));
            cells.push(right(line.all.flushes.to_string()));
            if asked {
                cells.push(right(bytes(line.all.asked)));
                cells.push(right(times(line.all.amplification())));
            }
            Row::new(cells)
        };
        let rows: Vec<Row<'_>> = self.order(lines).into_iter().map(row).collect();
        let figures = header.len() - 1;
        let widths = std::iter::once(Constraint::Fill(1))
            .chain(std::iter::repeat_n(Constraint::Length(11), figures));
        let mut names = header.into_iter();
        let first = names.next().map(Cell::from);
        let others = names.map(|name| right(name.to_owned()));
        let header = Row::new(first.into_iter().chain(others));
        let style = Style::new().bold().reversed();
        Table::new(rows, widths).header(header.style(style))
    }

    fn order<'l>(&self, lines: &'l [Line]) -> Vec<&'l Line> {
        let mut lines: Vec<&Line> = lines.iter().collect();
        if !self.by_all {
            lines.sort_by_key(|line| Reverse((line.now.bytes(), line.now.flushes)));
        }
        lines
    }
}

/// Apart for those who see few colours, too.
fn colour(class: Class) -> Color {
    match class {
        Class::Data => Color::Blue,
        Class::Journal => Color::Yellow,
        Class::Metadata => Color::Magenta,
        Class::Unknown => Color::Gray,
    }
}

#[cfg(test)]
mod tests {
    use mostrace::live::Amount;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(shown: &Shown, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| shown.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn line(name: &str, now: u64, all: u64) -> Line {
        let amount = |bytes, asked| Amount {
            classes: [0, bytes, 0, 0],
            asked,
            ..Amount::default()
        };
        Line {
            name: name.into(),
            now: amount(now, 0),
            all: amount(all, 1024),
        }
    }

    fn shown() -> Shown {
        let mut shown = Shown {
            device: "/dev/\u{1b}[2Jx".into(),
            ..Shown::default()
        };
        shown.take(View {
            lasted: Duration::from_secs(2),
            processes: vec![line("app[12]", 0, 40960), line("other[13]", 4096, 8192)],
            files: vec![line("/data/x.db", 4096, 49152)],
            lost: 3,
            ..View::default()
        });
        shown
    }

    #[test]
    fn names_figures_and_losses_are_on_the_screen() {
        let screen = drawn(&shown(), 150, 30);
        for text in [
            "/dev/\\x1b[2Jx",
            "3 lost",
            "/data/x.db",
            "2.00 KiB/s",
            "40.0 ×",
            "journal",
        ] {
            assert!(screen.contains(text), "{text}: {screen}");
        }
    }

    #[test]
    fn keys_change_the_order() {
        let mut shown = shown();
        let place = |shown: &Shown, text| drawn(shown, 150, 30).find(text).unwrap();
        assert!(place(&shown, "other[13]") < place(&shown, "app[12]"));
        assert!(place(&shown, "app[12]") < place(&shown, "/data/x.db"));
        assert!(shown.obey(KeyCode::Char('a')) && shown.obey(KeyCode::Tab));
        assert!(place(&shown, "app[12]") < place(&shown, "other[13]"));
        assert!(place(&shown, "/data/x.db") < place(&shown, "app[12]"));
        assert!(!shown.obey(KeyCode::Char('x')));
    }

    #[test]
    fn fits_a_terminal_of_any_size() {
        for (width, height) in [(1, 1), (20, 5), (80, 12), (500, 100)] {
            drawn(&shown(), width, height);
        }
    }
}
