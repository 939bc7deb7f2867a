// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares what mostrace says of each sector with what was written to it between the D and the C of its request.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use serde::Deserialize;

use crate::assign::assign;
use crate::contents::Contents;
use crate::disk::{What, Written};
use crate::mark::Mark;
use crate::names::{Inode, Names};
use crate::stamp::{How, Stamp};

/// The columns that are compared, for `mostrace events --columns`.
pub const COLUMNS: &str = "time_ns,sector,bytes,op,pid,path,kind,inode,file_offset,generation,d2c_ns,q2d_ns,\
                           dirty2q_ns,dirty_pid,home_kind,home_inode,home_path,origin,provenance";

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Row {
    pub time_ns: u64,
    pub sector: Option<u64>,
    pub bytes: u64,
    pub op: String,
    pub pid: Option<u32>,
    pub path: Option<String>,
    pub kind: Option<String>,
    pub inode: Option<u64>,
    pub file_offset: Option<u64>,
    pub generation: Option<u32>,
    pub d2c_ns: Option<u64>,
    pub q2d_ns: Option<u64>,
    pub dirty2q_ns: Option<u64>,
    pub dirty_pid: Option<u32>,
    pub home_kind: Option<String>,
    pub home_inode: Option<u64>,
    pub home_path: Option<String>,
    pub origin: Option<String>,
    pub provenance: Option<String>,
}

/// A question about a sector that mostrace answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    Class,
    Inode,
    Generation,
    Offset,
    Path,
    Writer,
    /// The time at which the page was dirtied.
    Dirtied,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Right,
    Unknown,
    Wrong,
}

/// The logs of the writers.
#[derive(Default)]
pub struct Logs {
    pub names: Names,
    pub contents: Contents,
    /// True if the filesystem's inodes have no numbers on the disk, so that numbers are not compared.
    pub is_unnumbered: bool,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of sectors by check and verdict, in the order of [`Verdict`].
    pub counts: BTreeMap<Check, [u64; 3]>,
    /// The first example of each check with a wrong or unknown answer.
    pub examples: BTreeMap<(Check, Verdict), String>,
    /// Number of sectors in all rows.
    pub sectors: u64,
    /// Number of those that are stamped.
    pub stamped: u64,
    /// Number of sectors of rows that were written several times while the request was in flight. The rows are assigned to
    /// these writes so that as many rows as possible are right.
    pub contested: u64,
    /// Number of sectors in rows that were not written between their D and C.
    pub unwritten: u64,
    /// The first of these rows.
    pub first_unwritten: Option<String>,
    /// Number of stamped sectors that are in no row.
    pub missing: u64,
    /// The first of these.
    pub first_missing: Option<String>,
    /// The losses that the recording reports.
    pub told: Vec<String>,
}

impl Report {
    pub fn wrong(&self) -> u64 {
        self.counts
            .values()
            .map(|c| c[Verdict::Wrong as usize])
            .sum()
    }

    /// Returns the number of sectors with a fault.
    pub fn faults(&self) -> u64 {
        // A sector that is missing because of a reported loss is not a fault.
        let is_told = !self.told.is_empty();
        let missing = if is_told { 0 } else { self.missing };
        self.wrong() + self.unwritten + missing
    }

    fn add(&mut self, check: Check, verdict: Verdict, tell: impl FnOnce() -> String) {
        self.counts.entry(check).or_default()[verdict as usize] += 1;
        if verdict != Verdict::Right {
            self.examples.entry((check, verdict)).or_insert_with(tell);
        }
    }
}

