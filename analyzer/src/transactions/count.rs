// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many, and how sure that is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::grouped;

/// How sure a count is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Sure {
    /// Neither more nor less.
    #[default]
    Exact,
    /// There may be more.
    AtLeast,
    /// Nothing was counted, and there may be some.
    Unknown,
}

/// A number of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Those that were counted.
    pub least: u64,
    /// Whether these are all.
    pub sure: Sure,
}

impl Count {
    /// So many were counted, and these are all, or not.
    pub fn new(least: u64, is_exact: bool) -> Count {
        let sure = match (is_exact, least) {
            (true, _) => Sure::Exact,
            (false, 0) => Sure::Unknown,
            (false, _) => Sure::AtLeast,
        };
        Count { least, sure }
    }

    /// Whether these are all.
    pub fn is_exact(self) -> bool {
        self.sure == Sure::Exact
    }

    /// What figures for each transaction are divided by; None if none was counted.
    pub fn divisor(self) -> Option<u64> {
        Some(self.least).filter(|&least| least > 0)
    }

    /// `at least ` ahead of the number, and `at most ` ahead of what is divided by it, where there may be more.
    pub fn at_least(self) -> &'static str {
        match self.sure {
            Sure::AtLeast => "at least ",
            Sure::Exact | Sure::Unknown => "",
        }
    }

    /// See [`Count::at_least`].
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
        match self {
            Sure::Exact => "exact",
            Sure::AtLeast => "at_least",
            Sure::Unknown => "unknown",
        }
    }
}

/// `12,345`, `at least 12,345`.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.at_least(), grouped(self.least))
    }
}
