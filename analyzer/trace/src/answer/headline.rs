// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first line: what each transaction wrote if transactions caused nearly all of it, else which programs wrote how much. It
//! also says how many times that is what was stored, and what was passed to write().

use std::borrow::Cow;
use std::collections::BTreeMap;

use mostrace_bundle::manifest::Payload;

use super::layers::SQLITES;
use super::words::{cut, is_part, percent, size, times};
use crate::attribute::{HashSet, SUBMITTER, program};
use crate::sums::{Groups, Label, Totals, ratio};
use crate::tally::{Tally, sum};
use crate::text::grouped;
use crate::transactions::{Count, Database, Source, Transactions};

/// The most characters of the line.
const LONGEST: usize = 120;
/// The widest name of a program.
const WIDEST_NAME: usize = 28;
const WIDEST_SUBMITTER: usize = WIDEST_NAME - SUBMITTER.len();
/// The most characters of the words for programs, so that something fits behind them.
const LONGEST_BY: usize = 80;
/// Transactions are the subject if they caused at least this share of the bytes, per cent; a program is the only one from the same
/// share on.
const NEARLY_ALL: u64 = 95;
/// If a workload's set-up wrote more than this, per cent, bytes are not divided by the number of its operations.
const SETTING_UP: u64 = 5;
/// Number of programs that are named, and the least share of each, per cent.
const MOST: usize = 3;
const LEAST: u64 = 10;
/// The line mentions calls for durability from this number on, if fewer bytes than this were written for each.
const MANY_CALLS: u64 = 10;
const FEW_BYTES: u64 = 1_000_000;
/// Reads come first if this many times as much was read as written.
const MOSTLY_READ: u64 = 10;

/// What the line is made of.
pub struct Headline<'a> {
    pub transactions: Transactions,
    pub payload: Option<&'a Payload>,
    /// Bytes passed to write(), if they are known.
    pub passed: Option<u64>,
    pub databases: &'a [Database],
    /// The answer's first sums.
    pub layers: &'a Groups,
    /// The answer's second sums.
    pub who: &'a Groups,
}

/// A program, and what all its processes caused.
struct Program<'a> {
    name: Cow<'a, str>,
    processes: HashSet<&'a str>,
    bytes: u64,
}

