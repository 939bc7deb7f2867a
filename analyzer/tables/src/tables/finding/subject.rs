// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sentence's subject, the bytes written and for whom: for the committed transactions if they caused nearly all of it,
//! else for the processes that caused most.

use mostrace_bundle::manifest::Payload;

use super::base::Base;
use super::culprits::Culprits;
use super::{asked, is_part, size};
use crate::tables::{Groups, Label, ratio};
use mostrace_trace::transactions::{Asked, Count, Source, Transactions};

/// Transactions are the subject if they caused at least this share of the bytes, per cent.
const NEARLY_ALL: u64 = 95;
/// A workload's set-up does not belong to its operations: bytes are not divided by their number if the set-up wrote more
/// than this, per cent.
const SETTING_UP: u64 = 5;
/// SQLite's transactions count as much from this share of the bytes on, per cent.
const MUCH: u64 = 10;
/// Roles of the files of an SQLite database.
pub(super) const SQLITES: [&str; 5] = ["db", "rollback_journal", "wal", "shm", "super_journal"];

/// The beginning of the sentence.
pub(super) struct Subject<'a> {
    transactions: &'a Transactions,
    /// The word for what is counted, and whether all bytes may be divided by the count.
    unit: &'static str,
    is_divided: bool,
    /// True if the transactions caused nearly all bytes.
    is_theirs: bool,
    /// The words for what was passed to write(), if that is reported.
    asked: String,
    culprits: &'a Culprits<'a>,
}

impl<'a> Subject<'a> {
    pub fn new(
        transactions: &'a Transactions,
        payload: Option<&Payload>,
        asked: Option<Asked>,
        layers: &Groups,
        culprits: &'a Culprits<'a>,
    ) -> Subject<'a> {
        let written = layers.total.write_bytes;
        let theirs = match transactions.source {
            Source::Calls => of_sqlites_files(layers, culprits.base()),
            Source::Application => culprits.most(|t| t.write_bytes),
        };
        let of_application = payload.filter(|_| transactions.source == Source::Application);
        Subject {
            transactions,
            unit: of_application.map_or("transaction", unit),
            is_divided: of_application.is_none_or(|payload| !sets_up_much(payload)),
            is_theirs: is_part(theirs, written, NEARLY_ALL),
            asked: asked::words(asked, layers),
            culprits,
        }
    }

    /// Returns the words; `written` must not be 0.
    pub fn words(&self, written: u64) -> String {
        let Transactions {
            count,
            payload_bytes,
            ..
        } = *self.transactions;
        let all = format!("{} were written{}", size(written as f64), self.asked);
        let by = || self.culprits.words(written, |t| t.write_bytes);
        let Some(divisor) = count.divisor() else {
            return all + &by();
        };
        let committed = self.committed(count);
        match payload_bytes.filter(|_| self.is_divided) {
            _ if !self.is_theirs => format!("{all}{}, while {committed}", by()),
            None => {
                let (by, each) = (self.by_several(written), self.each(written, count));
                format!("{all}{by} while {committed}{each}")
            }
            Some(stored) => {
                let times = ratio(written, stored).unwrap_or_default();
                let each = if is_one(count) { "" } else { " each" };
                format!(
                    "{count} {} of {} wrote {}{each} ({times:.0} ×)",
                    many(count, self.unit),
                    size(stored as f64 / divisor as f64),
                    size(written as f64 / divisor as f64),
                )
            }
        }
    }

    /// Returns the words for the processes, unless one process caused nearly all.
    fn by_several(&self, written: u64) -> String {
        let is_one = is_part(self.culprits.most(|t| t.write_bytes), written, NEARLY_ALL);
        let by = self.culprits.words(written, |t| t.write_bytes);
        match is_one || by.is_empty() {
            true => String::new(),
            false => format!("{by},"),
        }
    }

    /// Returns what each of SQLite's transactions wrote; nothing for an application's own transactions.
    fn each(&self, written: u64, count: Count) -> String {
        let is_told = self.transactions.source == Source::Calls && count.least > 1;
        let divisor = count.divisor().filter(|_| is_told);
        let each = divisor.map(|divisor| size(written as f64 / divisor as f64));
        each.map_or(String::new(), |each| {
            format!(" ({}{each} each)", count.at_most())
        })
    }

    /// Returns `12 transactions were committed`.
    fn committed(&self, count: Count) -> String {
        let were = match is_one(count) {
            true => "was",
            false => "were",
        };
        match (self.transactions.source, self.unit) {
            (Source::Calls, _) => format!("{count} of SQLite's transactions {were} committed"),
            (Source::Application, "transaction") => {
                format!("{count} {} {were} committed", many(count, self.unit))
            }
            (Source::Application, unit) => format!("{count} {} {were} done", many(count, unit)),
        }
    }
}

