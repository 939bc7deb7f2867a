// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace doctor` where nothing can be captured.

/// Show what can be captured on this machine, what is missing, and what that costs.
#[derive(Debug, clap::Args)]
pub struct Doctor {}

/// Reports that this system cannot capture at all.
pub fn run(_: &Doctor) -> anyhow::Result<()> {
    anyhow::bail!("doctor: only Linux can capture")
}
