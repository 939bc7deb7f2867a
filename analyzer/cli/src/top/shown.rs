// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contents of the screen, and how keys change them.

use std::collections::VecDeque;

use mostrace_map::class::Class;
use mostrace_trace::live::View;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline};

use super::By;
use super::figures::{bytes, per_second};
use super::head;
use super::list::{List, Order};

/// Number of intervals whose rate is kept, enough for a wide terminal's columns.
const HISTORY: usize = 400;

/// The help text, of at most 80 columns.
const HELP: &[&str] = &[
    " Tab          processes or files: which of them is above, and has the keys",
    " ↑ ↓ PgUp PgDn Home End   go through its lines",
    " s            order by the next column: now, all, ×, flushes, read, name",
    " /            show those lines alone in whose name a text is; Esc shows all",
    " Space        hold what is shown, and go on again",
    " ?            this text, and back",
    " q Esc Ctrl-C end",
    " now is of the last interval, all since the beginning; × is bytes written for",
    " each byte that write() was called with, of 1 MiB or more. What a journal",
    " writes counts for who caused it. Where nobody is known, who handed it to the",
    " disk stands there, marked (submitter): loop0 for a loop device's file.",
];

/// The contents of the screen.
#[derive(Default)]
pub struct Shown {
    device: String,
    by: By,
    view: View,
    /// The newest view, while the screen is paused.
    held: Option<View>,
    is_held: bool,
    /// Bytes written per second, the newest last.
    history: VecDeque<u64>,
    order: Order,
    files_first: bool,
    processes: List,
    files: List,
    search: String,
    is_typing: bool,
    is_help: bool,
}

impl Shown {
    /// Starts without a view.
    pub fn new(device: String, by: By) -> Shown {
        Shown {
            device,
            by,
            ..Shown::default()
        }
    }

