// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats judgements for people and for programs that run tests.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesText, Event};
use serde_json::{Value, json};

use super::{From, Held, Judgement, Measured, Runs, Spread, Tolerance};
use crate::answer::size;
use crate::transactions::Sure;

/// Returns a line for each limit; below one that is exceeded, what sums to the bytes written.
#[must_use]
pub fn text(judgements: &[Judgement]) -> String {
    let line = |j: &Judgement| {
        if let Judgement::Held(held) = j
            && !j.is_kept()
            && let (Some(value), [_, ..]) = (&held.value, &held.sum[..])
        {
            return over(held, value);
        }
        let verdict = match j {
            _ if j.is_kept() => "ok  ",
            Judgement::Held(_) => "OVER",
            Judgement::Failed { .. } | Judgement::Nothing { .. } => "FAIL",
        };
        format!("{verdict} {}\n", sentence(j))
    };
    judgements.iter().map(line).collect()
}

/// Describes a limit of bytes that is exceeded.
fn over(held: &Held, value: &Spread) -> String {
    let (what, value, most) = (
        held.what,
        value_words(held.what, value),
        amount(held.what, held.most),
    );
    let of_bytes = what
        .strip_prefix("bytes written")
        .filter(|_| !is_ratio(what));
    let mut text = match of_bytes {
        Some(per) => format!("OVER  {value} written{per}, at most {most}"),
        None => format!("OVER  {what}: {value}, at most {most}"),
    };
    if held.sure == Sure::AtLeast {
        text += MORE;
    }
    text.push('\n');
    for (bytes, name) in &held.sum {
        text += &format!("{:>14}  {name}\n", size(*bytes as f64));
    }
    text
}

/// Returns a line for each figure of several runs: the median, the smallest and the largest value.
#[must_use]
pub fn runs(runs: &Runs) -> String {
    let per_transaction = |n: u64, run: &Measured| {
        let count = run.transactions.divisor();
        count.map(|count| n as f64 / count as f64)
    };
    let figures = [
        (
            "bytes written",
            runs.figure(|run| Some(run.write_bytes as f64)),
        ),
        (
            "bytes written per transaction",
            runs.figure(|run| per_transaction(run.write_bytes, run)),
        ),
        (
            "device flushes",
            runs.figure(|run| Some(run.flushes as f64)),
        ),
    ];
    let line = |(what, figure): (&str, Option<Spread>)| {
        let figure = figure?;
        let spread = figure
            .part()
            .map(|part| format!(" ({})", percent(part)))
            .unwrap_or_default();
        Some(format!("{what}: {}{spread}\n", value_words(what, &figure)))
    };
    figures.into_iter().filter_map(line).collect()
}

/// Returns a JSON object for each limit: `what`, whether it is `kept`, the figures `value` and `most` if there are any, and
/// the `sentence` for people.
#[must_use]
pub fn json(judgements: &[Judgement]) -> Value {
    let of = |judgement: &Judgement| {
        let held = match judgement {
            Judgement::Held(held) => Some(held),
            Judgement::Failed { .. } | Judgement::Nothing { .. } => None,
        };
        json!({
            "what": judgement.what(),
            "kept": judgement.is_kept(),
            "value": held.and_then(|held| Some(held.value?.median)),
            "most": held.map(|held| held.most),
            "sentence": sentence(judgement),
        })
    };
    judgements.iter().map(of).collect()
}

/// Returns a line about bytes that the figures leave out, or that they include though they may be others'; nothing if all
/// are the command's. Of several runs, it describes the median one.
#[must_use]
pub fn counted(runs: &Runs) -> String {
    let words = runs.typical().counted.words();
    words.map_or(String::new(), |words| words + "\n")
}

/// Returns the same for programs; null if all bytes count.
#[must_use]
pub fn not_counted(runs: &Runs) -> Value {
    runs.typical().counted.value()
}

/// Returns GitHub's workflow commands: an annotation for each limit that is exceeded
/// (<https://docs.github.com/actions/reference/workflow-commands-for-github-actions>).
#[must_use]
pub fn github(judgements: &[Judgement]) -> String {
    // A name in a trace may be any text: it must not start a command.
    let escaped = |text: &str| {
        let text = text.replace('%', "%25").replace('\r', "%0D");
        text.replace('\n', "%0A")
    };
    let line = |j: &Judgement| match j.is_kept() {
        true => format!("{}\n", escaped(&sentence(j))),
        false => format!("::error title=mostrace::{}\n", escaped(&sentence(j))),
    };
    judgements.iter().map(line).collect()
}

