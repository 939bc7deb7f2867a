// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the capture, which need root and a tracer.

mod captured;
mod recorded;

mod capture;
mod causes;
mod changes;
mod flushes;
mod homes;
mod kernel_entries;
mod late;
mod live_files;
mod operations;
mod segments;
mod strangers;
mod verified;

fn main() -> std::process::ExitCode {
    test_support::run(test_support::suites![
        capture,
        causes,
        changes,
        flushes,
        homes,
        kernel_entries,
        late,
        live_files,
        operations,
        segments,
        strangers,
        verified,
    ])
}
