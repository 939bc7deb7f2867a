// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments of a recording that was cut: their names, their order, and their combined manifest.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::counters::{Counter, Counters};
use crate::manifest::{Clock, Manifest, State};

/// The file name endings of bundles, the longer one first.
const ENDINGS: [&str; 2] = [".most.tar.zst", ".most"];
/// The least number of digits in a segment's number.
const DIGITS: usize = 4;

/// The note in the manifest of every segment but the last.
pub const SNAPSHOT_IN_THE_LAST: &str = "no snapshot in this segment: the recording's one is taken at its end, and is in its last segment";

/// Returns the file name without its ending, and the ending.
fn parts(output: &Path) -> (&str, &'static str) {
    let name = output.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let ending = ENDINGS.iter().find(|ending| name.ends_with(**ending));
    let ending = ending.copied().unwrap_or_default();
    (name.strip_suffix(ending).unwrap_or(name), ending)
}

/// Returns the path of segment `number` (counted from 1) of a recording to `output`: `run.0001.most` for `run.most`, so
/// that names sort.
#[must_use]
pub fn segment(output: &Path, number: u32) -> PathBuf {
    let (name, ending) = parts(output);
    output.with_file_name(format!("{name}.{number:04}{ending}"))
}

/// Returns the number in a file name if it is the name of a segment of the recording to `output`, packed or not.
#[must_use]
pub fn number(output: &Path, file: &str) -> Option<u32> {
    let (name, _) = parts(output);
    let rest = file.strip_prefix(name)?.strip_prefix('.')?;
    let number = ENDINGS
        .iter()
        .find_map(|ending| rest.strip_suffix(ending))?;
    let is_number = number.len() >= DIGITS && number.bytes().all(|b| b.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// Returns the path of the recording to which segment `number` belongs: `run.most` for `run.0001.most`. None if the
/// name has not that form.
#[must_use]
pub fn recording(segment: &Path, number: u32) -> Option<PathBuf> {
    let (name, ending) = parts(segment);
    let name = name.strip_suffix(&format!(".{number:04}"))?;
    Some(segment.with_file_name(format!("{name}{ending}")))
}

/// Returns the paths of the existing segments of a recording to `output`, in their order. If a segment exists both
/// packed and not packed, the one with the ending of `output` is taken.
pub fn find(output: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = match output.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let (_, ending) = parts(output);
    let mut found: BTreeMap<u32, PathBuf> = BTreeMap::new();
    for file in std::fs::read_dir(folder)? {
        let file = file?.file_name();
        let Some(file) = file.to_str() else { continue };
        let Some(number) = number(output, file) else {
            continue;
        };
        let path = output.with_file_name(file);
        if parts(&path).1 == ending || !found.contains_key(&number) {
            found.insert(number, path);
        }
    }
    Ok(found.into_values().collect())
}

/// Returns true if `next` is the segment after `before` in one recording: it began at the moment at which the other
/// ended. If the recorder was killed before it wrote that moment down, a later beginning is enough.
#[must_use]
pub fn is_next(before: &Manifest, next: &Manifest) -> bool {
    let (Some(first), Some(second)) = (&before.segment, &next.segment) else {
        return false;
    };
    let is_at_once = match before.state {
        State::Complete => before.clock.stop_mono_ns == next.clock.start_mono_ns,
        State::Recording => before.clock.start_mono_ns < next.clock.start_mono_ns,
    };
    first.number.checked_add(1) == Some(second.number)
        && is_at_once
        && before.kernel == next.kernel
        && before.device == next.device
}

/// Combines the manifests of consecutive segments to that of a recording in one piece: the last one's, with the sums
/// over all. None if there are no segments.
#[must_use]
pub fn together(segments: &[&Manifest]) -> Option<Manifest> {
    let (first, last) = (segments.first()?, segments.last()?);
    let sum = |of: fn(&Manifest) -> &BTreeMap<String, u64>| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (name, n) in segments.iter().flat_map(|segment| of(segment)) {
            let sum = sums.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*n);
        }
        sums
    };
    let causes = segments.iter().filter_map(|segment| segment.causes);
    let mut notes: Vec<String> = Vec::new();
    for note in segments.iter().flat_map(|segment| &segment.notes) {
        let is_said = notes.contains(note);
        if !is_said && (note != SNAPSHOT_IN_THE_LAST || last.notes.contains(note)) {
            notes.push(note.clone());
        }
    }
    let interference = segments.iter().flat_map(|segment| &segment.interference);
    let longest = segments
        .iter()
        .max_by_key(|segment| segment.functions.len());
    Some(Manifest {
        clock: Clock {
            stop_mono_ns: last.clock.stop_mono_ns,
            ..first.clock
        },
        counts: sum(|manifest| &manifest.counts),
        losses: sum(|manifest| &manifest.losses),
        causes: causes.reduce(|sum, more| sum.plus(more)),
        counters: counters(segments),
        functions: longest.map_or_else(Vec::new, |of| of.functions.clone()),
        interference: interference.cloned().collect(),
        notes,
        ..(*last).clone()
    })
}

