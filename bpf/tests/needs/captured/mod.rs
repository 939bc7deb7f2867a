// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording and its decoded contents.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::blk_io_trace::action::{BLK_TC_FLUSH, ta, tn};
use mostrace_bundle::blk_io_trace::{Decoded, Event, Records, Then, decode};
use mostrace_bundle::entry::{RawDirtier, RawProcess};
use mostrace_bundle::{Bundle, Entry, entry::FileEntry, layout};
use mostrace_capture::{Choice, Entries, Events, Options, Outcome, record};
use test_support::nothing_lost;

pub struct Captured {
    pub bundle: Bundle,
    pub outcome: Outcome,
    /// The events, decoded without their payloads.
    pub events: Vec<Event<'static>>,
    /// Threads and their names, as noted in the trace.
    pub names: Vec<(u32, String)>,
    pub process: Vec<RawProcess>,
    pub file: Vec<FileEntry>,
    pub dirtier: Vec<RawDirtier>,
}

pub fn options(device: &Path, output: PathBuf, source: Choice, script: &str) -> Options {
    Options {
        device: device.to_owned(),
        output,
        source,
        events: Events::All,
        entries: Entries::Bpf,
        sync: true,
        no_snapshot: true,
        argv: ["sh", "-ec", script].map(Into::into).to_vec(),
        ..Options::default()
    }
}

pub fn capture(device: &Path, source: Choice, script: &str) -> Captured {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let outcome = record(&options(device, output.clone(), source, script)).unwrap();
    assert_eq!(outcome.exit_status, 0, "the script failed");
    Captured::of(&output, outcome)
}

pub fn is_issue(event: &Event<'_>) -> bool {
    !event.is_note() && event.act() == ta::ISSUE
}

impl Captured {
    /// Reads a whole bundle, which may be removed afterwards.
    pub fn of(output: &Path, outcome: Outcome) -> Captured {
        let bundle = Bundle::open(output).unwrap();
        let (mut process, mut file, mut dirtier) = (Vec::new(), Vec::new(), Vec::new());
        for name in layout::TABLES {
            for entry in bundle.table(name, false).unwrap().into_iter().flatten() {
                match entry.unwrap() {
                    Entry::Process(p) => process.push(p),
                    Entry::File(f) => file.push(f),
                    Entry::Dirtier(d) => dirtier.push(d),
                    Entry::Handle(_)
                    | Entry::Dirtied(_)
                    | Entry::Call(_)
                    | Entry::Freed(_)
                    | Entry::F2fs(_)
                    | Entry::Fork(_)
                    | Entry::Served(_)
                    | Entry::Cgroup(..)
                    | Entry::Stack(..)
                    | Entry::Comm(_)
                    | Entry::Operation(_) => {
                        unreachable!()
                    }
                }
            }
        }
        let (mut events, mut names) = (Vec::new(), Vec::new());
        for path in bundle.event_files() {
            let file = fs::File::open(path).unwrap();
            let (data, then) = Records::new(file).read_all().unwrap();
            assert_eq!(then, Then::End, "{}", path.display());
            let mut rest = &data[..];
            while !rest.is_empty() {
                let at = data.len() - rest.len();
                let Decoded::Record(event, len) = decode(rest) else {
                    panic!("no record at byte {at} of {}", path.display())
                };
                if event.is_note() && event.act() == tn::PROCESS {
                    let name = event.pdu.split(|b| *b == 0).next().unwrap_or_default();
                    names.push((event.pid, String::from_utf8_lossy(name).into_owned()));
                }
                events.push(Event { pdu: &[], ..event });
                rest = &rest[len..];
            }
        }
        Captured {
            bundle,
            outcome,
            events,
            names,
            process,
            file,
            dirtier,
        }
    }

    /// Returns the sectors that process entries cover.
    pub fn covered(&self) -> HashSet<u64> {
        let range = |p: &RawProcess| {
            let (start, bytes) = (p.head.sector.get(), u64::from(p.head.bytes.get()));
            start..start + bytes / 512
        };
        self.process.iter().flat_map(range).collect()
    }

    /// Returns the dirtying process of each sector.
    pub fn dirtiers(&self) -> HashMap<u64, u32> {
        let sectors = |d: &RawDirtier| {
            let (start, bytes) = (d.head.sector.get(), u64::from(d.head.bytes.get()));
            let tgid = d.tgid.get();
            (start..start + bytes / 512).map(move |sector| (sector, tgid))
        };
        self.dirtier.iter().flat_map(sectors).collect()
    }

    /// Returns what is told of the data of a file. A flush that its fsync asks for has no sectors.
    pub fn of_file(&self, ino: u64) -> impl Iterator<Item = &FileEntry> {
        let has_data = move |f: &&FileEntry| f.raw.ino.get() == ino && f.raw.head.bytes.get() > 0;
        self.file.iter().filter(has_data)
    }

    /// Checks that there are no losses but missing completions, for which see `completions_are_fios`.
    pub fn assert_nothing_lost(&self) {
        let mut losses = self.outcome.manifest.losses.clone();
        losses.remove("completions");
        nothing_lost(&losses);
    }
}

/// Returns the sector of the file by device sector, from FIEMAP by way of filefrag.
pub fn fiemap(path: &Path, start: u64) -> HashMap<u64, u64> {
    let out = Command::new("filefrag")
        .args(["-b512", "-e"])
        .arg(path)
        .output()
        .unwrap();
    assert!(out.status.success());
    let mut map = HashMap::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let Some((index, rest)) = line.trim().split_once(':') else {
            continue;
        };
        if index.parse::<u32>().is_err() {
            continue;
        }
        let n: Vec<u64> = rest
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|t| t.parse().ok())
            .take(4)
            .collect();
        let [logical, last, physical, _] = n[..] else {
            panic!("filefrag: {line}")
        };
        map.extend((0..=last - logical).map(|i| (start + physical + i, logical + i)));
    }
    map
}

pub fn is_flush(event: &Event<'_>) -> bool {
    event.action & BLK_TC_FLUSH != 0
}
