// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changed bundles, read by every verb under limits: no panic, no hang, no memory beyond a bound, at most one line of error,
//! the same sums in every table, and no deceptive character in the output.
//!
//! It runs for a minute, with `MOSTRACE_LONG=1` for an hour. Of the samples and of 40 changed bundles, in a long run of 1,000,
//! another program computes every number of the finding from the rows. A fault leaves its bundle, and says how to repeat it:
//!
//! | variable | what |
//! | --- | --- |
//! | `MOSTRACE_MUTATIONS` | the number of runs of the program, instead of a time |
//! | `MOSTRACE_MUTATIONS_SEED` | a seed other than 1 |
//! | `MOSTRACE_MUTATIONS_BUNDLE` | only the bundle of this number |

use crate::mutate;

use test_support::{Need, Suite, at_once, tests};

pub fn suite() -> Suite {
    at_once(tests![
        whatever_was_changed_is_read_or_refused needs [Need::Tool("time", "time")],
        every_number_of_the_finding_is_of_the_rows needs [Need::Tool("python3", "python3")],
    ])
}

fn whatever_was_changed_is_read_or_refused() {
    let drive = mutate::Drive::of_environment();
    let report = drive.run();
    println!("{report}");
    assert!(report.runs > 0, "nothing was run");
    assert!(report.faults.is_empty(), "{report}");
}

fn every_number_of_the_finding_is_of_the_rows() {
    let report = mutate::Drive::of_environment().recounting().run();
    println!("{report}");
    assert!(report.faults.is_empty(), "{report}");
    assert!(report.ends("same") * 3 > report.runs, "{report}");
}
