// SPDX-License-Identifier: MIT OR Apache-2.0
//! The view that fills a terminal.

use std::io::{IsTerminal, stdout};
use std::mem::forget;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use mostrace_trace::live::View;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::By;
use super::show::Show;
use super::shown::Shown;

/// The longest time that a key waits.
const ANSWER: Duration = Duration::from_millis(100);

/// The terminal, which is restored when this value is dropped.
pub struct Screen {
    /// None once it is restored.
    terminal: Option<DefaultTerminal>,
    shown: Shown,
    /// True if a signal has come that ends the view.
    is_over: Arc<AtomicBool>,
    last: Option<View>,
}

impl Screen {
    /// Takes over the terminal.
    pub fn new(device: String, by: By, is_over: Arc<AtomicBool>) -> anyhow::Result<Screen> {
        Ok(Screen {
            terminal: Some(ratatui::try_init()?),
            shown: Shown::new(device, by),
            is_over,
            last: None,
        })
    }

    /// Returns true if the view must end: a signal has come, or the terminal is gone.
    fn is_left(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || !stdout().is_terminal()
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let Screen {
            terminal, shown, ..
        } = self;
        if let Some(terminal) = terminal {
            terminal.draw(|frame| shown.draw(frame))?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let terminal = self.terminal.take();
        match stdout().is_terminal() {
            true => drop(ratatui::try_restore()),
            // ratatui would try to show the cursor again, and would panic because it cannot report the failure.
            false => forget(terminal),
        }
    }
}

impl Show for Screen {
    fn run(&mut self, views: &Receiver<View>) -> anyhow::Result<Option<View>> {
        self.follow(views)?;
        Ok(self.last.take())
    }
}

impl Screen {
    fn follow(&mut self, views: &Receiver<View>) -> anyhow::Result<()> {
        self.draw()?;
        let events = events();
        while !self.is_left() {
            let mut is_new = false;
            match events.recv_timeout(ANSWER) {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Press => {}
                Ok(Event::Key(key)) if is_interrupt(key) => return Ok(()),
                Ok(Event::Key(key)) if self.shown.is_end(key.code) => return Ok(()),
                Ok(Event::Key(key)) => is_new |= self.shown.obey(key.code),
                Ok(Event::Resize(..)) => is_new = true,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            match views.try_recv() {
                Ok(view) => {
                    self.last = Some(view.clone());
                    self.shown.take(view);
                    is_new = true;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            if is_new {
                self.draw()?;
            }
        }
        Ok(())
    }
}

/// Returns the user's input. The thread ends with the process, because reading from a terminal that is gone does not always
/// return.
fn events() -> Receiver<Event> {
    let (sender, events) = channel();
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    events
}

/// Returns true for Ctrl-C, which sends no signal in raw mode.
fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}
