// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain lines: one for the device, and one for each process and file that caused something in the last interval.

use std::cmp::Reverse;
use std::io::{Write, stdout};
use std::sync::mpsc::Receiver;

use mostrace_map::class::Class;
use mostrace_trace::live::{Line, View};

use super::figures::{bytes, of_class, per_second, percent, rate, times};
use super::show::Show;

/// Prints views as lines, with this many processes and files in each.
pub struct Lines(usize);

impl Lines {
    /// Takes the number of processes and files.
    pub fn new(lines: usize) -> Lines {
        Lines(lines)
    }
}

impl Show for Lines {
    fn run(&mut self, views: &Receiver<View>) -> anyhow::Result<()> {
        for view in views {
            let text = text(&view, self.0);
            let mut out = stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }
}

/// Returns the lines of a view.
fn text(view: &View, lines: usize) -> String {
    let mut text = device(view);
    text.push('\n');
    for (what, all) in [("process", &view.processes), ("file", &view.files)] {
        for found in now(all).into_iter().take(lines) {
            text.push_str(&line(what, found, view));
            text.push('\n');
        }
    }
    text
}

fn device(view: &View) -> String {
    let View { now, lasted, .. } = view;
    let classes = Class::ALL.iter().zip(view.classes);
    let written = now.write_bytes;
    let classes: Vec<String> = classes
        .filter(|(_, (now, _))| *now > 0)
        .map(|(class, (now, _))| format!("{class} {} %", percent(now, written)))
        .collect();
    let mut parts = vec![
        format!("{:.1} s", view.since.as_secs_f64()),
        format!("written {}", rate(written, *lasted)),
        format!("{} writes/s", per_second(now.writes, *lasted)),
        format!("read {}", rate(now.read_bytes, *lasted)),
        format!("{} flushes/s", per_second(now.flushes, *lasted)),
    ];
    parts.extend(classes);
    parts.push(format!("in all written {}", bytes(view.device.write_bytes)));
    if let Some((_, asked)) = view.asked {
        parts.push(format!("for {} to write()", bytes(asked)));
        parts.extend(Some(times(view.amplification())).filter(|t| !t.is_empty()));
    }
    parts.push(format!("{} lost", view.lost));
    let interference = view.interference.iter();
    parts.extend(interference.map(|what| format!("INTERFERED: {what}")));
    parts.join(", ")
}

/// Returns the lines that caused something in the last interval, the largest first.
fn now(lines: &[Line]) -> Vec<&Line> {
    let is_idle = |line: &&Line| line.now.bytes() == 0 && line.now.flushes == 0;
    let mut now: Vec<&Line> = lines.iter().filter(|line| !is_idle(line)).collect();
    now.sort_by_key(|line| Reverse((line.now.bytes(), line.now.flushes)));
    now
}

fn line(what: &str, line: &Line, view: &View) -> String {
    let classes = Class::ALL
        .iter()
        .map(|class| (class, of_class(&line.now, *class)))
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(class, of_class)| format!(", {class} {}", bytes(of_class)));
    let classes: String = classes.collect();
    let amplification = match times(line.all.amplification()) {
        times if times.is_empty() => times,
        times => format!(", {times} of {} to write()", bytes(line.all.asked)),
    };
    format!(
        "  {what} {}: {}{classes}, {} flushes, in all {}{amplification}",
        line.name,
        rate(line.now.bytes(), view.lasted),
        line.now.flushes,
        bytes(line.all.bytes()),
    )
}
