// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace doctor` of a build that cannot capture.

/// Say what can be captured on this machine, what is missing, and what that costs.
#[derive(Debug, clap::Args)]
pub struct Doctor {}

/// Says that this build cannot capture at all.
///
/// # Errors
/// Always.
pub fn run(_: &Doctor) -> anyhow::Result<()> {
    anyhow::bail!("doctor: nothing can be captured: built without the feature `record`")
}
