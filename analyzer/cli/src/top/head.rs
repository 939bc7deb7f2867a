// SPDX-License-Identifier: MIT OR Apache-2.0
//! The head of the screen: some lines about the device, and a bar for each class.

use mostrace_map::class::Class;
use mostrace_trace::answer::percent;
use mostrace_trace::live::View;
use ratatui::style::{Color, Stylize};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::Paragraph;

use super::figures::{bytes, latency, per_second, rate, times};

/// The number of lines about the device.
pub const LINES: u16 = 4;

/// Draws the device's figures for the last interval and in total.
pub fn head<'v>(device: &str, view: &'v View, is_held: bool) -> Paragraph<'v> {
    Paragraph::new(vec![
        title(device, view, is_held),
        written(view).into(),
        read(view).into(),
        in_all(view).into(),
    ])
}

fn title<'v>(device: &str, view: &View, is_held: bool) -> Text<'v> {
    let lost = format!("{} lost", view.lost);
    let mut title = vec![
        Span::from("mostrace top ").bold(),
        Span::from(mostrace_trace::text::escape(device.as_bytes())),
        format!("   {:.0} s   ", view.since.as_secs_f64()).into(),
        match view.lost {
            0 => lost.into(),
            _ => lost.red().bold(),
        },
    ];
    if is_held {
        title.push("   HELD".bold());
    }
    let interference = view.interference.iter();
    title.extend(interference.map(|what| format!("   INTERFERED: {what}").red()));
    title.into()
}

fn written(view: &View) -> String {
    let View { now, lasted, .. } = view;
    format!(
        "written {} ({}/s{})   {} flushes/s",
        rate(now.write_bytes, *lasted),
        per_second(now.writes, *lasted),
        latency(&view.write_latency),
        per_second(now.flushes, *lasted),
    )
}

fn read(view: &View) -> String {
    let View { now, lasted, .. } = view;
    format!(
        "read    {} ({}/s{})",
        rate(now.read_bytes, *lasted),
        per_second(now.reads, *lasted),
        latency(&view.read_latency),
    )
}

fn in_all(view: &View) -> String {
    let device = &view.device;
    let mut all = format!("in all  {} written", bytes(device.write_bytes));
    if let Some((_, asked)) = view.asked {
        all += &format!(" for {} to write()", bytes(asked));
    }
    let amplified = times(view.amplification());
    if !amplified.is_empty() {
        all += &format!(": {amplified}");
    }
    all + &format!("   {} flushes", device.flushes)
}

/// Draws a bar for each class, with its share of what is written now and in total.
pub fn classes(view: &View, width: u16) -> Paragraph<'static> {
    let room = usize::from(width.saturating_sub(52)).clamp(10, 40);
    let line = |(class, &(now, all)): (&Class, &(u64, u64))| {
        let share = percent(now, view.now.write_bytes);
        let filled = room * usize::try_from(share).unwrap_or(0) / 100;
        Text::from(vec![
            format!("{:<9}{share:>4} % ", class.as_str()).into(),
            Span::styled("█".repeat(filled), colour(*class)),
            Span::styled("░".repeat(room - filled.min(room)), Color::DarkGray),
            format!(" {:>14}", rate(now, view.lasted)).into(),
            format!("   all {:>3} %", percent(all, view.device.write_bytes)).into(),
        ])
    };
    let lines = Class::ALL.iter().zip(&view.classes).map(line);
    Paragraph::new(lines.collect::<Vec<_>>())
}

/// Returns the class's colour, which is that of the answer's layers; data are of a database's. The colours can be distinguished by
/// colour-blind people too.
fn colour(class: Class) -> Color {
    match class {
        Class::Data => Color::Blue,
        Class::Journal => Color::Red,
        Class::Metadata => Color::Yellow,
        Class::Unknown => Color::DarkGray,
    }
}
