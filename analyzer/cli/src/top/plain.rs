// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain lines: one for the device, and one for each process and file that caused something in the last interval.

use std::cmp::Reverse;
use std::io::{Write, stdout};
use std::sync::mpsc::Receiver;

use mostrace_map::class::Class;
use mostrace_trace::answer::percent;
use mostrace_trace::live::{Line, View};

use super::By;
use super::figures::{bytes, of_class, per_second, rate, times};
use super::show::Show;

/// Prints views as lines.
pub struct Lines {
    by: By,
    /// The number of processes or cgroups, and of files, in each view.
    lines: usize,
}

impl Lines {
    /// Takes what the lines are of, and their number.
    pub fn new(by: By, lines: usize) -> Lines {
        Lines { by, lines }
    }
}

impl Show for Lines {
    fn run(&mut self, views: &Receiver<View>) -> anyhow::Result<Option<View>> {
        let mut last = None;
        for view in views {
            let text = text(&view, self.by, self.lines);
            let mut out = stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
            last = Some(view);
        }
        Ok(last)
    }
}

/// Returns the lines about the whole time, which come last.
pub fn totals(view: &View, by: By, lines: usize) -> String {
    let of = &view.device;
    let mut text = format!(
        "in all {:.1} s, written {} in {} writes, read {} in {} reads, {} flushes, {} lost\n",
        view.since.as_secs_f64(),
        bytes(of.write_bytes),
        of.writes,
        bytes(of.read_bytes),
        of.reads,
        of.flushes,
        view.lost
    );
    for (what, all) in [(by.word(), &view.processes), ("file", &view.files)] {
        let is_idle = |line: &&Line| line.all.bytes() == 0 && line.all.flushes == 0;
        let mut all: Vec<&Line> = all.iter().filter(|line| !is_idle(line)).collect();
        all.sort_by_key(|line| Reverse((line.all.bytes(), line.all.flushes)));
        for line in all.into_iter().take(lines) {
            let amount = format!("{}, {} flushes", bytes(line.all.bytes()), line.all.flushes);
            text += &format!("  {what} {}: {amount}{}\n", line.name, amplified(line));
        }
    }
    text
}

/// Returns how many times as much was written as was asked for, to follow an amount; empty if that is unknown.
fn amplified(line: &Line) -> String {
    match times(line.all.amplification()) {
        times if times.is_empty() => times,
        times => format!(", {times} of {} to write()", bytes(line.all.asked)),
    }
}

/// Returns the lines of a view.
fn text(view: &View, by: By, lines: usize) -> String {
    let mut text = device(view);
    text.push('\n');
    for (what, all) in [(by.word(), &view.processes), ("file", &view.files)] {
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
    let amplification = amplified(line);
    format!(
        "  {what} {}: {}{classes}, {} flushes, in all {}{amplification}",
        line.name,
        rate(line.now.bytes(), view.lasted),
        line.now.flushes,
        bytes(line.all.bytes()),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mostrace_trace::live::Amount;
    use mostrace_trace::sums::Totals;

    use super::*;

    #[test]
    fn totals_are_of_the_whole_time() {
        let line = |name: &str, now, all| Line {
            name: name.into(),
            now: Amount {
                classes: [0, now, 0, 0],
                ..Amount::default()
            },
            all: Amount {
                classes: [0, all, 0, 0],
                flushes: 2,
                ..Amount::default()
            },
        };
        let view = View {
            since: Duration::from_millis(2500),
            device: Totals {
                writes: 3,
                write_bytes: 12_000,
                flushes: 2,
                ..Totals::default()
            },
            processes: vec![line("idle now", 0, 9000), line("late", 3000, 3000)],
            files: vec![line("/x.db", 0, 12_000)],
            ..View::default()
        };
        assert_eq!(
            totals(&view, By::Process, 1),
            "in all 2.5 s, written 12.0 kB in 3 writes, read 0 B in 0 reads, 2 flushes, 0 lost\n  \
             process idle now: 9.0 kB, 2 flushes\n  file /x.db: 12.0 kB, 2 flushes\n"
        );
        assert!(totals(&view, By::Cgroup, 1).contains("  cgroup idle now: "));
    }
}