/// The rows of a sector with the bytes of the row before it, and the writes that reached it with their places in the log.
#[derive(Default)]
struct Sector<'a> {
    rows: Vec<(&'a Row, u64)>,
    writes: Vec<(usize, &'a Written)>,
}

impl Sector<'_> {
    /// Compares each row with the write that it is assigned to.
    fn compare(&self, logs: &Logs, report: &mut Report, seen: &mut [bool]) {
        let during = |(row, _): &(&Row, u64)| {
            let from_ns = row.d2c_ns.map_or(0, |d2c| row.time_ns.saturating_sub(d2c));
            let within = |w: &usize| (from_ns..=row.time_ns).contains(&self.writes[*w].1.time_ns);
            (0..self.writes.len()).filter(within).collect()
        };
        let candidates: Vec<Vec<usize>> = self.rows.iter().map(during).collect();
        let fits = |row: usize, write: usize| {
            // A single candidate is taken in any case.
            candidates[row].len() == 1 || self.fits(row, write, logs)
        };
        let writes = assign(&candidates, self.writes.len(), fits);
        for (row, write) in writes.into_iter().enumerate() {
            let Some(write) = write else {
                let (row, _) = self.rows[row];
                report.unwritten += 1;
                report
                    .first_unwritten
                    .get_or_insert_with(|| format!("{row:?}"));
                continue;
            };
            report.contested += u64::from(candidates[row].len() > 1);
            seen[self.writes[write].0] = true;
            self.judge(row, write, logs, report);
        }
    }

    /// Returns true if the row describes the write without a fault, and does not queue a direct write before it was made.
    fn fits(&self, row: usize, write: usize, logs: &Logs) -> bool {
        let mut report = Report::default();
        self.judge(row, write, logs, &mut report);
        let (row, _) = self.rows[row];
        let queued_ns = row
            .d2c_ns
            .zip(row.q2d_ns)
            .map(|(d2c, q2d)| row.time_ns - d2c - q2d);
        let is_early = match self.writes[write].1.what {
            What::Stamped(stamp) if stamp.how == How::Direct => {
                queued_ns.is_some_and(|queued_ns| queued_ns < stamp.time_ns)
            }
            _ => false,
        };
        report.wrong() == 0 && !is_early
    }

    fn judge(&self, row: usize, write: usize, logs: &Logs, report: &mut Report) {
        let (row, ahead) = self.rows[row];
        let written = known(row, ahead, self.writes[write].1, logs);
        judge(report, row, ahead, &written, logs);
    }
}

pub fn rows(csv: impl Read) -> Result<Vec<Row>, csv::Error> {
    csv::Reader::from_reader(csv).deserialize().collect()
}

/// Compares rows with the disk's log. Sectors of both are counted from the disk's start.
pub fn compare(rows: &[Row], log: &[Written], logs: &Logs) -> Report {
    let mut sectors: HashMap<u64, Sector<'_>> = HashMap::new();
    for (at, written) in log.iter().enumerate() {
        let sector = sectors.entry(written.sector).or_default();
        sector.writes.push((at, written));
    }
    let mut report = Report::default();
    for row in rows.iter().filter(|row| row.op == "write") {
        let Some(first) = row.sector else { continue };
        for at in 0..row.bytes / 512 {
            report.sectors += 1;
            let sector = sectors.entry(first + at).or_default();
            sector.rows.push((row, at * 512));
        }
    }
    let mut seen = vec![false; log.len()];
    // In the order of sectors, so that the examples of a report are the same every time.
    let sectors: BTreeMap<u64, Sector<'_>> = sectors.into_iter().collect();
    for sector in sectors.values() {
        sector.compare(logs, &mut report, &mut seen);
    }
    // The filesystem's own blocks may have been written before the trace began.
    let is_writers = |written: &&Written| match written.what {
        What::Stamped(_) => true,
        What::Other(sum) => {
            let found = logs.contents.find(sum, written.time_ns, |_| false);
            found.is_some()
        }
        _ => false,
    };
    let unseen = seen.iter().zip(log).filter(|(seen, _)| !**seen);
    for missing in unseen.map(|(_, written)| written).filter(is_writers) {
        report.missing += 1;
        report
            .first_missing
            .get_or_insert_with(|| format!("{missing:?}"));
    }
    report
}

/// Returns what the sector's stamp would say, if its writer logged its contents. If several places held the same
/// contents, the row's is preferred.
fn known(row: &Row, ahead: u64, written: &Written, logs: &Logs) -> Written {
    let What::Other(checksum) = written.what else {
        return *written;
    };
    let (inode, path, offset) = match row.kind.as_deref() {
        Some("data_copy") => (row.home_inode, &row.home_path, None),
        _ => (row.inode, &row.path, row.file_offset),
    };
    // If inodes have no numbers, the row's file is recognised by its name.
    let is_named = |s: &Stamp| {
        let fits = |path: &String| {
            let inode = (s.ino, s.generation);
            logs.names.fits(inode, path, s.time_ns, row.time_ns)
        };
        logs.is_unnumbered && path.as_ref().is_some_and(fits)
    };
    let is_file = |s: &Stamp| inode == Some(s.ino) || is_named(s);
    let is_it = |s: &Stamp| is_file(s) && offset.is_none_or(|offset| offset + ahead == s.offset);
    match logs.contents.find(checksum, written.time_ns, is_it) {
        Some(stamp) => Written {
            what: What::Stamped(stamp),
            ..*written
        },
        None => *written,
    }
}

