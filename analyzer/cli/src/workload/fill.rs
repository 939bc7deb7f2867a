// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload fill`.

use std::fmt::Write as _;
use std::io::Write as _;

use mostrace_workload::{FillSettings, Filled, run_fill};

use super::report::watched;

/// Fill a volume, and show how that changes its latency
///
/// Fills the volume with files that are written in blocks of 4 KiB in a random order. Reports how long 4 KiB
/// writes, each with fdatasync(), took before, when the volume was full, and after fstrim. The files are
/// removed at the end.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Fill {
    #[command(flatten)]
    settings: FillSettings,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Characters of the longest bar.
const WIDTH: u64 = 40;

impl Fill {
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = &self.settings;
        let filled = watched(settings.steps()?, true, |progress| {
            run_fill(settings, progress)
        })?;
        let text = match self.json {
            true => serde_json::to_string_pretty(&filled)?,
            false => text(&filled)?,
        };
        Ok(writeln!(std::io::stdout(), "{text}")?)
    }
}

fn text(filled: &Filled) -> Result<String, std::fmt::Error> {
    let [before, after] = filled.used_percent;
    let mut text = format!(
        "{} bytes written at random: {before} % of the volume were in use, and then {after} %\nfstrim: {}\n",
        filled.filled_bytes, filled.fstrim
    );
    let phases = [
        ("before", filled.before),
        ("full", filled.after),
        ("after fstrim", filled.after_fstrim),
    ];
    let most = phases.iter().filter_map(|(_, l)| l.map(|l| l.p99_ns)).max();
    for (name, latency) in phases {
        let Some(latency) = latency else { continue };
        let shown = [
            ("p50", latency.p50_ns),
            ("p90", latency.p90_ns),
            ("p99", latency.p99_ns),
        ];
        for (what, ns) in shown {
            let length = ns.saturating_mul(WIDTH).div_ceil(most.unwrap_or(1).max(1));
            let bar = "█".repeat(usize::try_from(length).unwrap_or(0));
            write!(
                text,
                "\n{name:<13} {what} {:>9.3} ms {bar}",
                ns as f64 / 1e6
            )?;
        }
    }
    Ok(text)
}
