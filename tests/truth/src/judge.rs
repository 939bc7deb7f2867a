// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges the causes of rows of contents by all changes that the writers logged.
//!
//! The causes of a row are the processes that changed its bytes since these were last queued. A change that was under way
//! when the row was queued may or may not be in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::changes::Change;
use crate::names::Inode;
use crate::stamp::SECTOR;

/// The certainties that are judged; the others claim nothing that the changes could refute.
const ASKED: [&str; 3] = ["exact", "shared", "first"];

/// A row of a file's contents, and mostrace's answer for it.
#[derive(Clone, Debug)]
pub struct Said {
    pub queued_ns: u64,
    pub issued_ns: u64,
    pub inode: Inode,
    pub offset: u64,
    pub bytes: u64,
    /// `cause_known`
    pub known: String,
    /// `cause_tgid`
    pub named: Option<u32>,
    /// The `cause_tgid` of all of its causers.
    pub causers: BTreeSet<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong(&'static str),
    NotAsked(&'static str),
}

/// The counts of a comparison.
#[derive(Debug, Default)]
pub struct Judged {
    pub rows: u64,
    /// Rows by certainty: right, wrong, and not asked.
    pub verdicts: BTreeMap<String, [u64; 3]>,
    pub not_asked: BTreeMap<&'static str, u64>,
    /// The first wrong row of each certainty and reason.
    pub examples: BTreeMap<(String, &'static str), String>,
}

impl Judged {
    pub fn of(&self, known: &str) -> [u64; 3] {
        self.verdicts.get(known).copied().unwrap_or_default()
    }

    /// Returns the number of rows that are called exact or shared and are not.
    pub fn faults(&self) -> u64 {
        self.of("exact")[1] + self.of("shared")[1]
    }

    /// Counts rows that are not judged at all.
    pub fn skip(&mut self, reason: &'static str, rows: u64) {
        *self.not_asked.entry(reason).or_default() += rows;
    }

    pub fn add(&mut self, other: Judged) {
        self.rows += other.rows;
        for (known, counts) in other.verdicts {
            let sum = self.verdicts.entry(known).or_default();
            sum.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
        for (reason, count) in other.not_asked {
            self.skip(reason, count);
        }
    }
}

/// The changes of a row's bytes.
struct Changes<'a> {
    /// Those that are in the row.
    certain: Vec<&'a Change>,
    /// Those that are in the row or may be.
    possible: Vec<&'a Change>,
    /// True if one of the row's causers never changed the file.
    has_stranger: bool,
}

/// Judges rows, which must come in the order in which they were queued.
pub fn judge(rows: &[Said], changes: &[Change]) -> Judged {
    let mut by_inode: HashMap<Inode, Vec<&Change>> = HashMap::new();
    for change in changes {
        by_inode.entry(change.inode).or_default().push(change);
    }
    let mut queued_ns = HashMap::new();
    let mut judged = Judged::default();
    for row in rows {
        let Some(changes) = by_inode.get(&row.inode) else {
            judged.skip("it is of a file that no writer changed", 1);
            continue;
        };
        let found = find(row, changes, &queued_ns);
        for sector in sectors(row.offset..row.offset + row.bytes) {
            queued_ns.insert((row.inode, sector), row.queued_ns);
        }
        judged.rows += 1;
        let verdict = match ASKED.contains(&row.known.as_str()) {
            true => found.judge(row),
            false => Verdict::NotAsked("not claimed"),
        };
        judged.count(row, &found, verdict);
    }
    judged
}

impl Judged {
    fn count(&mut self, row: &Said, found: &Changes, verdict: Verdict) {
        let of = self.verdicts.entry(row.known.clone()).or_default();
        match verdict {
            Verdict::Right => of[0] += 1,
            Verdict::Wrong(reason) => {
                of[1] += 1;
                let key = (row.known.clone(), reason);
                self.examples.entry(key).or_insert_with(|| {
                    format!("{row:?}; {:?}; may be: {:?}", found.certain, found.possible)
                });
            }
            Verdict::NotAsked(reason) => {
                of[2] += 1;
                self.skip(reason, 1);
            }
        }
    }
}

/// Finds the changes of a row's bytes since each of its sectors was last queued.
fn find<'a>(
    row: &Said,
    changes: &[&'a Change],
    queued_ns: &HashMap<(Inode, u64), u64>,
) -> Changes<'a> {
    let last_ns = |sector| queued_ns.get(&(row.inode, sector)).copied().unwrap_or(0);
    let end = row.offset + row.bytes;
    // Some sector of both the row and the change was queued last before this time.
    let since = |change: &Change, time_ns: u64| {
        let both = change.range.start.max(row.offset)..change.range.end.min(end);
        !both.is_empty() && sectors(both).any(|sector| last_ns(sector) < time_ns)
    };
    // A page that is being written is not locked, so that a change may reach it until the request is issued.
    let possible = |c: &&&Change| c.time_ns.start < row.issued_ns && since(c, c.time_ns.end);
    let possible: Vec<&Change> = changes.iter().filter(possible).copied().collect();
    let certain = |c: &&&Change| c.time_ns.end < row.queued_ns && since(c, c.time_ns.start);
    let certain = possible.iter().filter(certain).copied().collect();
    let writers: BTreeSet<u32> = changes.iter().map(|change| change.tgid).collect();
    Changes {
        certain,
        possible,
        has_stranger: !row.causers.is_subset(&writers),
    }
}

fn sectors(range: std::ops::Range<u64>) -> std::ops::Range<u64> {
    range.start / SECTOR as u64..range.end.div_ceil(SECTOR as u64)
}

fn processes(changes: &[&Change]) -> BTreeSet<u32> {
    changes.iter().map(|change| change.tgid).collect()
}

impl Changes<'_> {
    fn judge(&self, row: &Said) -> Verdict {
        if self.has_stranger {
            return Verdict::Wrong("a causer never changed the file");
        }
        if self.possible.is_empty() {
            return Verdict::NotAsked("nobody changed these bytes since they were last written");
        }
        match row.known.as_str() {
            "first" => self.first(row.named),
            "exact" if row.causers.len() != 1 => Verdict::Wrong("several causers"),
            _ => self.all(&row.causers),
        }
    }

    /// Judges that the row's causers are exactly those who changed its bytes.
    fn all(&self, causers: &BTreeSet<u32>) -> Verdict {
        let (certain, possible) = (processes(&self.certain), processes(&self.possible));
        if !certain.is_subset(causers) {
            return Verdict::Wrong("another process changed it too");
        }
        if !causers.is_subset(&possible) {
            return Verdict::Wrong("a causer did not change it");
        }
        match certain == possible {
            true => Verdict::Right,
            false => Verdict::NotAsked("a change was under way as it was queued"),
        }
    }

    /// Judges that the process was the first to change the row's bytes.
    fn first(&self, named: Option<u32>) -> Verdict {
        let Some(over_ns) = self.certain.iter().map(|c| c.time_ns.end).min() else {
            return Verdict::NotAsked("a change was under way as it was queued");
        };
        let early = |c: &&&Change| c.time_ns.start <= over_ns;
        let candidates: Vec<&Change> = self.possible.iter().filter(early).copied().collect();
        let candidates = processes(&candidates);
        match named {
            Some(named) if !candidates.contains(&named) => {
                Verdict::Wrong("another process changed it first")
            }
            Some(_) if candidates.len() == 1 => Verdict::Right,
            Some(_) => Verdict::NotAsked("which of two changes at once was the first"),
            None => Verdict::Wrong("nobody is named"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INODE: Inode = (12, 1);

    fn change(time_ns: std::ops::Range<u64>, tgid: u32, range: std::ops::Range<u64>) -> Change {
        Change {
            time_ns,
            tgid,
            inode: INODE,
            range,
        }
    }

    fn row(queued_ns: u64, known: &str, causers: &[u32]) -> Said {
        Said {
            queued_ns,
            issued_ns: queued_ns + 1,
            inode: INODE,
            offset: 0,
            bytes: 8192,
            known: known.to_owned(),
            named: causers.first().copied(),
            causers: causers.iter().copied().collect(),
        }
    }

    /// Returns the counts of right, wrong, and not asked for the last of the rows.
    fn says(rows: &[Said], changes: &[Change]) -> [u64; 3] {
        let (last, before) = rows.split_last().unwrap();
        let [all, but_last] = [rows, before].map(|rows| judge(rows, changes).of(&last.known));
        [0, 1, 2].map(|at| all[at] - but_last[at])
    }

    const RIGHT: [u64; 3] = [1, 0, 0];
    const WRONG: [u64; 3] = [0, 1, 0];
    const NOT_ASKED: [u64; 3] = [0, 0, 1];

    #[test]
    fn exact_is_one_process_that_made_all_changes() {
        let changes = [change(1..2, 7, 0..100), change(3..4, 8, 4000..5000)];
        assert_eq!(says(&[row(9, "exact", &[7])], &changes[..1]), RIGHT);
        assert_eq!(says(&[row(9, "exact", &[8])], &changes[..1]), WRONG);
        assert_eq!(says(&[row(9, "exact", &[7])], &changes), WRONG);
        assert_eq!(says(&[row(9, "exact", &[7, 8])], &changes), WRONG);
        assert_eq!(says(&[row(9, "set", &[7, 8])], &changes), NOT_ASKED);
    }

    #[test]
    fn shared_is_exactly_those_who_changed_it() {
        let changes = [change(1..2, 7, 0..100), change(3..4, 8, 4000..5000)];
        assert_eq!(says(&[row(9, "shared", &[7, 8])], &changes), RIGHT);
        assert_eq!(says(&[row(9, "shared", &[7])], &changes), WRONG);
        let elsewhere = [changes[0].clone(), change(3..4, 8, 9000..9001)];
        assert_eq!(says(&[row(9, "shared", &[7, 8])], &elsewhere), WRONG);
    }

    #[test]
    fn a_change_counts_only_for_the_next_row_of_its_sectors() {
        let changes = [change(1..2, 7, 0..100), change(5..6, 8, 0..100)];
        let rows = |known| [row(4, "exact", &[7]), row(9, known, &[8])];
        assert_eq!(says(&rows("exact"), &changes), RIGHT);
        assert_eq!(says(&rows("first"), &changes), RIGHT);
        // The first row has the first page only.
        let mut rows = rows("exact");
        rows[0].bytes = 4096;
        let both = [change(1..2, 7, 0..5000), changes[1].clone()];
        assert_eq!(says(&rows, &both), WRONG);
    }

    #[test]
    fn a_change_under_way_may_be_in_either_row() {
        let changes = [change(1..2, 7, 0..100), change(3..5, 8, 0..100)];
        assert_eq!(says(&[row(4, "exact", &[7])], &changes), NOT_ASKED);
        assert_eq!(says(&[row(4, "shared", &[7, 8])], &changes), NOT_ASKED);
        assert_eq!(says(&[row(4, "exact", &[8])], &changes), WRONG);
        let rows = [row(4, "exact", &[7]), row(9, "exact", &[8])];
        assert_eq!(says(&rows, &changes), NOT_ASKED);
    }

    #[test]
    fn first_is_who_changed_it_before_all_others() {
        let changes = [change(1..2, 7, 0..100), change(3..4, 8, 0..100)];
        assert_eq!(says(&[row(9, "first", &[7])], &changes), RIGHT);
        assert_eq!(says(&[row(9, "first", &[8])], &changes), WRONG);
        let at_once = [change(1..4, 7, 0..100), change(2..3, 8, 0..100)];
        assert_eq!(says(&[row(9, "first", &[8])], &at_once), NOT_ASKED);
    }

    #[test]
    fn bytes_that_nobody_changed_have_a_writer_of_the_file() {
        let changes = [change(1..2, 7, 9000..9100)];
        assert_eq!(says(&[row(9, "exact", &[7])], &changes), NOT_ASKED);
        assert_eq!(says(&[row(9, "exact", &[8])], &changes), WRONG);
    }
}