/// Returns JUnit's XML, with a test case for each limit.
///
/// # Errors
/// Never fails, because it is written to memory.
pub fn junit(trace: &str, judgements: &[Judgement]) -> io::Result<String> {
    let failures = judgements.iter().filter(|j| !j.is_kept()).count();
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 1);
    let suite = out.create_element("testsuite").with_attributes([
        ("name", "mostrace"),
        ("tests", &*judgements.len().to_string()),
        ("failures", &*failures.to_string()),
    ]);
    suite.write_inner_content(|out| {
        for judgement in judgements {
            let case = out
                .create_element("testcase")
                .with_attributes([("classname", trace), ("name", judgement.what())]);
            if judgement.is_kept() {
                case.write_empty()?;
                continue;
            }
            case.write_inner_content(|out| {
                let failure = out.create_element("failure");
                failure.write_text_content(BytesText::new(&sentence(judgement)))?;
                Ok(())
            })?;
        }
        Ok(())
    })?;
    out.write_event(Event::Text(BytesText::new("\n")))?;
    Ok(String::from_utf8_lossy(&out.into_inner()).into_owned())
}

fn sentence(judgement: &Judgement) -> String {
    match judgement {
        Judgement::Held(held) => held_sentence(held, judgement.is_kept()),
        Judgement::Failed { runs, of, status } => {
            let ended = format!("the command ended with {status}");
            match of {
                1 => format!("{ended}, so that nothing can be said of it"),
                of => {
                    format!("{ended} in {runs} of {of} runs, so that nothing can be said of them")
                }
            }
        }
        Judgement::Nothing { baseline } => {
            let baseline = size(*baseline);
            format!("bytes written: 0, where the baseline has {baseline}")
        }
    }
}

/// Describes a comparison: the figure, its value, the limit, and the largest parts.
fn held_sentence(held: &Held, is_kept: bool) -> String {
    let Held { what, parts, .. } = held;
    let mut most = amount(what, held.most);
    if let Some(from) = &held.from {
        most += &reckoned(what, from);
    }
    if held.sure == Sure::AtLeast {
        most += MORE;
    }
    let Some(value) = held.value else {
        return format!("{what}: the trace does not tell (at most {most})");
    };
    let value = value_words(what, &value);
    match is_kept {
        true => format!("{what}: {value} (at most {most})"),
        false if parts.is_empty() => format!("{what}: {value}, at most {most}"),
        false => format!("{what}: {value}, at most {most}: {}", parts.join(", ")),
    }
}

const MORE: &str = "; there may be more transactions";

fn is_ratio(what: &str) -> bool {
    what.starts_with("bytes written per byte")
}

/// Formats a figure: bytes with a unit, others as a number.
fn amount(what: &str, figure: f64) -> String {
    match what.starts_with("bytes written") && !is_ratio(what) {
        true => size(figure),
        false => number(figure),
    }
}

fn value_words(what: &str, value: &Spread) -> String {
    let median = amount(what, value.median);
    match value.runs {
        1 => median,
        runs => {
            let (least, most) = (amount(what, value.least), amount(what, value.most));
            format!("{median}, the median of {runs} runs from {least} to {most}")
        }
    }
}

