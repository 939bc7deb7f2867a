// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits SQL text into statements, at the tokens that end them in SQLite
//! (<https://www.sqlite.org/c3ref/complete.html>).

use std::fmt;
use std::time::Duration;

use super::Statement;

/// The beginning of a comment that gives a time.
const TIME: &str = "--@";

/// A log.
#[derive(Debug, Default)]
pub(super) struct Script<'t> {
    pub statements: Vec<Statement<'t>>,
    pub left_out: LeftOut<'t>,
}

/// The commands to the shell that change databases or their contents, and are not run.
#[derive(Debug, Default)]
pub(super) struct LeftOut<'t> {
    number: u64,
    /// The first of them, and its line.
    first: Option<(&'t str, u64)>,
}

impl fmt::Display for LeftOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            Some((first, line)) => {
                let number = self.number;
                write!(
                    f,
                    ", {number} commands left out, the first is {first} in line {line}"
                )
            }
            None => Ok(()),
        }
    }
}

/// Commands to the shell that change no database.
const HARMLESS: &str = "auth binary changes check connection databases dbinfo dump echo eqp excel expert explain \
    fullschema headers header help indexes indices intck limit lint log mode nonce nullvalue \
    once output parameter print progress prompt scanstats schema separator sha3sum show \
    stats tables timeout timer trace version vfsinfo vfslist vfsname width www";

/// Returns the statements, or the malformed line and the reason. Text behind the last semicolon is a statement too, if
/// it is more than comments.
pub(super) fn script(text: &str) -> Result<Script<'_>, (u64, String)> {
    let mut script = Script::default();
    let mut at = Duration::ZERO;
    let mut words = Words::default();
    let (mut start, mut place) = (None, 0);
    // The shell runs what it has read at the end of a line on which no statement is open.
    let (mut lines, mut bail, mut is_run) = (1, false, true);
    while let Some((token, len)) = next(text.get(place..).unwrap_or_default()) {
        let end = place.saturating_add(len);
        let this = text.get(place..end).unwrap_or_default();
        if is_run && begins_line(text, place) && this.starts_with(['.', '#']) {
            let rest = text.get(place..).unwrap_or_default();
            let command = rest.lines().next().unwrap_or_default();
            let mut words = command.split_whitespace();
            match (words.next().unwrap_or_default(), words.next()) {
                (".quit" | ".exit", _) => return Ok(script),
                (".bail", setting) => bail = setting.is_some_and(is_on),
                (name, _) => script.left_out.note(name, line(text, place)),
            }
            place = place.saturating_add(command.len());
            continue;
        }
        let ends_line =
            this.ends_with('\n') || matches!(token, Token::Space) && this.contains('\n');
        match token {
            Token::Space => {}
            Token::Comment => {
                if let Some(seconds) = this.strip_prefix(TIME) {
                    at = time(seconds).ok_or_else(|| {
                        (
                            line(text, place),
                            format!("`{}` is not a time", this.trim()),
                        )
                    })?;
                }
            }
            Token::Other => {
                start = start.or(Some(place));
                words.see(this);
            }
            Token::Semicolon => {
                if let Some(begin) = start.filter(|_| words.ends()) {
                    script.statements.push(Statement {
                        at,
                        line: line(text, begin),
                        text: text.get(begin..end).unwrap_or_default(),
                        lines,
                        bail,
                    });
                }
                if words.ends() {
                    start = None;
                    words = Words::default();
                }
            }
        }
        is_run = ends_line && start.is_none();
        lines = lines.saturating_add(u64::from(is_run));
        place = end;
    }
    if let Some(begin) = start {
        script.statements.push(Statement {
            at,
            line: line(text, begin),
            text: text.get(begin..).unwrap_or_default(),
            lines,
            bail,
        });
    }
    Ok(script)
}

impl<'t> LeftOut<'t> {
    fn note(&mut self, command: &'t str, line: u64) {
        let Some(name) = command.strip_prefix('.') else {
            return;
        };
        if !HARMLESS.split(' ').any(|harmless| harmless == name) {
            self.number = self.number.saturating_add(1);
            self.first.get_or_insert((command, line));
        }
    }
}

