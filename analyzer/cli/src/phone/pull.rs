// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace phone pull`: fetches what a phone recorded.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use indicatif::DecimalBytes;
use mostrace_bundle::segments;
use mostrace_trace::reading::Progress;

use super::output::Output;
use super::there::{self, Doing, Found, State, There};
use crate::bar::Bar;
use crate::{say, shell};

/// The name of what is fetched, unless another is given.
pub const BUNDLE: &str = "phone.most.tar.zst";
const LEDGER: &str = "phone-ledger";

/// Fetch what a phone recorded: after `start` and `stop`, or when it was disconnected while `record` ran.
#[derive(Debug, clap::Args)]
pub struct Pull {
    /// The bundle to write on this machine, NAME.most.tar.zst; for a ledger, the folder
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Remove it from the phone instead
    #[arg(long, conflicts_with = "output")]
    discard: bool,
}

impl Pull {
    pub fn run(&self, there: &There<'_>) -> anyhow::Result<()> {
        let state = there.state()?;
        if state.runs && (self.discard || state.doing == Doing::Recording) {
            bail!("the phone still records: `mostrace phone stop` ends it");
        }
        if self.discard {
            return there.remove();
        }
        if state.doing == Doing::Ledger {
            let folder = self.output.clone().unwrap_or_else(|| LEDGER.into());
            return fetch_ledger(there, &state, &folder);
        }
        let given = self.output.clone().unwrap_or_else(|| BUNDLE.into());
        let output = archive(&given.to_string_lossy());
        let output = output.map_err(crate::usage::UsageError)?;
        check_free(&output)?;
        fetch_bundles(there, &output)?;
        next(&output);
        Ok(())
    }
}

/// Checks the name of a bundle that comes from a phone.
pub fn archive(text: &str) -> Result<PathBuf, String> {
    let name = Path::new(text).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    match name.strip_suffix(".most.tar.zst") {
        Some(name) if !name.is_empty() => Ok(text.into()),
        _ => {
            let stem = text.trim_end_matches('/').trim_end_matches(".most");
            Err(format!(
                "a phone's bundle is one file: name it {stem}.most.tar.zst"
            ))
        }
    }
}

/// Fails if the file, or a segment of its name, exists or cannot be made.
pub fn check_free(output: &Path) -> anyhow::Result<()> {
    drop(Output::create(output)?);
    let parent = output.parent().unwrap_or(Path::new(""));
    let shown = || parent.display().to_string();
    match segments::find(output).with_context(shown)?.first() {
        Some(first) => bail!("{}: exists, and is not overwritten", first.display()),
        None => Ok(()),
    }
}

/// Waits for the recorder's end, fetches what it recorded, and removes everything from the phone.
pub fn fetch_bundles(there: &There<'_>, output: &Path) -> anyhow::Result<()> {
    if there.state()?.runs {
        say("the recorder packs what it recorded");
        there.wait()?;
    }
    let state = there.state()?;
    if state.files.is_empty() {
        bail!("the phone has no recording");
    }
    for file in &state.files {
        let number = there::number_of(file);
        // A recording in one segment needs no number.
        let number = number.filter(|n| *n != 1 || state.files.len() > 1);
        let path = number.map_or_else(|| output.to_owned(), |n| segments::segment(output, n));
        fetch(there, file, &path)?;
    }
    there.remove()
}

/// Fetches the days of a ledger into a new folder. The phone goes on with it if it still does.
fn fetch_ledger(there: &There<'_>, state: &State, folder: &Path) -> anyhow::Result<()> {
    if state.files.is_empty() {
        bail!(
            "the ledger has no day yet; an hour is added when it is over, or by `mostrace phone stop`"
        );
    }
    std::fs::create_dir(folder).with_context(|| folder.display().to_string())?;
    for file in &state.files {
        let name = Path::new(&file.name).file_name().unwrap_or_default();
        fetch(there, file, &folder.join(name))?;
    }
    if !state.runs {
        there.remove()?;
    }
    let folder = shell::plain(&folder.display().to_string());
    say(&format!("next: mostrace ledger show {folder} --by package"));
    Ok(())
}

fn fetch(there: &There<'_>, file: &Found, path: &Path) -> anyhow::Result<()> {
    let mut output = Output::create(path)?;
    let bar = Bar::new();
    let at = |done| {
        bar.at(Progress {
            step: "pulling",
            done,
            total: file.bytes,
        });
    };
    let shown = || path.display().to_string();
    there
        .fetch(file, &mut output.file, at)
        .with_context(shown)?;
    output.finish()?;
    say(&format!("{}: {}", path.display(), DecimalBytes(file.bytes)));
    Ok(())
}

/// Says what to do with the bundle.
pub fn next(output: &Path) {
    let path = shell::plain(&output.display().to_string());
    say(&format!("next: mostrace analyze {path}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phones_bundle_is_an_archive() {
        for good in ["x.most.tar.zst", "a/b.c.most.tar.zst"] {
            assert_eq!(archive(good), Ok(good.into()));
        }
        for (wrong, right) in [
            ("x.most", "x.most.tar.zst"),
            ("a/x", "a/x.most.tar.zst"),
            ("x.most/", "x.most.tar.zst"),
        ] {
            let said = archive(wrong).unwrap_err();
            assert!(said.ends_with(&format!("name it {right}")), "{said}");
        }
    }
}