/// Describes how the limit was computed.
fn reckoned(what: &str, from: &From) -> String {
    let baseline = amount(what, from.baseline);
    let runs = match from.runs {
        1 => "one run".to_owned(),
        runs => format!("{runs} runs"),
    };
    match from.tolerance {
        Tolerance::Given(part) => format!(", {} more than {baseline} of {runs}", percent(part)),
        Tolerance::Spread(part) => format!(
            ", {} more than {baseline} of {runs}: by so much runs differ",
            percent(part)
        ),
        Tolerance::Unknown => {
            "; one run of each does not tell by how much runs differ, measure --runs does".into()
        }
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn number(n: f64) -> String {
    if n.fract() == 0.0 || n >= 1000.0 {
        format!("{n:.0}")
    } else {
        format!("{n:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgements() -> Vec<Judgement> {
        let of = |value: Option<f64>, most: f64| {
            Judgement::Held(Held {
                what: "device flushes per transaction",
                value: value.map(|value| Spread {
                    runs: 1,
                    median: value,
                    least: value,
                    most: value,
                }),
                most,
                from: None,
                sure: Sure::Exact,
                parts: vec!["/<a>&\n::error::x% 7".into()],
                sum: Vec::new(),
            })
        };
        vec![of(Some(2.0), 2.0), of(Some(2.5), 2.0), of(None, 1.0)]
    }

    #[test]
    fn a_line_for_each_limit() {
        let lines = text(&judgements()[..1]);
        assert_eq!(
            lines,
            "ok   device flushes per transaction: 2 (at most 2)\n"
        );
        assert!(
            text(&judgements()[1..])
                .starts_with("OVER device flushes per transaction: 2.50, at most 2: /<a>")
        );
    }

    #[test]
    fn what_is_over_is_a_sum() {
        let held = |what, sum| {
            Judgement::Held(Held {
                what,
                value: Some(Spread {
                    runs: 1,
                    median: 4_500_000.0,
                    least: 4_500_000.0,
                    most: 4_500_000.0,
                }),
                most: 1_000_000.0,
                from: None,
                sure: Sure::Exact,
                parts: Vec::new(),
                sum,
            })
        };
        let sum = vec![
            (3_000_000, "ext4's journal".to_owned()),
            (1_400_000, "SQLite's WAL".into()),
            (100_000, "others".into()),
            (1_300_000, "of it to /x.db-wal".into()),
        ];
        assert_eq!(
            text(&[held("bytes written", sum)]),
            "OVER  4.5 MB written, at most 1.0 MB\n        3.0 MB  ext4's journal\n        1.4 MB  SQLite's WAL\n      \
             100.0 kB  others\n        1.3 MB  of it to /x.db-wal\n"
        );
    }

    #[test]
    fn only_bytes_have_a_unit() {
        let what = "bytes written per byte stored";
        assert_eq!(amount(what, 2500.0), "2500");
        assert_eq!(amount("bytes written", 2500.0), "2.5 kB");
        assert_eq!(amount("device flushes", 2500.0), "2500");
    }

    #[test]
    fn a_line_says_what_the_limit_is_reckoned_from() {
        let of = |runs: usize, tolerance| {
            let held = Held {
                what: "bytes written, to the baseline",
                value: Some(Spread {
                    runs,
                    median: 4100.0,
                    least: 4000.0,
                    most: 4200.0,
                }),
                most: 4400.0,
                from: Some(From {
                    baseline: 4000.0,
                    runs,
                    tolerance,
                }),
                sure: Sure::Exact,
                parts: Vec::new(),
                sum: Vec::new(),
            };
            text(&[Judgement::Held(held)])
        };
        let begin = "ok   bytes written, to the baseline: 4.1 kB";
        assert_eq!(
            of(3, Tolerance::Spread(0.1)),
            format!(
                "{begin}, the median of 3 runs from 4.0 kB to 4.2 kB (at most 4.4 kB, 10.0 % more than 4.0 kB of 3 runs: by so much runs differ)\n"
            )
        );
        assert_eq!(
            of(1, Tolerance::Given(0.1)),
            format!("{begin} (at most 4.4 kB, 10.0 % more than 4.0 kB of one run)\n")
        );
        let one = of(1, Tolerance::Unknown);
        assert!(one.contains("one run of each does not tell"), "{one}");
    }

    #[test]
    fn a_command_that_failed_is_not_ok() {
        let failed = Judgement::Failed {
            runs: 1,
            of: 1,
            status: 3,
        };
        let nothing = Judgement::Nothing { baseline: 4096.0 };
        assert_eq!(
            text(&[failed, nothing]),
            "FAIL the command ended with 3, so that nothing can be said of it\n\
             FAIL bytes written: 0, where the baseline has 4.1 kB\n"
        );
    }

    #[test]
    fn names_begin_no_command() {
        let told = github(&judgements());
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines
                .iter()
                .filter(|l| l.starts_with("::error title=mostrace::"))
                .count(),
            2
        );
        assert!(lines[1].ends_with("/<a>&%0A::error::x%25 7"));
    }

    #[test]
    fn names_are_text_in_xml() {
        let xml = junit("/tmp/\"x\".most", &judgements()).unwrap();
        let mut reader = quick_xml::Reader::from_str(&xml);
        let (mut cases, mut failures) = (0, 0);
        loop {
            match reader.read_event().unwrap() {
                Event::Start(e) | Event::Empty(e) => match e.name().as_ref() {
                    b"testcase" => cases += 1,
                    b"failure" => failures += 1,
                    b"testsuite" => {}
                    other => panic!("{other:?}"),
                },
                Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!((cases, failures), (3, 2), "{xml}");
    }
}
