// SPDX-License-Identifier: MIT OR Apache-2.0
//! `replay --blocks TARGET`: makes the requests that reached a device again.

use std::path::{Path, PathBuf};

use anyhow::bail;
use mostrace_replay::Contents;
use mostrace_replay::blocks::{BlockTarget, Speed, play};
use mostrace_tables::export::Output;
use serde_json::json;

use super::requests::Requests;

/// The requests to make, and their target.
#[derive(clap::Args)]
pub struct BlocksArgs {
    /// Replay the requests that reached the device instead of the application's calls, on the device or file TARGET
    ///
    /// RECORDING is a bundle or the files of blktrace. Without --yes, TARGET is only checked.
    #[arg(long, value_name = "TARGET", conflicts_with_all = ["fs", "mkfs", "mount_options", "size", "scheduler",
          "max_sectors_kb", "within", "guest", "root", "output"])]
    pub blocks: Option<PathBuf>,
    /// Overwrite what TARGET holds; its name must be repeated here
    #[arg(long, value_name = "TARGET", requires = "blocks")]
    yes: Option<PathBuf>,
    /// Make the requests at this multiple of the recorded speed, such as 2 or 0.5
    #[arg(long, value_name = "FACTOR", requires = "blocks", conflicts_with = "fast", value_parser = factor)]
    speed: Option<f64>,
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err(format!("`{text}` is not a number above 0")),
    }
}

impl BlocksArgs {
    /// Replays `recording` on `target`, and prints the results.
    ///
    /// # Errors
    /// Returns an error if the recording cannot be read, or the target is in use or too small.
    pub fn run(
        &self,
        recording: &Path,
        target: &Path,
        fast: bool,
        contents: Contents,
        as_json: bool,
    ) -> anyhow::Result<()> {
        let requests = Requests::read(recording)?;
        for notice in &requests.notices {
            crate::say(&format!("note: {notice}"));
        }
        for (why, count) in &requests.left_out {
            crate::say(&format!("note: {count} requests are left out: {why}"));
        }
        if requests.all.is_empty() {
            bail!("{}: has no requests", recording.display());
        }
        let mut out = Output::create(None)?;
        let opened = BlockTarget::open(target, requests.end())?;
        match &self.yes {
            None => {
                let text = format!(
                    "{} requests up to byte {} would be made on {target}, and what it holds would be overwritten.\n\
                     Nothing was written; to do it, add --yes {target}\n",
                    requests.all.len(),
                    requests.end(),
                    target = target.display(),
                );
                return Ok(out.text(&text)?);
            }
            Some(yes) if yes != target => bail!(
                "--yes names {}, but --blocks names {}",
                yes.display(),
                target.display()
            ),
            Some(_) => {}
        }
        let speed = match fast {
            true => Speed::Fast,
            false => Speed::Times(self.speed.unwrap_or(1.0)),
        };
        let outcome = play(&requests.all, opened, speed, contents)?;
        match as_json {
            true => out.json(&json!({"blocks": outcome, "left_out": requests.left_out}))?,
            false => out.text(&format!("{outcome}\n"))?,
        }
        Ok(())
    }
}