fn begins_line(text: &str, place: usize) -> bool {
    text.get(..place)
        .is_some_and(|before| before.is_empty() || before.ends_with('\n'))
}

fn is_on(setting: &str) -> bool {
    let is = |word: &str| setting.eq_ignore_ascii_case(word);
    is("on") || is("yes") || setting.parse::<i64>().is_ok_and(|number| number != 0)
}

/// Returns the number of transactions that the statements commit. Outside BEGIN and COMMIT, each statement that changes
/// something is one.
pub(super) fn commits(statements: &[Statement<'_>]) -> u64 {
    let mut is_open = false;
    let mut commits: u64 = 0;
    for statement in statements {
        let mut words = statement.text.split(|c: char| !c.is_ascii_alphabetic());
        let first = words.find(|word| !word.is_empty()).unwrap_or_default();
        let ends = match first.to_ascii_uppercase().as_str() {
            "BEGIN" => {
                is_open = true;
                false
            }
            "COMMIT" | "END" => std::mem::take(&mut is_open),
            "ROLLBACK" => {
                // ROLLBACK TO a savepoint does not end the transaction.
                is_open = is_open && words.any(|word| word.eq_ignore_ascii_case("to"));
                false
            }
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "CREATE" | "DROP" | "ALTER"
            | "REINDEX" | "VACUUM" | "WITH" => !is_open,
            _ => false,
        };
        commits = commits.saturating_add(u64::from(ends));
    }
    commits
}

fn time(seconds: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok()
}

fn line(text: &str, place: usize) -> u64 {
    let before = text.get(..place).unwrap_or_default();
    let lines = before.bytes().filter(|&b| b == b'\n').count();
    u64::try_from(lines).unwrap_or(u64::MAX).saturating_add(1)
}

enum Token {
    Space,
    Comment,
    Semicolon,
    Other,
}

/// Returns the first token and its length in bytes.
fn next(text: &str) -> Option<(Token, usize)> {
    let first = text.chars().next()?;
    let all = text.len();
    let until = |end: &str, skip: usize| {
        let rest = text.get(skip..).unwrap_or_default();
        let found = rest.find(end);
        found.map_or(all, |at| skip.saturating_add(at).saturating_add(end.len()))
    };
    let while_true = |is: fn(char) -> bool| text.find(|c| !is(c)).unwrap_or(all);
    Some(match first {
        ';' => (Token::Semicolon, 1),
        '-' if text.starts_with("--") => (Token::Comment, until("\n", 2)),
        '/' if text.starts_with("/*") => (Token::Comment, until("*/", 2)),
        // A doubled quote reads as the end of one string and the beginning of another, which gives the same result.
        '\'' => (Token::Other, until("'", 1)),
        '"' => (Token::Other, until("\"", 1)),
        '`' => (Token::Other, until("`", 1)),
        '[' => (Token::Other, until("]", 1)),
        c if c.is_whitespace() => (Token::Space, while_true(char::is_whitespace)),
        c if is_word(c) => (Token::Other, while_true(is_word)),
        c => (Token::Other, c.len_utf8()),
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Tracks whether a statement creates a trigger, which has semicolons inside and ends with the one after END.
#[derive(Default)]
struct Words {
    count: u32,
    creates: bool,
    is_trigger: bool,
    last_is_end: bool,
    previous_is_semicolon: bool,
}

impl Words {
    fn see(&mut self, word: &str) {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        match self.count {
            0 => self.creates = is("create"),
            1 | 2 if self.creates && is("trigger") => self.is_trigger = true,
            1 if !is("temp") && !is("temporary") => self.creates = false,
            _ => {}
        }
        self.count = self.count.saturating_add(1);
        // The END of a CASE does not count: that of a trigger comes directly after a semicolon.
        self.last_is_end = is("end") && self.previous_is_semicolon;
        self.previous_is_semicolon = false;
    }

    /// Returns true if a semicolon at this place ends the statement.
    fn ends(&mut self) -> bool {
        self.previous_is_semicolon = true;
        !self.is_trigger || self.last_is_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(sql: &str) -> Vec<&str> {
        script(sql)
            .unwrap()
            .statements
            .iter()
            .map(|s| s.text)
            .collect()
    }

    #[test]
    fn quotes_comments_and_triggers_hide_semicolons() {
        assert_eq!(
            texts("a ';' b; c \";\" -- ;\n d;e"),
            ["a ';' b;", "c \";\" -- ;\n d;", "e"]
        );
        assert_eq!(texts("x /* ; */; ;; -- end\n"), ["x /* ; */;"]);
        assert_eq!(texts("a 'it''s; so';b;"), ["a 'it''s; so';", "b;"]);
        let trigger = "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET c = CASE d WHEN 1 THEN 2 END; DELETE FROM e; END;";
        assert_eq!(
            texts(&format!("{trigger} SELECT 1;")),
            [trigger, "SELECT 1;"]
        );
        assert_eq!(
            texts("CREATE TABLE trigger_of_mine (a); x;"),
            ["CREATE TABLE trigger_of_mine (a);", "x;"]
        );
    }

    #[test]
    fn commands_to_the_shell_stand_on_lines_of_their_own() {
        let read = script("#x\n.mode csv\na;\n.import f t\nb\n.c;\n.bail on\nd; e;\nf;\n.quit\ng;")
            .unwrap();
        let found = read.statements.iter();
        let found: Vec<_> = found.map(|s| (s.text, s.line, s.bail)).collect();
        let expected = [
            ("a;", 3, false),
            ("b\n.c;", 5, false),
            ("d;", 8, true),
            ("e;", 8, true),
            ("f;", 9, true),
        ];
        assert_eq!(found, expected);
        assert_eq!(read.left_out.first, Some((".import", 4)));
        assert_eq!(read.left_out.number, 1);
        let lines: Vec<u64> = read.statements.iter().map(|s| s.lines).collect();
        assert!(lines[2] == lines[3] && lines[3] < lines[4], "{lines:?}");
    }

    #[test]
    fn times_are_those_before() {
        let of = |sql| {
            script(sql).map(|all| {
                all.statements
                    .iter()
                    .map(|s| (s.at.as_millis(), s.line))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(
            of("a;\n--@ 1.25\nb;\nc;\n--@2\nd"),
            Ok(vec![(0, 1), (1250, 3), (1250, 4), (2000, 6)])
        );
        assert_eq!(
            of("a;\n--@ soon\nb;"),
            Err((2, "`--@ soon` is not a time".into()))
        );
        assert_eq!(of("--@ -1\nb;"), Err((1, "`--@ -1` is not a time".into())));
    }

    #[test]
    fn commits_are_of_transactions_and_of_lone_changes() {
        let of = |sql| commits(&script(sql).unwrap().statements);
        assert_eq!(
            of(
                "BEGIN; INSERT INTO a VALUES(1); INSERT INTO a VALUES(2); COMMIT; DELETE FROM a; SELECT 1;"
            ),
            2
        );
        assert_eq!(
            of(
                "BEGIN; UPDATE a SET b=1; ROLLBACK; PRAGMA x; begin; update a set b=2; rollback to s; end;"
            ),
            1
        );
    }

    proptest! {
        /// Only spaces and comments lie between statements, and SQLite agrees on where each one ends.
        #[test]
        fn statements_are_where_sqlite_sees_them(sql in "(SELECT [a-z' \";\n-]{0,12};| |--x\n|/\\*;\\*/|'[;a']{0,4}'|CREATE TRIGGER t [a-z]{0,4};|END;){0,8}") {
            let found = script(&sql).unwrap().statements;
            for statement in &found[..found.len().saturating_sub(1)] {
                let text = std::ffi::CString::new(statement.text).unwrap();
                // SAFETY: the string ends with NUL.
                #[allow(unsafe_code)]
                let complete = unsafe { rusqlite::ffi::sqlite3_complete(text.as_ptr()) };
                prop_assert_eq!(complete, 1, "{:?} of {:?}", statement.text, sql);
            }
        }
    }
}