fn is_one(count: Count) -> bool {
    count.is_exact() && count.least == 1
}

/// Returns the singular or plural of a word.
fn many(count: Count, one: &str) -> String {
    match is_one(count) {
        true => one.to_owned(),
        false => format!("{one}s"),
    }
}

/// Returns true if the trace is largely of transactions: an application's own, or SQLite's if they caused enough to be
/// named.
pub(super) fn are_transactions_much(
    transactions: &Transactions,
    layers: &Groups,
    base: Base,
) -> bool {
    let is_much = || {
        let theirs = of_sqlites_files(layers, base);
        is_part(theirs, layers.total.write_bytes, MUCH)
    };
    let is_its_own = transactions.source == Source::Application;
    transactions.count.divisor().is_some() && (is_its_own || is_much())
}

/// Returns the bytes written for the files of SQLite databases, including those that the filesystem wrote for them.
fn of_sqlites_files(layers: &Groups, base: Base) -> u64 {
    let theirs = layers.groups.iter().filter(|(labels, _)| {
        let role = labels.get(crate::tables::layer::COLUMNS.len());
        let role = role.and_then(Label::text);
        base.has(labels.last()) && role.is_some_and(|role| SQLITES.contains(&role.as_str()))
    });
    theirs.map(|(_, totals)| totals.write_bytes).sum()
}

