// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ladder: what was stored, what was passed to write(), and what the device got, each for one transaction if the headline
//! is about transactions.

use mostrace_bundle::Manifest;
use serde::Serialize;

use mostrace_trace::answer::Answer;
use mostrace_trace::sums::Totals;
use mostrace_trace::tally::sum;
use mostrace_trace::transactions::{Database, Transactions, are_calls_whole};

/// Bytes of the whole trace at each level.
#[derive(Debug, Serialize)]
pub(super) struct Ladder {
    /// What bytes are divided by: the number of transactions; None if they are the whole trace's.
    each: Option<u64>,
    /// What one of them is called.
    unit: &'static str,
    stored: Option<u64>,
    passed: Option<u64>,
    written: u64,
}

impl Ladder {
    /// Returns the levels. The headline decides which of them are known, so that no ratio is here that it denies.
    pub fn new(
        answer: &Answer,
        manifest: Option<&Manifest>,
        databases: &[Database],
        total: &Totals,
    ) -> Ladder {
        let headline = answer.headline.as_str();
        let transactions = Transactions::new(manifest, databases);
        let count = transactions.count;
        let is_each = headline.starts_with("Each of ") || headline.starts_with("1 ");
        let each = count.divisor().filter(|_| is_each && count.is_exact());
        let is_operation = headline
            .split([' ', ':'])
            .any(|word| word.starts_with("operation"));
        let stored = transactions
            .payload_bytes
            .filter(|bytes| *bytes > 0 && headline.contains(" what was stored"));
        let is_whole = are_calls_whole(manifest, databases);
        let says_passed = headline.contains(" what was passed to write()");
        let passed = || sum(databases.iter().map(|database| database.total().bytes));
        Ladder {
            each,
            unit: if is_operation {
                "operation"
            } else {
                "transaction"
            },
            stored,
            passed: (is_whole && says_passed)
                .then(passed)
                .filter(|bytes| *bytes > 0),
            written: total.write_bytes,
        }
    }
}