fn judge(report: &mut Report, row: &Row, ahead: u64, written: &Written, logs: &Logs) {
    let tell = || format!("sector {} {:?}: {row:?}", written.sector, written.what);
    let kind = row.kind.as_deref().unwrap_or("");
    let What::Stamped(stamp) = written.what else {
        match written.what {
            What::Marked(mark) => judge_metadata(report, row, mark, written, &logs.names),
            What::Other(_) if logs.contents.is_mapped(row.inode, row.generation) => {}
            What::Other(_) if kind == "regular" => report.add(Check::Class, Verdict::Wrong, tell),
            _ => {}
        }
        return;
    };
    report.stamped += 1;
    let is_copy = kind == "data_copy";
    let class = match kind {
        "regular" | "data_copy" => Verdict::Right,
        "free" | "unmapped" | "journal_block" => Verdict::Unknown,
        _ => Verdict::Wrong,
    };
    report.add(Check::Class, class, tell);
    let (inode, path) = match is_copy {
        true => (row.home_inode, &row.home_path),
        false => (row.inode, &row.path),
    };
    if !logs.is_unnumbered {
        report.add(Check::Inode, same(inode, stamp.ino), tell);
    }
    if !is_copy && !logs.is_unnumbered {
        report.add(
            Check::Generation,
            same(row.generation, stamp.generation),
            tell,
        );
    }
    if !is_copy {
        let offset = row.file_offset.map(|offset| offset + ahead);
        report.add(Check::Offset, same(offset, stamp.offset), tell);
    }
    report.add(
        Check::Path,
        path_verdict(
            row,
            path,
            (stamp.ino, stamp.generation),
            (stamp.time_ns, row.time_ns),
            &logs.names,
        ),
        tell,
    );
    if let Some(writer) = writer_verdict(row, &stamp) {
        report.add(Check::Writer, writer, tell);
    }
    // A row gives the time for its first page only.
    if stamp.how == How::Fresh && kind == "regular" && ahead == 0 {
        report.add(Check::Dirtied, dirtied_verdict(row, &stamp), tell);
    }
}

/// Judges a metadata block at its own place, or its copy in the journal.
fn judge_metadata(report: &mut Report, row: &Row, mark: Mark, written: &Written, names: &Names) {
    let tell = || format!("sector {} {mark:?}: {row:?}", written.sector);
    report.stamped += 1;
    let is_copy = row.kind.as_deref() == Some("metadata_copy");
    let (kind, inode, path) = match is_copy {
        true => (&row.home_kind, row.home_inode, &row.home_path),
        false => (&row.kind, row.inode, &row.path),
    };
    let class = match kind.as_deref() {
        Some(kind) if kind == mark.kind() => Verdict::Right,
        None | Some("" | "free" | "unmapped" | "journal_block") => Verdict::Unknown,
        _ => Verdict::Wrong,
    };
    report.add(Check::Class, class, tell);
    let Some(owner) = mark.owner() else { return };
    report.add(Check::Inode, same(inode, owner.0), tell);
    if !is_copy {
        report.add(Check::Generation, same(row.generation, owner.1), tell);
    }
    let end_ns = row.time_ns;
    report.add(
        Check::Path,
        path_verdict(row, path, owner, (written.time_ns, end_ns), names),
        tell,
    );
}

fn same<T: PartialEq>(said: Option<T>, truth: T) -> Verdict {
    match said {
        None => Verdict::Unknown,
        Some(said) if said == truth => Verdict::Right,
        Some(_) => Verdict::Wrong,
    }
}

fn path_verdict(
    row: &Row,
    path: &Option<String>,
    inode: Inode,
    (from_ns, to_ns): (u64, u64),
    names: &Names,
) -> Verdict {
    // A path from the snapshot is a name that the file had at the end.
    let to_ns = match row.provenance.as_deref() {
        Some("snapshot") => u64::MAX,
        _ => to_ns,
    };
    match path.as_deref() {
        None | Some("") => Verdict::Unknown,
        // A path without a leading `/` is a bare file name; its directory is unknown.
        Some(name) if !name.starts_with('/') => Verdict::Unknown,
        Some(path) => match names.fits(inode, path, from_ns, to_ns) {
            true => Verdict::Right,
            false => Verdict::Wrong,
        },
    }
}

/// Judges the time of dirtying; the page was clean when the stamp was made.
fn dirtied_verdict(row: &Row, stamp: &Stamp) -> Verdict {
    let Row {
        d2c_ns,
        q2d_ns,
        dirty2q_ns,
        ..
    } = row;
    let (Some(d2c), Some(q2d), Some(dirty2q)) = (d2c_ns, q2d_ns, dirty2q_ns) else {
        return Verdict::Unknown;
    };
    match stamp.time_ns + d2c + q2d + dirty2q <= row.time_ns {
        true => Verdict::Right,
        false => Verdict::Wrong,
    }
}

