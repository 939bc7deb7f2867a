// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds what is said of the sample traces against the text in `data/samples`, which changes only on purpose. After a test has failed,
//! the text that it found lies in the target's folder for temporary files, to be compared and copied.

use std::fmt::{Display, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use mostrace_trace::about;
use mostrace_trace::answer::{Answer, Destination, Summing};
use mostrace_trace::causes::Sharing;
use mostrace_trace::charged::Charging;
use mostrace_trace::pipeline::Fold;
use mostrace_trace::reading::{Options, Reading, read};
use mostrace_trace::recording::Recording;
use mostrace_trace::sums::{Groups, Label, Totals};
use mostrace_trace::transactions::{Database, Transactions};
use mostrace_trace::tree::TreeLine;

const PARTS: usize = 12;
const OWNERS: usize = 4;
const GROUPS: usize = 60;

fn sample(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
    folder.join(format!("{name}.most.tar.zst"))
}

fn read_all(names: &[&str], fold: &mut impl Fold) -> Reading {
    let paths: Vec<PathBuf> = names.iter().map(|name| sample(name)).collect();
    let options = Options {
        causes: Some(Sharing::default()),
        ..Options::default()
    };
    let recordings = Recording::open_all(&paths, false).unwrap();
    read(recordings, &options, &|_| {}, fold).unwrap()
}

/// Text with a heading for each of its parts.
#[derive(Default)]
struct Text(String);

impl Text {
    fn part(&mut self, heading: &str, lines: impl IntoIterator<Item = impl Display>) {
        writeln!(self.0, "# {heading}").unwrap();
        for line in lines {
            writeln!(self.0, "{line}").unwrap();
        }
    }
}

/// Returns all that is said of these recordings.
fn said(names: &[&str]) -> String {
    let mut charging = Charging::default();
    let reading = read_all(names, &mut charging);
    let manifest = reading.manifest.as_ref();
    let charged = charging.charged(&reading.origins, manifest, &reading.databases);
    let sums = charging.sums(&reading.origins);
    let mut text = Text::default();
    text.part("about", about(&reading, &sums.layers.total));
    let whole = about::whole(&reading.recordings, &reading.warnings);
    let answer = Answer::of(&sums, manifest, &reading.databases);
    text.part("answer", answer.lines(whole.as_deref()));
    text.part("charged to the command", charged.answer().lines(None));
    text.part("not charged", charged.counted.words());
    let destinations = Answer::destinations(&sums, manifest, PARTS);
    text.part("destinations", destinations.parts.iter().map(destination));
    let tree = charged.tree();
    text.part("tree", tree.lines(OWNERS).iter().map(branch));
    assert_eq!(tree.leaves(), sums.layers.total.write_bytes);
    text.part("calls", reading.databases.iter().flat_map(calls));
    let transactions = Transactions::new(manifest, &reading.databases);
    text.part("transactions", [format!("{transactions:?}")]);
    text.part("layers", groups(&sums.layers));
    text.part("who", groups(&sums.who));
    text.part("certainty", groups(&sums.known));
    text.part("warnings", &reading.warnings);
    text.part("notices", reading.all_notices());
    named(text.0, names)
}

fn about(reading: &Reading, total: &Totals) -> Vec<String> {
    let duration_ns = reading.origins.duration_ns();
    let each = || {
        let each = reading.recordings.iter();
        each.map(|one| (one.path(), one.manifest()))
    };
    let lines = match &reading.recordings[..] {
        [one] => about::lines(one.path(), one.manifest(), duration_ns, total),
        _ => about::lines_of_several(each(), duration_ns, total),
    };
    let lines = lines.into_iter();
    lines
        .map(|(name, words)| format!("{name}: {words}"))
        .collect()
}

fn destination(part: &Destination) -> String {
    let Destination {
        depth,
        name,
        processes,
        bytes,
        is_last,
    } = part;
    let last = if *is_last { ", the last" } else { "" };
    format!(
        "{:indent$}{name} ({processes}): {bytes}{last}",
        "",
        indent = 2 * depth
    )
}

fn branch(line: &TreeLine) -> String {
    let number = |number: Option<u64>| number.map_or("-".into(), |number| number.to_string());
    let numbers = [
        line.bytes,
        line.calls,
        line.syncs,
        line.flushes,
        line.fua_writes,
    ];
    let numbers = numbers.map(number).join(" ");
    format!("{}: {numbers} {}", line.what, line.transactions)
}

fn calls(database: &Database) -> Vec<String> {
    let path = database.path.as_deref().map(String::from_utf8_lossy);
    let of = format!(
        "{} {} {}",
        database.process(),
        path.as_deref().unwrap_or("-"),
        database.transactions()
    );
    let asked = database.asked.iter();
    let asked = asked.map(|(role, asked)| format!("  {} {asked:?}", role.as_str()));
    [of].into_iter().chain(asked).collect()
}

/// Returns a line for each of the largest groups.
fn groups(groups: &Groups) -> impl Iterator<Item = String> {
    let word = |label: &Label| label.text().unwrap_or("-".into());
    groups
        .groups
        .iter()
        .take(GROUPS)
        .map(move |(labels, totals)| {
            let labels: Vec<String> = labels.iter().map(word).collect();
            format!(
                "{}: {} {}",
                labels.join(" | "),
                totals.write_bytes,
                totals.read_bytes
            )
        })
}

/// Replaces the recordings' paths, which are those of this copy of the repository.
fn named(text: String, names: &[&str]) -> String {
    names.iter().fold(text, |text, name| {
        text.replace(&sample(name).display().to_string(), name)
    })
}

/// Compares what is said with what `data/samples` has.
fn expect(file: &str, names: &[&str]) {
    let said = said(names);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/samples");
    let expected = fs::read_to_string(data.join(file)).unwrap_or_default();
    let found = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    fs::write(&found, &said).unwrap();
    for (nth, (said, expected)) in (1..).zip(said.lines().zip(expected.lines())) {
        assert_eq!(said, expected, "line {nth} of {}", found.display());
    }
    assert_eq!(said.len(), expected.len(), "{}", found.display());
}

macro_rules! samples {
    ($($test:ident: $($name:literal)+;)+) => {$(
        #[test]
        fn $test() {
            expect(concat!(stringify!($test), ".txt"), &[$($name),+]);
        }
    )+};
}

samples! {
    delete: "delete";
    f2fs_delete: "f2fs-delete";
    f2fs_wal: "f2fs-wal";
    fat32_delete: "fat32-delete";
    persist: "persist";
    truncate: "truncate";
    wal: "wal";
    two_together: "wal" "f2fs-wal";
}

#[test]
fn sums_are_the_same_whoever_sums_up() {
    let mut charging = Charging::default();
    let reading = read_all(&["f2fs-wal"], &mut charging);
    let mut summing = Summing::default();
    read_all(&["f2fs-wal"], &mut summing);
    let sums = charging.sums(&reading.origins);
    assert_eq!(sums, summing.finish(&reading.origins));
}
