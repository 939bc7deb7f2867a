// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the calls of a replay by kind, and those whose result differs from the application's.

use std::collections::BTreeMap;
use std::fmt;

use mostrace_replay::mobigen::Line;

/// The counts of one kind of call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Calls {
    /// Number of calls made.
    pub made: u64,
    /// Number of calls with another result than in the script; if the script gives none, of calls that failed.
    pub other_result: u64,
}

/// The counts by the calls' names in the script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally(BTreeMap<String, Calls>);

impl Calls {
    fn add(&mut self, more: Calls) {
        self.made = self.made.saturating_add(more.made);
        self.other_result = self.other_result.saturating_add(more.other_result);
    }
}

impl Tally {
    /// Counts a call that returned `result`.
    pub fn add(&mut self, line: &Line, result: i64) {
        let is_other = match line.result {
            // The number of a descriptor is the kernel's choice.
            Some(expected) if line.name == "open" => (expected < 0) != (result < 0),
            Some(expected) => expected != result,
            None => result < 0,
        };
        self.0.entry(line.name.clone()).or_default().add(Calls {
            made: 1,
            other_result: is_other.into(),
        });
    }

    /// Adds another thread's counts.
    pub fn merge(&mut self, other: Tally) {
        for (name, theirs) in other.0 {
            self.0.entry(name).or_default().add(theirs);
        }
    }

    /// Returns the sums over all kinds.
    pub fn total(&self) -> Calls {
        let mut total = Calls::default();
        self.0.values().for_each(|calls| total.add(*calls));
        total
    }

    /// Returns the counts in the form of the payload's settings: `calls_KIND`, and `other_result_KIND` if it is not 0.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let made = self.0.iter();
        let made = made.map(|(name, calls)| (format!("calls_{name}"), calls.made.to_string()));
        let others = self.0.iter().filter(|(_, calls)| calls.other_result > 0);
        let others = others.map(|(name, calls)| {
            let key = format!("other_result_{name}");
            (key, calls.other_result.to_string())
        });
        made.chain(others).collect()
    }
}

/// Displays a header line and a line for each kind.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:14} {:>8} {:>12}", "call", "made", "other result")?;
        for (name, calls) in &self.0 {
            write!(
                f,
                "\n{name:14} {:>8} {:>12}",
                calls.made, calls.other_result
            )?;
        }
        Ok(())
    }
}
