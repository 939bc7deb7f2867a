// SPDX-License-Identifier: MIT OR Apache-2.0
//! A number of transactions, and how certain it is.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::text::grouped;

/// The certainty of a count.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Sure {
    /// The count is exact.
    #[default]
    Exact,
    /// There may be more.
    AtLeast,
    /// None was counted, but there may be some.
    Unknown,
}

/// A number of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The number that was counted.
    pub least: u64,
    /// The certainty of that number.
    pub sure: Sure,
}

impl Count {
    /// Makes a count; `is_exact` says whether all were counted.
    pub fn new(least: u64, is_exact: bool) -> Count {
        let sure = match (is_exact, least) {
            (true, _) => Sure::Exact,
            (false, 0) => Sure::Unknown,
            (false, _) => Sure::AtLeast,
        };
        Count { least, sure }
    }

    /// Returns true if all were counted.
    pub fn is_exact(self) -> bool {
        self.sure == Sure::Exact
    }

    /// Returns the number by which figures per transaction are divided; None if none was counted.
    pub fn divisor(self) -> Option<u64> {
        Some(self.least).filter(|&least| least > 0)
    }

    /// Returns `at least `, to precede the number if there may be more; else nothing.
    pub fn at_least(self) -> &'static str {
        match self.sure {
            Sure::AtLeast => "at least ",
            Sure::Exact | Sure::Unknown => "",
        }
    }

    /// Returns `at most `, to precede a quotient by the number if there may be more; else nothing.
    pub fn at_most(self) -> &'static str {
        match self.sure {
            Sure::AtLeast => "at most ",
            Sure::Exact | Sure::Unknown => "",
        }
    }
}

impl Sure {
    /// The word used in tables and files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Formats as `12,345` or `at least 12,345`.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.at_least(), grouped(self.least))
    }
}
