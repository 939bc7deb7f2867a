// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures what a program costs: processor time and peak memory of the process itself, as the kernel accounts for them when
//! it has ended.
//!
//! The peak of a process is at least what its parent had when it was started, so each run has a small process in between:
//! [`run_as_told`] at the beginning of `main` is that process.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4;

/// The argument that makes the benchmark run what follows it.
const RUN: &str = "--cost-of";

/// Processor time in user and system mode, wall time, and peak memory of a run.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub user: Duration,
    pub system: Duration,
    pub elapsed: Duration,
    pub peak_kib: u64,
}

impl Cost {
    /// Returns user and system time, s.
    pub fn cpu(&self) -> f64 {
        (self.user + self.system).as_secs_f64()
    }

    /// Returns the least cost of several runs of a program without its output: disturbances only add to it.
    pub fn of(
        folder: &Path,
        runs: u32,
        program: &str,
        args: &[&str],
    ) -> Result<Self, Box<dyn Error>> {
        let mut least = run(folder, program, args)?;
        for _ in 1..runs {
            let cost = run(folder, program, args)?;
            if cost.cpu() < least.cpu() {
                least = cost;
            }
        }
        Ok(least)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:6.2} s user {:5.2} s sys {:6.2} s elapsed {:5} MiB peak",
            self.user.as_secs_f64(),
            self.system.as_secs_f64(),
            self.elapsed.as_secs_f64(),
            self.peak_kib.div_ceil(1024)
        )
    }
}

fn run(folder: &Path, program: &str, args: &[&str]) -> Result<Cost, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .current_dir(folder)
        .args([RUN, program])
        .args(args)
        .output()?;
    if !output.status.success() {
        return Err(format!(
            "{program} {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )
        .into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let mut next = || {
        numbers
            .next()
            .ok_or("no cost told")?
            .map_err(Box::<dyn Error>::from)
    };
    Ok(Cost {
        user: Duration::from_micros(next()?),
        system: Duration::from_micros(next()?),
        elapsed: Duration::from_micros(next()?),
        peak_kib: next()?,
    })
}

/// Runs a program and reports its cost if this process was started for that; then `main` must end.
pub fn run_as_told() -> Result<bool, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() != Some(RUN) {
        return Ok(false);
    }
    let program = args.next().ok_or("no program")?;
    let start = Instant::now();
    let mut child = Command::new(&program)
        .args(args)
        .stdout(Stdio::null())
        .spawn()?;
    let ended = child.wait4()?;
    let elapsed = start.elapsed();
    if !ended.status.success() {
        return Err(format!("{program}: {}", ended.status).into());
    }
    let usage = ended.rusage;
    println!(
        "{} {} {} {}",
        usage.utime.as_micros(),
        usage.stime.as_micros(),
        elapsed.as_micros(),
        usage.maxrss / 1024
    );
    Ok(true)
}