impl Headline<'_> {
    /// Returns the line.
    pub fn words(&self) -> String {
        let total = &self.layers.total;
        let (written, read) = (total.write_bytes, total.read_bytes);
        if total.requests == 0 {
            return "No IO was seen: was this the device?".into();
        }
        match written {
            0 if read == 0 => "Nothing was written, and nothing read.".into(),
            0 => self.reads("Nothing was written, and ", "."),
            _ if read >= written.saturating_mul(MOSTLY_READ) => {
                let behind = format!(", and {} were written.", size(written as f64));
                self.reads("", &behind)
            }
            _ => self.writes(),
        }
    }

    /// Returns the flushes that were asked for and executed, for each transaction if these are the subject; None if there were none.
    pub fn flushes(&self) -> Option<String> {
        let Totals {
            flushes,
            device_flushes,
            ..
        } = self.layers.total;
        if flushes == 0 && device_flushes == 0 {
            return None;
        }
        Some(match self.each() {
            Some(count) if count.is_exact() && count.least > 1 => {
                let each = |flushes: u64| format!("{:.1}", flushes as f64 / count.least as f64);
                let (asked, done) = (each(flushes), each(device_flushes));
                let noun = if asked == "1.0" { "flush" } else { "flushes" };
                format!(
                    "{asked} {noun} per {} asked for, {done} executed.",
                    self.unit()
                )
            }
            _ => {
                let noun = if flushes == 1 { "flush" } else { "flushes" };
                let (asked, done) = (grouped(flushes), grouped(device_flushes));
                format!("{asked} {noun} asked for, {done} executed.")
            }
        })
    }

    fn writes(&self) -> String {
        let clauses = match self.each() {
            Some(count) => self.of_transactions(count),
            None => self.of_programs(),
        };
        let ratios = self.ratios();
        let mut line = clauses.first;
        // What does not fit is left out, the last first.
        let mut room = LONGEST.saturating_sub(line.chars().count());
        let mut begun = false;
        for more in ratios.into_iter().chain(clauses.rest) {
            let mark = if begun { ", " } else { clauses.mark };
            let long = mark.len().saturating_add(more.chars().count());
            // One character is the full stop's.
            if long >= room {
                break;
            }
            room = room.saturating_sub(long);
            begun = true;
            line += mark;
            line += &more;
        }
        line + "."
    }

    /// Returns how many times as much was written as stored and as was passed to write(), each with its base.
    fn ratios(&self) -> Vec<String> {
        let written = self.layers.total.write_bytes;
        // What others wrote is no multiple of what was stored.
        let stored = self.transactions.payload_bytes;
        let stored = stored.filter(|_| self.each().is_some());
        let bases = [
            (stored, "what was stored"),
            (self.passed, "what was passed to write()"),
        ];
        let ratio = |(bytes, base): (Option<u64>, &str)| {
            let ratio = ratio(written, bytes?)?;
            Some(format!("{} {base}", times(ratio)))
        };
        bases.into_iter().filter_map(ratio).collect()
    }

    /// Returns the transactions if they caused nearly all and bytes may be divided by their number.
    fn each(&self) -> Option<Count> {
        let written = self.layers.total.write_bytes;
        let theirs = match self.transactions.source {
            Source::Calls => of_sqlites_files(self.layers),
            Source::Application => self
                .programs(|t| t.write_bytes)
                .first()
                .map_or(0, |p| p.bytes),
        };
        let count = self.transactions.count;
        let is_known = count.divisor().is_some() && self.is_divided();
        (is_known && is_part(theirs, written, NEARLY_ALL)).then_some(count)
    }

    /// Returns true if a workload does not say that much was written before or after its operations. The transactions that an
    /// application counts are divided only if it says what they stored.
    fn is_divided(&self) -> bool {
        match (self.transactions.source, self.payload) {
            (Source::Calls, _) => true,
            (Source::Application, payload) => {
                let sets_up = payload.is_some_and(sets_up_much);
                self.transactions.payload_bytes.is_some() && !sets_up
            }
        }
    }

    fn unit(&self) -> &'static str {
        match (self.transactions.source, self.payload) {
            (Source::Application, Some(payload)) if payload.counts_operations() => "operation",
            _ => "transaction",
        }
    }

    fn of_transactions(&self, count: Count) -> Clauses {
        let least = count.least;
        let each = |bytes: u64| size(bytes as f64 / least as f64);
        let sqlites = match self.transactions.source {
            Source::Calls => "SQLite ",
            Source::Application => "",
        };
        let unit = self.unit();
        let subject = match least {
            1 if count.is_exact() => format!("1 {sqlites}{unit}"),
            _ => format!("Each of {count} {sqlites}{unit}s"),
        };
        let stored = self.transactions.payload_bytes;
        let stored = stored.map_or(String::new(), |bytes| {
            format!(" stored {} and", each(bytes))
        });
        let written = each(self.layers.total.write_bytes);
        Clauses {
            first: format!("{subject}{stored} wrote {}{written}", count.at_most()),
            mark: ": ",
            rest: Vec::new(),
        }
    }

    fn of_programs(&self) -> Clauses {
        let written = self.layers.total.write_bytes;
        let programs = self.programs(|t| t.write_bytes);
        let committed = self.committed();
        match programs.first() {
            Some(one) if is_part(one.bytes, written, NEARLY_ALL) => Clauses {
                first: one.wrote(written),
                mark: ", ",
                rest: self.syncs(one).into_iter().chain(committed).collect(),
            },
            _ => {
                let were = format!("{} were written", size(written as f64));
                Clauses {
                    first: named(&were, &programs, written, "."),
                    mark: "; ",
                    rest: committed.into_iter().collect(),
                }
            }
        }
    }

    /// Returns the text for a program's written bytes per call for durability, if it made at least [`MANY_CALLS`] and wrote less than
    /// [`FEW_BYTES`] for each.
    fn syncs(&self, program: &Program<'_>) -> Option<String> {
        let its = self.databases.iter();
        let its = its.filter(|of| self::program(&of.process()) == program.name);
        let calls = sum(its.map(|of| of.total().syncs));
        let is_many = calls >= MANY_CALLS && program.bytes < calls.saturating_mul(FEW_BYTES);
        let each = || size(program.bytes as f64 / calls as f64);
        is_many.then(|| {
            format!(
                "{} for each of {} calls for durability",
                each(),
                grouped(calls)
            )
        })
    }

    /// Returns the transactions that were committed beside what else was written.
    fn committed(&self) -> Option<String> {
        let count = self.transactions.count;
        count.divisor()?;
        let of_sqlite = match self.transactions.source {
            Source::Calls => "SQLite ",
            Source::Application => "",
        };
        let unit = match (count.is_exact(), count.least) {
            (true, 1) => self.unit().to_owned(),
            _ => format!("{}s", self.unit()),
        };
        Some(format!("with {count} {of_sqlite}{unit}"))
    }

    fn reads(&self, ahead: &str, behind: &str) -> String {
        let read = self.layers.total.read_bytes;
        let programs = self.programs(|t| t.read_bytes);
        let were = format!("{ahead}{} were read", size(read as f64));
        named(&were, &programs, read, behind) + behind
    }

    /// Returns the programs that caused a figure, the largest first. Whoever submitted it stands for an unknown cause.
    fn programs(&self, of: fn(&Totals) -> u64) -> Vec<Program<'_>> {
        let mut programs: BTreeMap<Cow<'_, str>, Program<'_>> = BTreeMap::new();
        for (labels, totals) in &self.who.groups {
            let Some(Label::Text(process)) = labels.first() else {
                continue;
            };
            let name = program(process);
            let known = programs.entry(name.clone()).or_insert_with(|| Program {
                name,
                processes: HashSet::default(),
                bytes: 0,
            });
            let bytes = of(totals);
            known.bytes.tally(bytes);
            if bytes > 0 {
                known.processes.insert(process);
            }
        }
        let mut programs: Vec<Program<'_>> =
            programs.into_values().filter(|p| p.bytes > 0).collect();
        programs.sort_by_key(|program| std::cmp::Reverse(program.bytes));
        programs
    }
}

