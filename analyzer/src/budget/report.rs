// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of limits, for people and for the programs that run tests.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesText, Event};

use super::Judgement;
use crate::transactions::Sure;

/// A line for each limit.
#[must_use]
pub fn text(judgements: &[Judgement]) -> String {
    let line = |j: &Judgement| {
        let verdict = if j.is_kept() { "ok  " } else { "OVER" };
        format!("{verdict} {}\n", sentence(j))
    };
    judgements.iter().map(line).collect()
}

/// GitHub's workflow commands: an annotation for each limit that is passed
/// (<https://docs.github.com/actions/reference/workflow-commands-for-github-actions>).
#[must_use]
pub fn github(judgements: &[Judgement]) -> String {
    // A name in a trace may be anything: it must not begin a command of its own.
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

/// JUnit's XML: a test case for each limit.
///
/// # Errors
/// Never, as it is written to memory.
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
                .with_attributes([("classname", trace), ("name", judgement.what)]);
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

/// What is limited, what it comes to, the limit, and where that went.
fn sentence(judgement: &Judgement) -> String {
    let Judgement {
        what, most, parts, ..
    } = judgement;
    let most = match judgement.sure {
        Sure::AtLeast => format!("{}; there may be more transactions", number(*most)),
        Sure::Exact | Sure::Unknown => number(*most),
    };
    let Some(value) = judgement.value else {
        return format!("{what}: the trace does not tell (at most {most})");
    };
    let value = number(value);
    match judgement.is_kept() {
        true => format!("{what}: {value} (at most {most})"),
        false if parts.is_empty() => format!("{what}: {value}, at most {most}"),
        false => format!("{what}: {value}, at most {most}: {}", parts.join(", ")),
    }
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
        let of = |value, most: f64| Judgement {
            what: "device flushes per transaction",
            value,
            most,
            sure: Sure::Exact,
            parts: vec!["/<a>&\n::error::x% 7".into()],
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
