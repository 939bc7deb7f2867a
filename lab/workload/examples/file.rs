// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one workload on files with settings given as JSON, and prints the outcome as JSON. Tests run it under strace.
//!
//! `file '{"path": "/tmp", "pattern": "append", "mode": "fsync"}'`

use mostrace_workload::{FileSettings, Progress, run_file};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args()
        .nth(1)
        .ok_or("usage: file SETTINGS-AS-JSON")?;
    let settings: FileSettings = serde_json::from_str(&text)?;
    let outcome = run_file(&settings, &Progress::default())?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}
