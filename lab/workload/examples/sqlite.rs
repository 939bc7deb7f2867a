// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one SQLite workload with settings given as JSON, and prints the outcome as JSON. Tests run it under strace.
//!
//! `sqlite '{"path": "/tmp/x.db", "journal": "wal", "transactions": 10}'`

use mostrace_workload::{Progress, Settings, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args()
        .nth(1)
        .ok_or("usage: sqlite SETTINGS-AS-JSON")?;
    let settings: Settings = serde_json::from_str(&text)?;
    println!(
        "{}",
        serde_json::to_string(&run(&settings, &Progress::default())?)?
    );
    Ok(())
}
