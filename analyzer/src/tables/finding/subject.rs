// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much was written, and for whom: for the transactions that were committed if nearly all of it is theirs, else by whom most
//! was caused.

use mostrace_bundle::manifest::Payload;

use super::{is_part, listed, percent, size};
use crate::tables::{Groups, Label, Totals, ratio};
use crate::tally::sum;
use crate::transactions::{Source, Transactions};

/// Transactions are what a trace is of if they caused so much of its bytes, per cent.
const NEARLY_ALL: u64 = 95;
/// A workload's set-up is none of its operations': nothing is divided by these if it wrote more than so much, per cent.
const SETTING_UP: u64 = 5;
/// So many processes are named, each with so much at least, per cent.
const MOST: usize = 3;
const LEAST: u64 = 10;
/// The file is named for which a process did so much of what it did, per cent.
const MOST_OF_IT: u64 = 50;
/// Roles of the files of an SQLite database.
const SQLITES: [&str; 5] = ["db", "rollback_journal", "wal", "shm", "super_journal"];

/// What a sum is taken of.
type Bytes = fn(&Totals) -> u64;

/// Who caused what.
pub(super) struct Culprits<'a> {
    /// By process.
    pub processes: &'a Groups,
    /// By process and file, the largest alone.
    pub files: &'a Groups,
}

/// What the sentence begins with.
pub(super) struct Subject<'a> {
    transactions: &'a Transactions,
    /// What is counted, and whether all that they wrote may be divided by their number.
    unit: &'static str,
    is_divided: bool,
    /// Whether nearly all is theirs.
    is_theirs: bool,
    culprits: &'a Culprits<'a>,
}

impl<'a> Subject<'a> {
    pub fn new(
        transactions: &'a Transactions,
        payload: Option<&Payload>,
        layers: &Groups,
        culprits: &'a Culprits<'a>,
    ) -> Subject<'a> {
        let written = layers.total.write_bytes;
        let theirs = match transactions.source {
            Source::Calls => of_sqlites_files(layers),
            Source::Application => culprits.most(|t| t.write_bytes),
        };
        let of_application = payload.filter(|_| transactions.source == Source::Application);
        Subject {
            transactions,
            unit: of_application.map_or("transactions", unit),
            is_divided: of_application.is_none_or(|payload| !sets_up_much(payload)),
            is_theirs: is_part(theirs, written, NEARLY_ALL),
            culprits,
        }
    }

    /// `written` is not 0.
    pub fn words(&self, written: u64) -> String {
        let Transactions {
            count,
            payload_bytes,
            source,
        } = self.transactions;
        let (all, unit) = (size(written as f64), self.unit);
        let Some(divisor) = count.divisor() else {
            return self.by(all, written);
        };
        let committed = match (source, unit) {
            (Source::Calls, _) => format!("{count} of SQLite's transactions were committed"),
            (Source::Application, "transactions") => format!("{count} transactions were committed"),
            (Source::Application, _) => format!("{count} {unit} were done"),
        };
        match payload_bytes.filter(|_| self.is_divided) {
            _ if !self.is_theirs => format!("{}, while {committed}", self.by(all, written)),
            None => format!("{all} were written while {committed}"),
            Some(stored) => {
                let times = ratio(written, stored).unwrap_or_default();
                format!(
                    "{count} {unit} of {} wrote {} each ({times:.0} ×)",
                    size(stored as f64 / divisor as f64),
                    size(written as f64 / divisor as f64),
                )
            }
        }
    }

    fn by(&self, all: String, written: u64) -> String {
        let by = self.culprits.named(written, |t| t.write_bytes);
        match by.is_empty() {
            true => format!("{all} were written"),
            false => format!("{all} were written, {}", listed(&by)),
        }
    }
}

