// SPDX-License-Identifier: MIT OR Apache-2.0
//! This is what `analyze --json` says of a trace, whichever program prints it.

use mostrace_bundle::Manifest;
use mostrace_trace::answer::Answer;
use mostrace_trace::recording::Recording;
use mostrace_trace::sums::Totals;
use serde_json::{Map, Value, json};

/// This is what was read, and what it shows.
pub struct Shown<'a> {
    pub recordings: &'a [Recording],
    pub manifest: Option<&'a Manifest>,
    pub warnings: &'a [String],
    /// None if a condition leaves out rows.
    pub finding: Option<&'a Answer>,
    pub notices: &'a [String],
    pub duration_ns: u64,
    pub total: &'a Totals,
}

impl Shown<'_> {
    /// Returns the fields of the JSON object.
    pub fn object(&self) -> Map<String, Value> {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        let shown = |one: &Recording| one.path().display().to_string();
        match self.recordings {
            [one] => put("trace", json!(shown(one))),
            several => put("traces", several.iter().map(shown).collect()),
        };
        put("warnings", json!(self.warnings));
        put("finding", json!(self.finding));
        put("notices", json!(self.notices));
        put("duration_ns", json!(self.duration_ns));
        let manifest = self.manifest.filter(|_| self.recordings.len() <= 1);
        put("manifest", json!(manifest));
        let total = self.total.fields();
        let total = total.map(|(name, value)| (name.to_owned(), json!(value)));
        put("total", total.collect::<Map<_, _>>().into());
        object
    }
}
