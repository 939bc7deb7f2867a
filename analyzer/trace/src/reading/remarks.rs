// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the warnings and notices that belong to a recording beside its rows.

use mostrace_bundle::manifest::State;
use mostrace_bundle::{Bundle, Manifest};

use crate::attribute::Leftovers;
use crate::recording::Recording;
use crate::text::escape;

/// The notice for a trace without a snapshot that could be mapped.
pub const NO_MAP: &str = "no map of the filesystem: what no probe saw is unmapped";

/// Collects the warnings and notices of one recording.
#[derive(Default)]
pub(super) struct Remarks {
    pub warnings: Vec<String>,
    pub notices: Vec<String>,
}

impl Remarks {
    pub fn of(recording: &Recording) -> Remarks {
        Remarks {
            warnings: warnings(recording),
            notices: Vec::new(),
        }
    }
}

/// Returns what makes a trace's figures incomplete; for segments, each line begins with the segment's name.
pub fn warnings(recording: &Recording) -> Vec<String> {
    let of_bundle = |bundle: &Bundle| {
        let mut warnings = warnings_of(bundle.manifest());
        let shortfalls = bundle.shortfalls();
        let shortfalls = shortfalls.iter();
        warnings.extend(shortfalls.map(|shortfall| format!("INCOMPLETE: {shortfall}")));
        warnings
    };
    match recording.bundles() {
        [one] => of_bundle(one),
        segments => {
            let named = segments.iter().flat_map(|segment| {
                let name = segment.path().file_name().unwrap_or_default();
                let name = escape(name.as_encoded_bytes());
                let each = of_bundle(segment).into_iter();
                each.map(move |line| format!("{name}: {line}"))
            });
            let gaps = recording.gaps().into_iter();
            named
                .chain(gaps.map(|gap| format!("INCOMPLETE: {gap}")))
                .collect()
        }
    }
}

/// Returns what a manifest says that makes the figures of a bundle incomplete: losses, a capture without an end, interference of
/// others, and differences from the kernel's counters.
pub fn warnings_of(manifest: &Manifest) -> Vec<String> {
    let mut warnings = Vec::new();
    if manifest.state == State::Recording {
        warnings.push(
            "CUT SHORT: the recorder did not come to its end; its last records may be missing"
                .into(),
        );
    }
    let lost = manifest.losses.iter().filter(|(_, count)| **count > 0);
    let lost = lost.map(|(stage, count)| format!("{} {count}", escape(stage.as_bytes())));
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        let lost = lost.join(", ");
        warnings.push(format!(
            "LOSSY: records were lost during the capture ({lost})"
        ));
    }
    if !manifest.interference.is_empty() {
        let what = escape(manifest.interference.join("; ").as_bytes());
        warnings.push(format!(
            "INTERFERED: others changed the tracing while it ran ({what})"
        ));
    }
    if let Some(counters) = &manifest.counters
        && counters.differences().next().is_some()
    {
        let what = escape(counters.to_string().as_bytes());
        warnings.push(format!("DIFFERS: {what}"));
    }
    warnings
}

/// What a trace's notices are made of.
#[derive(Clone, Copy)]
pub struct Remarked<'a> {
    /// None for a bare trace.
    pub manifest: Option<&'a Manifest>,
    /// Lines that say what makes the figures incomplete.
    pub warnings: &'a [String],
    /// The reader's notices.
    pub notices: &'a [String],
    /// True if there was a map of the filesystem.
    pub mapped: bool,
    /// Entries without a completion.
    pub leftovers: Leftovers,
}

/// Returns all notices of a trace: those of the reader and the recorder, and of entries without a completion.
pub fn notices(of: Remarked<'_>) -> Vec<String> {
    let mut notices = of.notices.to_vec();
    let notes = of.manifest.into_iter().flat_map(|manifest| &manifest.notes);
    notices.extend(notes.map(|note| escape(note.as_bytes())));
    if !of.mapped {
        notices.push(NO_MAP.into());
    }
    // At the ends of a complete trace some requests are in flight, whose entries have no completion in it.
    let left = match of.warnings.is_empty() {
        true => Leftovers::default(),
        false => of.leftovers,
    };
    let left = [
        ("process", left.process_entries),
        ("file", left.file_entries),
        ("dirtier", left.dirtier_entries),
    ];
    for (table, entries) in left.into_iter().filter(|(_, entries)| *entries > 0) {
        notices.push(format!("{entries} {table} entries found no completion"));
    }
    notices
}
