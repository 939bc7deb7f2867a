// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of a recording with the kernel's own counters, `/sys/class/block/X/stat`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of comparing a trace with the kernel's counters. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counters {
    /// The counters by name: `reads`, `read_bytes`, `writes`, `write_bytes`, `discards`, `discard_bytes`, `flushes`.
    Compared(BTreeMap<String, Counter>),
    /// The reason why the counters cannot be compared with this recording.
    NotCompared(String),
}

/// The bytes that the kernel had counted for the device since it appeared (with the boot, for most disks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written or zeroed.
    pub write_bytes: u64,
}

/// The kernel's totals around a recording. Their difference is the `at_least` of [`Counters`]; alone they also tell what was
/// written between two recordings of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// The boot, and the disk within that boot; totals of different epochs are unrelated.
    pub epoch: String,
    /// Right after tracing began.
    pub began: Total,
    /// Right before it ended.
    pub ended: Total,
}

/// The counters that count requests.
const REQUESTS: [&str; 4] = ["reads", "writes", "discards", "flushes"];

/// One counter. The kernel's counters are read a moment before and after tracing starts and stops, so the kernel's
/// count is a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// The sum over the trace's completions.
    pub traced: u64,
    /// The part of `traced` that failed. The kernel does not count what failed before it became a request.
    #[serde(default)]
    pub failed: u64,
    /// The kernel's count from just after tracing began to just before it ended.
    pub at_least: u64,
    /// The kernel's count from just before tracing began to just after it ended; None if the trace may rightly hold
    /// more.
    pub at_most: Option<u64>,
}

impl Counter {
    /// Returns true if the trace has all that the kernel counted and no more.
    pub fn agrees(&self) -> bool {
        let done = self.traced.saturating_sub(self.failed);
        self.traced >= self.at_least && self.at_most.is_none_or(|most| done <= most)
    }

    /// Returns the field-wise sum of both counters.
    #[must_use]
    pub fn plus(&self, other: &Counter) -> Counter {
        let most = self.at_most.zip(other.at_most);
        Counter {
            traced: self.traced.saturating_add(other.traced),
            failed: self.failed.saturating_add(other.failed),
            at_least: self.at_least.saturating_add(other.at_least),
            at_most: most.map(|(a, b)| a.saturating_add(b)),
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} traced, {}", self.traced, self.at_least)?;
        match self.at_most {
            Some(most) if most != self.at_least => write!(f, " to {most} counted"),
            Some(_) => f.write_str(" counted"),
            None => f.write_str(" or more counted"),
        }
    }
}

impl Counters {
    /// Returns the counters that do not agree.
    pub fn differences(&self) -> impl Iterator<Item = (&str, &Counter)> {
        let compared = match self {
            Counters::Compared(counters) => Some(counters),
            Counters::NotCompared(_) => None,
        };
        let all = compared.into_iter().flatten();
        all.filter(|(_, counter)| !counter.agrees())
            .map(|(name, counter)| (name.as_str(), counter))
    }

    /// Returns the least number of requests that the kernel counted and the trace lacks; 0 if the counters were not
    /// compared.
    pub fn requests_missing(&self) -> u64 {
        let requests = self.differences();
        let requests = requests.filter(|(name, _)| REQUESTS.contains(name));
        let missing = requests.map(|(_, c)| c.at_least.saturating_sub(c.traced));
        missing.fold(0, u64::saturating_add)
    }

    /// Returns true if the counters were compared and all agree.
    pub fn agree(&self) -> bool {
        matches!(self, Counters::Compared(_)) && self.differences().next().is_none()
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Counters::NotCompared(why) = self {
            return write!(f, "not held against the kernel's counters: {why}");
        }
        let differences: Vec<_> = self
            .differences()
            .map(|(name, counter)| format!("{name} {counter}"))
            .collect();
        match differences.is_empty() {
            true => f.write_str("the kernel's counters agree"),
            false => write!(
                f,
                "the kernel's counters differ: {}",
                differences.join("; ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(counter: Counter) -> Counters {
        Counters::Compared([("write_bytes".to_owned(), counter)].into())
    }

    fn counter(traced: u64, at_least: u64, at_most: Option<u64>) -> Counter {
        Counter {
            traced,
            failed: 0,
            at_least,
            at_most,
        }
    }

    #[test]
    fn what_is_missing_or_too_much_is_a_difference() {
        for (traced, at_least, at_most, says) in [
            (512, 512, Some(512), "the kernel's counters agree"),
            (1024, 512, Some(1024), "the kernel's counters agree"),
            (2048, 512, None, "the kernel's counters agree"),
            (
                0,
                512,
                Some(512),
                "the kernel's counters differ: write_bytes 0 traced, 512 counted",
            ),
            (
                2048,
                512,
                Some(1024),
                "the kernel's counters differ: write_bytes 2048 traced, 512 to 1024 counted",
            ),
            (
                0,
                512,
                None,
                "the kernel's counters differ: write_bytes 0 traced, 512 or more counted",
            ),
        ] {
            let counters = compared(counter(traced, at_least, at_most));
            assert_eq!(counters.to_string(), says);
            assert_eq!(counters.agree(), says.ends_with("agree"));
        }
    }

    #[test]
    fn requests_are_missing_by_their_number() {
        let counters = Counters::Compared(
            [
                ("reads".to_owned(), counter(9, 7, None)),
                ("writes".to_owned(), counter(5, 8, None)),
                (
                    "write_bytes".to_owned(),
                    counter(5 << 12, 8 << 12, Some(8 << 12)),
                ),
                ("flushes".to_owned(), counter(1, 3, Some(3))),
            ]
            .into(),
        );
        assert_eq!(counters.requests_missing(), 5);
        assert_eq!(Counters::NotCompared("off".into()).requests_missing(), 0);
    }

    #[test]
    fn what_failed_may_be_counted_or_not() {
        let failing = |at_least, at_most| Counter {
            failed: 512,
            ..counter(1024, at_least, Some(at_most))
        };
        assert!(failing(512, 512).agrees() && failing(1024, 1024).agrees());
        assert!(!failing(0, 256).agrees() && !failing(2048, 2048).agrees());
    }

    #[test]
    fn what_was_not_compared_does_not_agree() {
        let counters = Counters::NotCompared("queue/iostats is off".into());
        assert!(!counters.agree());
        assert_eq!(
            counters.to_string(),
            "not held against the kernel's counters: queue/iostats is off"
        );
        let text = serde_json::to_string(&counters).unwrap();
        assert_eq!(text, r#"{"not_compared":"queue/iostats is off"}"#);
    }
}
