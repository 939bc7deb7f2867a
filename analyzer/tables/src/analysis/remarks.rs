// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the warnings and notices that belong to a recording beside its rows.

use mostrace_bundle::Bundle;

use crate::tables::summary::Summary;
use mostrace_trace::recording::Recording;
use mostrace_trace::text::escape;

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
        let mut warnings = Summary::warnings(Some(bundle.manifest()));
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