/// Judges the writer: for direct IO the submitter, for buffered IO the dirtier. jbd2's copies are written by jbd2 and
/// not checked, nor are direct writes that the filesystem performs as buffered ones (data=journal).
fn writer_verdict(row: &Row, stamp: &Stamp) -> Option<Verdict> {
    let is_direct = row.origin.as_deref() == Some("direct");
    let is_buffered = row.kind.as_deref() == Some("regular") && !is_direct;
    match stamp.how {
        How::Direct if is_direct => Some(same(row.pid, stamp.tid)),
        How::Buffered | How::Fresh if is_buffered => Some(same(row.dirty_pid, stamp.tid)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp {
            ino: 12,
            generation: 7,
            offset: 4096,
            time_ns: 100,
            pid: 3,
            tid: 4,
            how: How::Direct,
        }
    }

    fn row() -> Row {
        Row {
            time_ns: 300,
            sector: Some(80),
            bytes: 1024,
            op: "write".into(),
            pid: Some(4),
            path: Some("/a".into()),
            kind: Some("regular".into()),
            inode: Some(12),
            file_offset: Some(4096),
            generation: Some(7),
            d2c_ns: Some(100),
            origin: Some("direct".into()),
            ..Row::default()
        }
    }

    /// The log of both sectors of the row, and of an earlier write.
    fn log() -> Vec<Written> {
        let written = |time_ns, sector, offset| Written {
            time_ns,
            sector,
            what: What::Stamped(Stamp { offset, ..stamp() }),
        };
        vec![
            written(150, 80, 0),
            written(250, 80, 4096),
            written(250, 81, 4608),
        ]
    }

    /// The logs of two files; the second file's sectors are not stamped.
    fn logs() -> Logs {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names");
        std::fs::write(&path, "50 12 7 + /a\n60 13 7 + /b\n").unwrap();
        let contents = folder.path().join("contents");
        std::fs::write(&contents, "99 13 7 8192 100 3 4 1\nmapped 14 7\n").unwrap();
        Logs {
            names: Names::read(&path).unwrap(),
            contents: Contents::read(&contents).unwrap(),
            is_unnumbered: false,
        }
    }

    fn wrong(row: Row) -> Vec<Check> {
        let report = compare(&[row], &log(), &logs());
        let is_wrong = |c: &&[u64; 3]| c[Verdict::Wrong as usize] > 0;
        let checks = report.counts.iter().filter(|(_, c)| is_wrong(c));
        checks.map(|(&check, _)| check).collect()
    }

    #[test]
    fn what_is_right_is_right() {
        let report = compare(&[row()], &log(), &logs());
        assert_eq!((report.stamped, report.wrong(), report.missing), (2, 0, 1));
        assert_eq!(report.counts.len(), 6);
        assert!(report.counts.values().all(|c| *c == [2, 0, 0]));
    }

    /// Each of five kinds of wrong answers is found by its own check.
    #[test]
    fn what_is_wrong_is_found() {
        let with = |change: fn(&mut Row)| {
            let mut row = row();
            change(&mut row);
            wrong(row)
        };
        assert_eq!(with(|r| r.file_offset = Some(0)), [Check::Offset]);
        assert_eq!(with(|r| r.pid = Some(3)), [Check::Writer]);
        assert_eq!(with(|r| r.path = Some("/b".into())), [Check::Path]);
        assert_eq!(with(|r| r.generation = Some(8)), [Check::Generation]);
        assert_eq!(
            with(|r| r.kind = Some("inode_table".into())),
            [Check::Class]
        );
        assert_eq!(with(|r| r.inode = Some(13)), [Check::Inode]);
    }

    /// A sector that is not stamped is compared with what its writer logged. Without a log entry it belongs to no file,
    /// unless the row's file is mapped, whose contents nobody knows.
    #[test]
    fn what_was_logged_is_held_against_the_row() {
        let other = |inode, checksum| {
            let row = Row {
                bytes: 512,
                inode: Some(inode),
                file_offset: Some(8192),
                path: Some("/b".into()),
                ..row()
            };
            let what = What::Other(checksum);
            let written = Written {
                time_ns: 250,
                sector: 80,
                what,
            };
            let report = compare(&[row], &[written], &logs());
            (report.stamped, report.wrong())
        };
        assert_eq!(other(13, 99), (1, 0));
        assert_eq!(other(12, 99), (1, 1), "its inode is another");
        assert_eq!(other(13, 98), (0, 1), "nobody logged it");
        assert_eq!(other(14, 98), (0, 0), "mapped");
    }
}