    /// Takes the view of an interval.
    pub fn take(&mut self, view: View) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history
            .push_back(per_second(view.now.write_bytes, view.lasted));
        match self.is_held {
            true => self.held = Some(view),
            false => self.view = view,
        }
    }

    /// Returns true if the key ends the view. It does not while a text is typed or the help is shown.
    pub fn is_end(&self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') => !self.is_typing,
            KeyCode::Esc => !self.is_typing && !self.is_help && self.search.is_empty(),
            _ => false,
        }
    }

    /// Handles a key; returns true if it changes the screen.
    pub fn obey(&mut self, key: KeyCode) -> bool {
        if self.is_typing {
            return self.type_in(key);
        }
        match key {
            KeyCode::Tab => self.files_first = !self.files_first,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('?') => self.is_help = !self.is_help,
            KeyCode::Char(' ') => self.hold(),
            KeyCode::Esc => {
                self.is_help = false;
                self.search.clear();
            }
            key => return self.go(key),
        }
        true
    }

    fn type_in(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char(c) => self.search.push(c),
            KeyCode::Backspace => drop(self.search.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.search.clear();
            }
            _ => return false,
        }
        true
    }

    fn hold(&mut self) {
        self.is_held = !self.is_held;
        if let Some(view) = self.held.take() {
            self.view = view;
        }
    }

    fn go(&mut self, key: KeyCode) -> bool {
        let (list, lines) = match self.files_first {
            true => (&mut self.files, &self.view.files),
            false => (&mut self.processes, &self.view.processes),
        };
        list.go(key, &self.order.of(lines, &self.search))
    }

    /// Draws the whole screen.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let shown = [head::LINES, Class::ALL.len() as u16, 4].map(Constraint::Length);
        let rest = [
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(1),
        ];
        let rooms: [Rect; 6] = Layout::vertical(shown.into_iter().chain(rest)).areas(frame.area());
        let [top, classes, history, first, second, keys] = rooms;
        frame.render_widget(head::head(&self.device, &self.view, self.is_held), top);
        frame.render_widget(head::classes(&self.view, classes.width), classes);
        self.draw_history(frame, history);
        let (processes, files) = match self.files_first {
            true => (second, first),
            false => (first, second),
        };
        let lasted = self.view.lasted;
        let by_process = self.order.of(&self.view.processes, &self.search);
        self.processes
            .draw(frame, processes, self.by.word(), &by_process, lasted);
        let by_file = self.order.of(&self.view.files, &self.search);
        self.files.draw(frame, files, "file", &by_file, lasted);
        if self.is_help {
            let room = first.union(second);
            frame.render_widget(Clear, room);
            frame.render_widget(Paragraph::new(HELP.join("\n")), room);
        }
        frame.render_widget(self.keys(), keys);
    }

    fn keys(&self) -> Paragraph<'_> {
        if self.is_typing || !self.search.is_empty() {
            let cursor = if self.is_typing { "_" } else { "   Esc all" };
            return Paragraph::new(format!("/{}{cursor}", self.search));
        }
        let order = self.order.title();
        let held = if self.is_held { "go on" } else { "hold" };
        let keys = format!("? help  q end  Tab files  s by {order}  / search  Space {held}");
        Paragraph::new(keys).dim()
    }

    fn draw_history(&self, frame: &mut Frame<'_>, room: Rect) {
        let width = usize::from(room.width);
        let skipped = self.history.len().saturating_sub(width);
        let newest: Vec<u64> = self.history.iter().skip(skipped).copied().collect();
        let most = newest.iter().max().copied().unwrap_or(0);
        let title = format!("written, at most {}/s", bytes(most));
        let block = Block::new().title(title.dim());
        let history = Sparkline::default().data(&newest).block(block);
        frame.render_widget(history.style(Style::new().fg(Color::Cyan)), room);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mostrace_trace::live::{Amount, Line};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    const MEBI: u64 = 1 << 20;

    fn drawn(shown: &mut Shown, width: u16, height: u16) -> String {
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
            all: amount(all, MEBI),
        }
    }

    fn shown() -> Shown {
        let mut shown = Shown::new("/dev/\u{1b}[2Jx".into(), By::Process);
        shown.take(View {
            lasted: Duration::from_secs(2),
            processes: vec![line("app[12]", 0, 40 * MEBI), line("other[13]", 4096, 8192)],
            files: vec![line("/data/x.db", 4096, 49152)],
            lost: 3,
            ..View::default()
        });
        shown
    }

    #[test]
    fn names_figures_and_losses_are_on_the_screen() {
        for width in [80, 150] {
            let screen = drawn(&mut shown(), width, 30);
            for text in [
                "/dev/\\x1b[2Jx",
                "3 lost",
                "/data/x.db",
                "2.0 kB/s",
                "40.0 ×",
            ] {
                assert!(screen.contains(text), "{text}: {screen}");
            }
        }
    }

    /// A long name leaves room for figures, and long figures for a name.
    #[test]
    fn neither_names_nor_digits_are_cut_to_nothing() {
        let mut shown = shown();
        let long = format!("/data/{}/messages.db-wal", "x".repeat(100));
        shown.take(View {
            lasted: Duration::from_secs(1),
            processes: vec![line(
                "org.thoughtcrime.securesms[31337]",
                794_883_031,
                1 << 40,
            )],
            files: vec![line(&long, 794_883_031, 1 << 40)],
            ..View::default()
        });
        for width in [80, 100, 150] {
            let screen = drawn(&mut shown, width, 40);
            for text in [
                "org.thoughtcrime.secu",
                "/messages.db-wal",
                "794.9 MB/s",
                "1.1 TB",
            ] {
                assert!(screen.contains(text), "{width}, {text}: {screen}");
            }
        }
        let narrow = drawn(&mut shown, 30, 40);
        assert!(
            narrow.contains("org.tho") && narrow.contains("ges.db-wal"),
            "{narrow}"
        );
    }

    #[test]
    fn keys_change_the_order() {
        let mut shown = shown();
        let place = |shown: &mut Shown, text| drawn(shown, 150, 30).find(text).unwrap();
        assert!(place(&mut shown, "other[13]") < place(&mut shown, "app[12]"));
        assert!(place(&mut shown, "app[12]") < place(&mut shown, "/data/x.db"));
        assert!(shown.obey(KeyCode::Char('s')) && shown.obey(KeyCode::Tab));
        assert!(place(&mut shown, "app[12]") < place(&mut shown, "other[13]"));
        assert!(place(&mut shown, "/data/x.db") < place(&mut shown, "app[12]"));
        assert!(!shown.obey(KeyCode::Char('x')));
    }

    #[test]
    fn what_is_searched_for_is_shown_alone() {
        let mut shown = shown();
        for key in ['/', 'A', 'p', 'q'].map(KeyCode::Char) {
            assert!(!shown.is_end(key) && shown.obey(key));
        }
        assert!(shown.obey(KeyCode::Backspace) && shown.obey(KeyCode::Enter));
        let screen = drawn(&mut shown, 80, 24);
        assert!(
            screen.contains("app[12]") && !screen.contains("other[13]"),
            "{screen}"
        );
        assert!(!shown.is_end(KeyCode::Esc) && shown.obey(KeyCode::Esc));
        assert!(drawn(&mut shown, 80, 24).contains("other[13]"));
        assert!(shown.is_end(KeyCode::Esc) && shown.is_end(KeyCode::Char('q')));
    }

    #[test]
    fn what_is_held_stays_until_it_goes_on() {
        let mut shown = shown();
        assert!(shown.obey(KeyCode::Char(' ')));
        shown.take(View {
            files: vec![line("/new", 4096, 4096)],
            ..View::default()
        });
        let screen = drawn(&mut shown, 80, 24);
        assert!(
            screen.contains("/data/x.db") && screen.contains("HELD"),
            "{screen}"
        );
        assert!(shown.obey(KeyCode::Char(' ')));
        let screen = drawn(&mut shown, 80, 24);
        assert!(
            screen.contains("/new") && !screen.contains("HELD"),
            "{screen}"
        );
    }

    #[test]
    fn a_line_far_down_is_gone_to() {
        let mut shown = shown();
        let name = |n: u64| format!("p{n}[{n}]");
        shown.take(View {
            processes: (0..100).map(|n| line(&name(n), 1000 - n, 1000)).collect(),
            ..View::default()
        });
        assert!(!drawn(&mut shown, 80, 24).contains(&name(99)));
        assert!(shown.obey(KeyCode::End));
        assert!(drawn(&mut shown, 80, 24).contains(&name(99)));
        assert!(shown.obey(KeyCode::Home) && shown.obey(KeyCode::Down));
        assert!(!drawn(&mut shown, 80, 24).contains(&name(99)));
    }

    #[test]
    fn help_is_shown_and_goes() {
        let mut shown = shown();
        assert!(shown.obey(KeyCode::Char('?')));
        assert!(drawn(&mut shown, 80, 24).contains("order by the next column"));
        assert!(!shown.is_end(KeyCode::Esc) && shown.obey(KeyCode::Esc));
        assert!(!drawn(&mut shown, 80, 24).contains("order by the next column"));
    }

    #[test]
    fn fits_a_terminal_of_any_size() {
        for (width, height) in [(1, 1), (20, 5), (80, 12), (500, 100)] {
            drawn(&mut shown(), width, height);
        }
    }
}