/// Adds up the kernel's counters of all segments. If one segment was not compared, returns its reason.
fn counters(segments: &[&Manifest]) -> Option<Counters> {
    let mut sums: BTreeMap<String, Counter> = BTreeMap::new();
    for segment in segments {
        match segment.counters.as_ref()? {
            Counters::Compared(of_one) => {
                for (name, counter) in of_one {
                    let sum = sums.entry(name.clone());
                    let sum = sum.or_insert(Counter {
                        at_most: Some(0),
                        ..Counter::default()
                    });
                    *sum = sum.plus(counter);
                }
            }
            not_compared @ Counters::NotCompared(_) => return Some(not_compared.clone()),
        }
    }
    Some(Counters::Compared(sums))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Segment;

    #[test]
    fn segments_are_numbered_ahead_of_the_ending() {
        for (output, second) in [
            ("a/run.most", "a/run.0002.most"),
            ("run.x.most.tar.zst", "run.x.0002.most.tar.zst"),
        ] {
            assert_eq!(segment(Path::new(output), 2), Path::new(second));
            assert_eq!(recording(Path::new(second), 2), Some(output.into()));
            assert_eq!(recording(Path::new(second), 1), None);
        }
        let far = segment(Path::new("r.most"), 12345);
        assert_eq!(far, Path::new("r.12345.most"));
        assert_eq!(number(Path::new("r.most"), "r.12345.most"), Some(12345));
    }

    #[test]
    fn segments_are_found_by_the_recordings_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let names = [
            "run.0002.most",
            "run.0010.most",
            "run.0003.most.tar.zst",
            "run.0003.most",
            "run.1.most",
            "run.00x1.most",
            "xrun.0001.most",
            "run.0001.txt",
        ];
        for name in names {
            std::fs::write(at(name), "").unwrap();
        }
        let found = |output: &str| -> Vec<String> {
            let found = find(&at(output)).unwrap();
            let names = found.iter().filter_map(|path| path.file_name()?.to_str());
            names.map(str::to_owned).collect()
        };
        let plain = ["run.0002.most", "run.0003.most", "run.0010.most"];
        assert_eq!(found("run.most"), plain);
        let packed = ["run.0002.most", "run.0003.most.tar.zst", "run.0010.most"];
        assert_eq!(found("run.most.tar.zst"), packed);
        assert!(found("other.most").is_empty());
    }

    fn manifest(number: u32, start: u64, stop: u64) -> Manifest {
        let mut manifest = Manifest {
            state: State::Complete,
            segment: Some(Segment {
                number,
                ..Segment::default()
            }),
            notes: vec![SNAPSHOT_IN_THE_LAST.into(), "a note".into()],
            ..Manifest::default()
        };
        (manifest.clock.start_mono_ns, manifest.clock.stop_mono_ns) = (start, stop);
        manifest.losses.insert("events_ring".into(), number.into());
        manifest
            .counts
            .insert("events".into(), u64::from(number) * 10);
        let counter = Counter {
            traced: 7,
            failed: 1,
            at_least: 6,
            at_most: Some(8),
        };
        manifest.counters = Some(Counters::Compared([("writes".into(), counter)].into()));
        manifest
    }

    #[test]
    fn the_next_one_begins_where_the_one_before_ends() {
        let (one, two, three) = (manifest(1, 5, 9), manifest(2, 9, 12), manifest(3, 12, 20));
        assert!(is_next(&one, &two) && is_next(&two, &three));
        // Not the next number; another start time; another disk; not a segment.
        assert!(!is_next(&one, &three) && !is_next(&two, &one));
        assert!(!is_next(&one, &manifest(2, 10, 12)));
        let mut other = two.clone();
        other.device.dev = "8:0".into();
        assert!(!is_next(&one, &other));
        other = two.clone();
        other.segment = None;
        assert!(!is_next(&one, &other));
        // The recorder was killed before it wrote the segment's end.
        let mut killed = manifest(1, 5, 0);
        killed.state = State::Recording;
        assert!(is_next(&killed, &two));
    }

    #[test]
    fn segments_come_to_what_one_piece_does() {
        let (one, mut two) = (manifest(1, 5, 9), manifest(2, 9, 12));
        two.notes.remove(0);
        two.interference.push("somebody".into());
        let all = together(&[&one, &two]).unwrap();
        assert_eq!((all.clock.start_mono_ns, all.clock.stop_mono_ns), (5, 12));
        assert_eq!(all.losses["events_ring"], 3);
        assert_eq!(all.counts["events"], 30);
        assert_eq!(all.notes, ["a note"]);
        assert_eq!(all.interference, ["somebody"]);
        let Some(Counters::Compared(counters)) = all.counters else {
            panic!("no counters");
        };
        let sum = counters["writes"];
        assert_eq!((sum.traced, sum.failed, sum.at_least), (14, 2, 12));
        assert_eq!(sum.at_most, Some(16));
        assert_eq!(together(&[&one]).unwrap(), one);
        assert_eq!(together(&[]), None);
    }
}