/// Returns the word for what a workload counts.
fn unit(payload: &Payload) -> &'static str {
    match payload.counts_operations() {
        true => "operation",
        false => "transaction",
    }
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
    use crate::tables::Totals;

    fn sums(groups: &[(&[&str], u64)]) -> Groups {
        let label = |word: &&str| match *word {
            "" => Label::Empty,
            word => Label::Text(word.to_owned()),
        };
        let totals = |bytes| Totals {
            write_bytes: bytes,
            requests: 1,
            ..Totals::default()
        };
        let row =
            |(labels, bytes): &(&[&str], u64)| (labels.iter().map(label).collect(), totals(*bytes));
        let mut sums = Groups::default();
        sums.groups = groups.iter().map(row).collect();
        sums.total = totals(groups.iter().map(|(_, bytes)| bytes).sum());
        sums
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

    const LAYER: [&str; 4] = ["data", "regular", "", ""];

    fn words(
        transactions: &Transactions,
        payload: Option<&Payload>,
        by: &[(&str, &str, &str, u64)],
    ) -> String {
        let layers: Vec<([&str; 7], u64)> = by
            .iter()
            .map(|(_, _, role, bytes)| {
                let [a, b, c, d] = LAYER;
                ([a, b, c, d, role, "write", "exact"], *bytes)
            })
            .collect();
        let layers: Vec<(&[&str], u64)> = layers.iter().map(|(l, b)| (&l[..], *b)).collect();
        let processes: Vec<([&str; 3], u64)> = by
            .iter()
            .map(|(process, .., bytes)| ([*process, "write", "exact"], *bytes))
            .collect();
        let processes: Vec<(&[&str], u64)> = processes.iter().map(|(l, b)| (&l[..], *b)).collect();
        let files = by.iter().map(|(p, f, _, b)| ([*p, *f, "", "exact"], *b));
        let files: Vec<([&str; 4], u64)> = files.collect();
        let files: Vec<(&[&str], u64)> = files.iter().map(|(l, b)| (&l[..], *b)).collect();
        let (layers, processes, files) = (sums(&layers), sums(&processes), sums(&files));
        let culprits = Culprits {
            processes: &processes,
            files: &files,
            tells_operations: false,
        };
        let subject = Subject::new(transactions, payload, None, &layers, &culprits);
        subject.words(layers.total.write_bytes)
    }

    #[test]
    fn bytes_are_the_transactions_where_they_caused_nearly_all() {
        let app = ("app:7", "/x.db", "db", 9_500);
        let told = transactions(10, Some(1_000));
        assert_eq!(
            words(&told, None, &[app, ("", "", "", 500)]),
            "10 transactions of 100 bytes wrote 1.0 KB each (10 ×)"
        );
        assert_eq!(
            words(&told, None, &[app, ("dd:9", "/film", "other", 501)]),
            "10.0 KB were written, 95 % by app:7 for /x.db, while 10 transactions were committed"
        );
        let shown = transactions(10, None);
        assert_eq!(
            words(&shown, None, &[app]),
            "9.5 KB were written while 10 of SQLite's transactions were committed (950 bytes each)"
        );
        assert_eq!(
            words(&shown, None, &[app, ("dd:9", "/film", "other", 90_500)]),
            "100.0 KB were written, 91 % by dd:9 for /film, while 10 of SQLite's transactions were committed"
        );
    }

    #[test]
    fn without_transactions_who_wrote_most_is_named() {
        let none = transactions(0, None);
        let git = ("git:7", "/a", "other", 300);
        assert_eq!(
            words(
                &none,
                None,
                &[
                    git,
                    ("cp:8", "/b", "other", 600),
                    ("ls:9", "/c", "other", 50),
                    ("", "", "", 50)
                ]
            ),
            "1.0 KB were written, 60 % by cp:8 for /b and 30 % by git:7 for /a"
        );
        assert_eq!(
            words(&none, None, &[("", "", "", 10)]),
            "10 bytes were written"
        );
    }

    #[test]
    fn several_that_committed_are_named() {
        let two = [("a:7", "/x.db", "db", 600), ("b:8", "/y.db", "wal", 400)];
        assert_eq!(
            words(&transactions(10, None), None, &two),
            "1.0 KB were written, 60 % by a:7 for /x.db and 40 % by b:8 for /y.db, while 10 of SQLite's transactions were \
             committed (100 bytes each)"
        );
        let one = [("a:7", "/x.db", "db", 950), ("b:8", "/y.db", "wal", 50)];
        assert_eq!(
            words(&transactions(10, None), None, &one),
            "1.0 KB were written while 10 of SQLite's transactions were committed (100 bytes each)"
        );
    }

    #[test]
    fn there_may_be_more_transactions_than_are_known() {
        let app = ("app:7", "/x.db", "db", 9_500);
        let some = Transactions {
            count: Count::new(10, false),
            ..Transactions::default()
        };
        assert_eq!(
            words(&some, None, &[app]),
            "9.5 KB were written while at least 10 of SQLite's transactions were committed (at most 950 bytes each)"
        );
    }

    #[test]
    fn one_is_one() {
        let app = ("app:7", "/x.db", "db", 100);
        assert_eq!(
            words(&transactions(1, None), None, &[app]),
            "100 bytes were written while 1 of SQLite's transactions was committed"
        );
        assert_eq!(
            words(&transactions(1, Some(10)), None, &[app]),
            "1 transaction of 10 bytes wrote 100 bytes (10 ×)"
        );
    }

    #[test]
    fn a_set_up_is_none_of_the_operations() {
        let mut payload = Payload {
            workload: "file".into(),
            file_bytes: 2_000,
            ..Payload::default()
        };
        let set = |payload: &mut Payload, bytes: &str| {
            let name = "transactions_file_bytes".to_owned();
            payload.settings.insert(name, bytes.to_owned());
        };
        let told = transactions(10, Some(1_000));
        let all = [("app:7", "/f", "other", 2_000)];
        set(&mut payload, "1000");
        assert_eq!(
            words(&told, Some(&payload), &all),
            "2.0 KB were written while 10 operations were done"
        );
        set(&mut payload, "1950");
        assert_eq!(
            words(&told, Some(&payload), &all),
            "10 operations of 100 bytes wrote 200 bytes each (2 ×)"
        );
    }
}
