// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer on a terminal: its lines are broken between words, and the names of layers and their bars have the colours that the page
//! has for them. Nothing else has a colour, and a colour has one meaning.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use mostrace_trace::output::{Output, WriteError};
use mostrace_trace::text::harmless_lines;

use crate::wrap::wrapped;

/// The names of layers of files; all others that are no journal and no metadata are contents of other files.
const DATABASE: &str = "the database";
const UNKNOWN: &str = "blocks of no known owner";
const CONTENTS: [&str; 5] = [
    "the files' contents",
    "other files",
    "files without a known name",
    "directories",
    "symbolic links",
];
const BAR: char = '█';

/// Writes an answer; on a terminal as wide as that, and with colours, unless the environment forbids these (NO_COLOR, CLICOLOR=0,
/// TERM=dumb).
pub fn put(out: &mut Output, text: &str) -> Result<(), WriteError> {
    if !out.is_terminal() {
        return out.text(text);
    }
    // What a name holds is made harmless before the colours are added.
    let mut text = harmless_lines(text);
    if let Some(width) = out.width() {
        text = wrapped(&text, width);
    }
    if AutoStream::choice(&std::io::stdout()) != ColorChoice::Never {
        text = text.lines().map(|line| painted(line) + "\n").collect();
    }
    out.page(&text)
}

/// Colours a line of the answer: `71 %  LAYER, why`, or `2.9 MB  49 % ███ │  └─ LAYER`.
fn painted(line: &str) -> String {
    let Some((before, rest)) = line.rsplit_once("─ ").or_else(|| line.split_once(" %  ")) else {
        return line.to_owned();
    };
    let name = rest.split(", ").next().unwrap_or(rest);
    let Some(style) = style(name) else {
        return line.to_owned();
    };
    let at = line.len() - rest.len();
    let (mark, why) = (&line[before.len()..at], &rest[name.len()..]);
    let bar: String = before.chars().filter(|c| *c == BAR).collect();
    let before = match bar.is_empty() {
        true => before.to_owned(),
        false => before.replacen(&bar, &format!("{style}{bar}{style:#}"), 1),
    };
    format!("{before}{mark}{style}{name}{style:#}{why}")
}

/// Returns the colour of a layer; None for what is no layer.
fn style(name: &str) -> Option<Style> {
    let colour = match name {
        DATABASE => AnsiColor::Blue,
        UNKNOWN => AnsiColor::BrightBlack,
        name if CONTENTS.contains(&name) => AnsiColor::Green,
        name if name.starts_with("SQLite's ") => AnsiColor::Cyan,
        name if name.starts_with('/') => return None,
        name if name.ends_with("'s metadata") => AnsiColor::Yellow,
        name if name.ends_with("'s journal") => AnsiColor::Red,
        _ => return None,
    };
    Some(colour.on_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_has_its_colour_and_its_bar_too() {
        assert_eq!(
            painted("   71 %  ext4's journal, mostly because the WAL grew"),
            "   71 %  \x1b[31mext4's journal\x1b[0m, mostly because the WAL grew"
        );
        assert_eq!(
            painted("    8.6 MB  28 % ██████               │  └─ SQLite's WAL"),
            "    8.6 MB  28 % \x1b[36m██████\x1b[0m               │  └─ \x1b[36mSQLite's WAL\x1b[0m"
        );
        for line in [
            "   30.2 MB  99 % ████████████████████ ├─ /a's journal",
            "  162.6 kB   1 % █                    └─ others",
            "Each of 10 transactions wrote 1.0 kB.",
            "",
        ] {
            assert_eq!(painted(line), line);
        }
    }

    /// Without its escape sequences, a line is what it was.
    #[test]
    fn nothing_but_colours_is_added() {
        for name in ["the database", "f2fs's metadata", "directories", UNKNOWN] {
            let line = format!("  500.0 kB  50 % ██████████           │  └─ {name}");
            let painted = painted(&line);
            assert_ne!(painted, line);
            assert_eq!(anstream::adapter::strip_str(&painted).to_string(), line);
        }
    }
}
