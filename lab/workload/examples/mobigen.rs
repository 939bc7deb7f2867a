// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays a MobiGen script below a folder, without waiting, and prints the outcome as JSON. Tests run it under strace.
//!
//! `mobigen SCRIPT FOLDER`

use std::path::PathBuf;

use mostrace_workload::{MobigenSettings, Progress, run_mobigen};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(script), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: mobigen SCRIPT FOLDER".into());
    };
    let settings = MobigenSettings {
        script,
        path,
        timing: false,
    };
    let outcome = run_mobigen(&settings, &Progress::default())?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}