impl Culprits<'_> {
    /// What the process caused that caused most; 0 if none is known.
    fn most(&self, of: Bytes) -> u64 {
        let known = self.known().map(|(_, totals)| of(totals));
        known.max().unwrap_or(0)
    }

    fn known(&self) -> impl Iterator<Item = (String, &Totals)> {
        let groups = self.processes.groups.iter();
        groups.filter_map(|(labels, totals)| match labels.first()? {
            Label::Text(name) => Some((name.clone(), totals)),
            _ => None,
        })
    }

    /// `85 % by dd:17 for /film`, those who caused most first.
    fn named(&self, whole: u64, of: Bytes) -> Vec<String> {
        let known = self.known().map(|(name, totals)| (name, of(totals)));
        let mut known: Vec<(String, u64)> = known
            .filter(|(_, bytes)| *bytes > 0 && is_part(*bytes, whole, LEAST))
            .collect();
        known.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        known.truncate(MOST);
        let words = |(name, bytes): (String, u64)| {
            let file = self.file_of(&name, bytes, of);
            let file = file.map_or(String::new(), |path| format!(" for {path}"));
            format!("{} % by {name}{file}", percent(bytes, whole))
        };
        known.into_iter().map(words).collect()
    }

    /// The file for which a process did most of what it did.
    fn file_of(&self, process: &str, bytes: u64, of: Bytes) -> Option<String> {
        let files = self.files.groups.iter();
        let its = files.filter_map(|(labels, totals)| match &labels[..] {
            [Label::Text(name), Label::Text(path)] if name == process => Some((path, of(totals))),
            _ => None,
        });
        let (path, most) = its.max_by_key(|(_, bytes)| *bytes)?;
        is_part(most, bytes, MOST_OF_IT).then(|| path.clone())
    }

    /// Of a trace in which nothing was written.
    pub fn of_reads(&self, total: Totals) -> String {
        if total.read_bytes == 0 {
            return format!("Nothing was written, and nothing read{}", discards(total));
        }
        let by = self.named(total.read_bytes, |t| t.read_bytes);
        let read = size(total.read_bytes as f64);
        let by = match by.is_empty() {
            true => String::new(),
            false => format!(", {}", listed(&by)),
        };
        format!(
            "Nothing was written, and {read} were read{by}{}",
            discards(total)
        )
    }
}

/// What was done beside writing: reads if they are more than what was written, and discards.
pub(super) fn beside(total: Totals) -> String {
    let is_read = total.read_bytes > total.write_bytes;
    let read = is_read.then(|| format!("; {} were read", size(total.read_bytes as f64)));
    read.unwrap_or_default() + &discards(total)
}

fn discards(total: Totals) -> String {
    match total.discard_bytes {
        0 => String::new(),
        bytes => format!("; {} were discarded", size(bytes as f64)),
    }
}

/// What was written for the files of SQLite's databases, be it by the filesystem.
fn of_sqlites_files(layers: &Groups) -> u64 {
    let theirs = layers.groups.iter().filter(|(labels, _)| {
        let role = labels.get(crate::tables::layer::COLUMNS.len());
        role.and_then(Label::text)
            .is_some_and(|role| SQLITES.contains(&role.as_str()))
    });
    sum(theirs.map(|(_, totals)| totals.write_bytes))
}

/// What a workload's count is of.
fn unit(payload: &Payload) -> &'static str {
    match payload.counts_operations() {
        true => "operations",
        false => "transactions",
    }
}

/// Whether a workload tells that much was written before its operations, or after.
fn sets_up_much(payload: &Payload) -> bool {
    let phase = |name: &str| payload.settings.get(name)?.parse::<u64>().ok();
    let own = phase("transactions_file_bytes");
    own.is_some_and(|own| !is_part(own, payload.file_bytes, 100 - SETTING_UP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transactions::Count;

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
        let layers: Vec<([&str; 6], u64)> = by
            .iter()
            .map(|(_, _, role, bytes)| {
                let [a, b, c, d] = LAYER;
                ([a, b, c, d, role, "write"], *bytes)
            })
            .collect();
        let layers: Vec<(&[&str], u64)> = layers.iter().map(|(l, b)| (&l[..], *b)).collect();
        let processes: Vec<([&str; 1], u64)> = by.iter().map(|(p, .., b)| ([*p], *b)).collect();
        let processes: Vec<(&[&str], u64)> = processes.iter().map(|(l, b)| (&l[..], *b)).collect();
        let files: Vec<([&str; 2], u64)> = by.iter().map(|(p, f, _, b)| ([*p, *f], *b)).collect();
        let files: Vec<(&[&str], u64)> = files.iter().map(|(l, b)| (&l[..], *b)).collect();
        let (layers, processes, files) = (sums(&layers), sums(&processes), sums(&files));
        let culprits = Culprits {
            processes: &processes,
            files: &files,
        };
        let subject = Subject::new(transactions, payload, &layers, &culprits);
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
            "9.5 KB were written while 10 of SQLite's transactions were committed"
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
