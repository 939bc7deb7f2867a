// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays a MobiGen [script](mostrace_replay::mobigen), which lists the system calls of an application.
//!
//! Every line makes one call of its kind, and its result is compared with that in the application. Mobibench works on
//! the original paths, as root. Here every path lies below the given folder, in which [the files that existed
//! before](before) are made first, so a script from a stranger does no harm.

mod before;
mod files;
mod player;
mod tally;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use files::Files;
use player::Player;
use tally::Tally;

use mostrace_replay::mobigen::{Line, parse};

use crate::measure::{Progress, in_threads, timed};
use crate::outcome::{Outcome, Task};
use crate::{Error, Result};

/// Settings of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobigenSettings {
    /// The script.
    pub script: PathBuf,
    /// The folder that replaces `/`.
    pub path: PathBuf,
    /// True to wait until a call's time has come; otherwise each thread makes its calls without pauses.
    pub timing: bool,
}

/// Replays a script, each of its threads in a thread of its own; `progress` counts lines. Calls that return something
/// else than in the application are counted.
///
/// # Errors
/// Returns an error if the script cannot be read or has a malformed line, or if the folder cannot be written.
pub fn run_mobigen(settings: &MobigenSettings, progress: &Progress) -> Result<Outcome> {
    let (setup, (players, files)) = timed(|| prepare(settings))?;
    let began = Instant::now();
    let (players, measured) = in_threads(players, progress, |player, stopwatch| {
        for line in std::mem::take(&mut player.lines) {
            if settings.timing {
                std::thread::sleep(line.at.saturating_sub(began.elapsed()));
            }
            stopwatch.time(|| {
                player.play(&line, &files);
                Ok(())
            })?;
        }
        Ok(())
    })?;
    let (finish, ()) = timed(|| {
        drop(files);
        Ok(())
    })?;
    let mut tally = Tally::default();
    players.into_iter().for_each(|p| tally.merge(p.tally));
    let bytes = measured.phase.written.map_or(0, |written| written.bytes);
    let task = task(settings, &tally, bytes);
    Ok(Outcome::new(task, [setup, finish], measured))
}

/// Returns a player for each of the script's threads, and the folder as it was before the application began.
fn prepare(settings: &MobigenSettings) -> Result<(Vec<Player>, Files)> {
    let text = fs::read_to_string(&settings.script).map_err(Error::io(&settings.script))?;
    let lines = parse(&settings.script, &text)?;
    fs::create_dir_all(&settings.path).map_err(Error::io(&settings.path))?;
    before::make(&settings.path, &lines)?;
    let mut threads: BTreeMap<u32, Vec<Line>> = BTreeMap::new();
    for line in lines {
        threads.entry(line.thread).or_default().push(line);
    }
    let players = threads.into_iter();
    let players = players.map(|(thread, lines)| Player::new(thread, lines));
    Ok((players.collect(), Files::new(&settings.path)?))
}

fn task(settings: &MobigenSettings, tally: &Tally, payload_bytes: u64) -> Task {
    let told = |path: &Path| path.display().to_string();
    let all = tally.total();
    let mut of_it = tally.settings();
    of_it.extend([
        ("script".to_owned(), told(&settings.script)),
        ("path".to_owned(), told(&settings.path)),
        ("timing".to_owned(), settings.timing.to_string()),
        ("other_result".to_owned(), all.other_result.to_string()),
    ]);
    Task {
        workload: "mobigen",
        heading: format!(
            "{}: {} calls, of which {} returned something else than in the application\n{tally}",
            settings.script.display(),
            all.made,
            all.other_result
        ),
        payload_bytes,
        count: all.made,
        settings: of_it,
    }
}
