// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace doctor` in a build that cannot capture.

/// Show what can be captured on this machine, what is missing, and what that costs.
#[derive(Debug, clap::Args)]
pub struct Doctor {}

/// Reports that this build cannot capture at all.
///
/// # Errors
/// Always returns an error.
pub fn run(_: &Doctor) -> anyhow::Result<()> {
    anyhow::bail!("doctor: nothing can be captured: built without the feature `record`")
}
