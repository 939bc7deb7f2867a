// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace doctor`.

use std::path::PathBuf;

use mostrace_capture::doctor::{Check, choice, examine, verdict};
use mostrace_trace::output::Output;

use crate::paint;

/// Show what can be captured on this machine, what is missing, and what that costs.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Examine this disk or partition too
    #[arg(short, long, value_name = "DEV")]
    device: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Examines the machine and prints the result.
pub fn run(args: &Doctor) -> anyhow::Result<()> {
    let checks = examine(args.device.as_deref());
    let mut out = Output::create(None)?;
    match args.json {
        true => out.page(&as_json(&checks)?)?,
        false => paint::put(&mut out, &as_text(&checks))?,
    }
    Ok(())
}

fn as_text(checks: &[Check]) -> String {
    let line = |c: &Check| {
        let mark = match c.ok {
            Some(true) => "ok",
            Some(false) => "no",
            None => "? ",
        };
        let cost = if c.cost.is_empty() {
            String::new()
        } else {
            format!("\n{:23}→ {}", "", c.cost)
        };
        format!("{mark}  {:<18} {}{cost}\n", c.what, c.found)
    };
    let lines: String = checks.iter().map(line).collect();
    format!(
        "{}\n\n{lines}auto takes: {}\n",
        verdict(checks),
        taken(checks)
    )
}

/// Returns which sources `auto` would take.
fn taken(checks: &[Check]) -> String {
    if checks
        .iter()
        .any(|c| c.what == "source bpf" && c.ok.is_none())
    {
        return "only root can tell".into();
    }
    let (events, entries) = choice(checks);
    let hint = if entries == "none" {
        " (record asks for --entries none then)"
    } else {
        ""
    };
    format!("events from {events}, entries from {entries}{hint}")
}

fn as_json(checks: &[Check]) -> anyhow::Result<String> {
    let (verdict, (events, entries)) = (verdict(checks), choice(checks));
    let checks: Vec<_> = checks
        .iter()
        .map(|c| serde_json::json!({"what": c.what, "ok": c.ok, "found": c.found, "cost": c.cost}))
        .collect();
    let all = serde_json::json!({"verdict": verdict, "events": events, "entries": entries, "checks": checks});
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}