/// The line: its beginning, and what else fits.
struct Clauses {
    first: String,
    /// What stands between the beginning and the rest.
    mark: &'static str,
    rest: Vec<String>,
}

impl Program<'_> {
    /// Returns its share of all written bytes; a share that rounds to all is all.
    fn wrote(&self, written: u64) -> String {
        let (name, all) = (self.called(), size(written as f64));
        match percent(self.bytes, written) {
            100.. => format!("{name} wrote {all}"),
            percent => format!("{name} wrote {percent} % of {all}"),
        }
    }

    /// Returns its name, cut if it is long; a submitter stays marked.
    fn short(&self) -> String {
        let bare = self.name.strip_suffix(SUBMITTER);
        match bare {
            Some(bare) => cut(bare, WIDEST_SUBMITTER) + SUBMITTER,
            None => cut(&self.name, WIDEST_NAME),
        }
    }

    fn called(&self) -> String {
        let name = self.short();
        match self.processes.len() {
            1 => name,
            many => format!("{name} ({} processes)", grouped(many as u64)),
        }
    }
}

/// Returns `ahead` and the programs, as many as leave room for `behind`.
fn named(ahead: &str, programs: &[Program<'_>], whole: u64, behind: &str) -> String {
    let others = [ahead, behind].map(|words| words.chars().count());
    let room = LONGEST.saturating_sub(others.iter().sum());
    ahead.to_owned() + &by(programs, whole, room.min(LONGEST_BY))
}

/// Returns `, 70 % by python3 and 28 % by rsync`, as many as fit; how many there are if none is large; nothing if none is known.
fn by(programs: &[Program<'_>], whole: u64, room: usize) -> String {
    let fits = |words: &String| words.chars().count() <= room;
    let mut words = (1..=MOST).rev().map(|most| by_most(programs, whole, most));
    words
        .find(fits)
        .unwrap_or_else(|| by_most(programs, whole, 1))
}

fn by_most(programs: &[Program<'_>], whole: u64, most: usize) -> String {
    let large = programs.iter().filter(|p| is_part(p.bytes, whole, LEAST));
    let mut named: Vec<String> = large
        .take(most)
        .map(|p| format!("{} % by {}", percent(p.bytes, whole), p.short()))
        .collect();
    if named.is_empty() && programs.len() > 1 {
        let many = grouped(programs.len() as u64);
        return format!(" by {many} programs, none with {LEAST} %");
    }
    let unknown = whole.saturating_sub(sum(programs.iter().map(|p| p.bytes)));
    if is_part(unknown, whole, LEAST) {
        named.push(format!("{} % by nobody known", percent(unknown, whole)));
    }
    match named.split_last() {
        None => String::new(),
        Some((one, [])) => format!(", {one}"),
        Some((last, first)) => format!(", {} and {last}", first.join(", ")),
    }
}

/// Returns the bytes written for the files of SQLite databases, including those that the filesystem wrote for them.
fn of_sqlites_files(layers: &Groups) -> u64 {
    let theirs = layers.groups.iter().filter(|(labels, _)| {
        let role = labels.get(crate::sums::layer::COLUMNS.len());
        let role = role.and_then(Label::text);
        role.is_some_and(|role| SQLITES.contains(&role.as_str()))
    });
    sum(theirs.map(|(_, totals)| totals.write_bytes))
}

/// Returns true if a workload reports that much was written before or after its operations.
fn sets_up_much(payload: &Payload) -> bool {
    let phase = |name: &str| payload.settings.get(name)?.parse::<u64>().ok();
    let own = phase("transactions_file_bytes");
    own.is_some_and(|own| !is_part(own, payload.file_bytes, 100 - SETTING_UP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(rows: &[([&str; 6], u64, u64)]) -> Groups {
        let label = |word: &str| match word {
            "" => Label::Empty,
            word => Label::Text(word.to_owned()),
        };
        let totals = |write_bytes, read_bytes| Totals {
            requests: 1,
            write_bytes,
            read_bytes,
            ..Totals::default()
        };
        let mut sums = Groups::default();
        let each = rows.iter();
        sums.groups = each
            .map(|(labels, written, read)| (labels.map(label).to_vec(), totals(*written, *read)))
            .collect();
        let all = |of: fn(&([&str; 6], u64, u64)) -> u64| rows.iter().map(of).sum();
        sums.total = totals(all(|row| row.1), all(|row| row.2));
        sums
    }

    /// Returns the line for rows of process, role of its file, bytes written and read.
    fn said(told: Transactions, passed: Option<u64>, rows: &[(&str, &str, u64, u64)]) -> String {
        said_with(told, None, passed, rows)
    }

    /// Returns the same if a workload told this.
    fn said_with(
        told: Transactions,
        payload: Option<&Payload>,
        passed: Option<u64>,
        rows: &[(&str, &str, u64, u64)],
    ) -> String {
        let layers: Vec<_> = rows
            .iter()
            .map(|(_, role, w, r)| (["data", "regular", "", "", *role, "write"], *w, *r))
            .collect();
        let who: Vec<_> = rows
            .iter()
            .map(|(process, _, w, r)| ([*process, "/f", "data", "regular", "", ""], *w, *r))
            .collect();
        let (layers, who) = (sums(&layers), sums(&who));
        let headline = Headline {
            transactions: told,
            payload,
            passed,
            databases: &[],
            layers: &layers,
            who: &who,
        };
        headline.words()
    }

    fn transactions(least: u64, payload_bytes: Option<u64>) -> Transactions {
        Transactions {
            count: Count::new(least, true),
            source: match payload_bytes {
                Some(_) => Source::Application,
                None => Source::Calls,
            },
            payload_bytes,
        }
    }

    const NONE: Transactions = Transactions {
        count: Count {
            least: 0,
            sure: crate::transactions::Sure::Exact,
        },
        source: Source::Calls,
        payload_bytes: None,
    };

    #[test]
    fn bytes_are_the_transactions_where_they_caused_nearly_all() {
        let app = ("app:7", "db", 9_500, 0);
        let told = transactions(10, Some(1_000));
        assert_eq!(
            said(told, Some(5_000), &[app, ("", "", 500, 0)]),
            "Each of 10 transactions stored 100 B and wrote 1.0 kB: 10.0 × what was stored, 2.0 × what was passed to write()."
        );
        assert_eq!(
            said(told, None, &[app, ("dd:9", "other", 501, 0)]),
            "10.0 kB were written, 95 % by app; with 10 transactions."
        );
        let shown = transactions(10, None);
        assert_eq!(
            said(shown, None, &[app]),
            "Each of 10 SQLite transactions wrote 950 B."
        );
        let some = Transactions {
            count: Count::new(10, false),
            ..shown
        };
        assert_eq!(
            said(some, None, &[app]),
            "Each of at least 10 SQLite transactions wrote at most 950 B."
        );
        assert_eq!(
            said(transactions(1, Some(10)), None, &[("app:7", "db", 100, 0)]),
            "1 transaction stored 10 B and wrote 100 B: 10.0 × what was stored."
        );
    }

    /// What was written to set a workload up is not its transactions'.
    #[test]
    fn bytes_are_not_divided_if_others_than_the_transactions_may_have_written_them() {
        let set_up = |own: Option<&str>| Payload {
            workload: "sqlite".into(),
            file_bytes: 1_000,
            settings: own
                .map(|own| ("transactions_file_bytes".to_owned(), own.to_owned()))
                .into_iter()
                .collect(),
            ..Payload::default()
        };
        let of = |told, payload: Option<&Payload>| {
            said_with(told, payload, None, &[("app:7", "db", 1_000, 0)])
        };
        let told = transactions(10, Some(100));
        let divided =
            "Each of 10 transactions stored 10 B and wrote 100 B: 10.0 × what was stored.";
        let undivided = "app wrote 1.0 kB, with 10 transactions.";
        assert_eq!(of(told, None), divided);
        assert_eq!(of(told, Some(&set_up(None))), divided);
        assert_eq!(of(told, Some(&set_up(Some("many")))), divided);
        assert_eq!(of(told, Some(&set_up(Some("950")))), divided);
        assert_eq!(of(told, Some(&set_up(Some("949")))), undivided);
        // An application that does not say what it stored.
        let silent = Transactions {
            payload_bytes: None,
            ..told
        };
        assert_eq!(of(silent, None), undivided);
        assert_eq!(of(silent, Some(&set_up(Some("950")))), undivided);
        // Calls are seen one by one.
        let seen = transactions(10, None);
        let of_calls = "Each of 10 SQLite transactions wrote 100 B.";
        assert_eq!(of(seen, Some(&set_up(Some("949")))), of_calls);
    }

    #[test]
    fn without_transactions_programs_are_named() {
        assert_eq!(
            said(
                NONE,
                Some(100),
                &[("git:7", "", 200, 0), ("git:8", "", 100, 0)]
            ),
            "git (2 processes) wrote 300 B, 3.0 × what was passed to write()."
        );
        let rows = [
            ("git:7", "", 300, 0),
            ("cp:8", "", 600, 0),
            ("", "", 100, 0),
        ];
        assert_eq!(
            said(NONE, None, &rows),
            "1.0 kB were written, 60 % by cp, 30 % by git and 10 % by nobody known."
        );
        assert_eq!(
            said(NONE, None, &[("", "", 10, 0)]),
            "10 B were written, 100 % by nobody known."
        );
        let names: Vec<String> = (1..=20).map(|n| format!("p{n}:{n}")).collect();
        let many: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), "", 50, 0))
            .collect();
        assert_eq!(
            said(NONE, None, &many),
            "1.0 kB were written by 20 programs, none with 10 %."
        );
    }

    #[test]
    fn submitters_are_programs_and_stay_marked() {
        let [dd, again] = ["dd:1 (submitter)", "dd:2 (submitter)"];
        let long = format!("{}:3 (submitter)", "x".repeat(20));
        let rows = [(dd, "", 300, 0), (again, "", 300, 0), (&long, "", 400, 0)];
        assert_eq!(
            said(NONE, None, &rows),
            "1.0 kB were written, 60 % by dd (submitter) and 40 % by xxxxxxxxxxxxxxxx… (submitter)."
        );
    }

    #[test]
    fn reads_come_first_where_they_are_many() {
        let of = |written, read| said(NONE, None, &[("app:7", "", written, read)]);
        assert_eq!(of(1_000, 9_999), "app wrote 1.0 kB.");
        assert_eq!(
            of(1_000, 10_000),
            "10.0 kB were read, 100 % by app, and 1.0 kB were written."
        );
        assert_eq!(
            of(0, 500),
            "Nothing was written, and 500 B were read, 100 % by app."
        );
        assert_eq!(of(0, 0), "Nothing was written, and nothing read.");
    }

    #[test]
    fn the_line_is_never_too_long() {
        let name = format!("{}:7", r"\x1b".repeat(15));
        let other = format!("{}:8", "名".repeat(15));
        let rows = [(name.as_str(), "", 500, 0), (other.as_str(), "", 480, 0)];
        for passed in [None, Some(1)] {
            let line = said(transactions(u64::MAX, None), passed, &rows);
            assert!(line.chars().count() <= LONGEST, "{line}");
            assert!(line.contains("51 % by"), "{line}");
        }
        let [one, other] =
            ["DataXceiver for:1", "Readahead Threa:2"].map(|name| name.to_owned() + " (submitter)");
        for (written, read) in [(0, 999_900), (99_990, 999_900), (1 << 60, u64::MAX)] {
            let rows = [
                (one.as_str(), "", written, read / 100 * 54),
                (other.as_str(), "", 0, read / 100 * 46),
            ];
            let line = said(NONE, None, &rows);
            assert!(line.chars().count() <= LONGEST, "{line}");
            assert!(line.contains("54 % by"), "{line}");
        }
    }
}
