// SPDX-License-Identifier: MIT OR Apache-2.0
//! `replay --guest KERNEL`: replays in an emulated machine, on filesystems that the kernel here may lack.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use mostrace_bundle::temporary::TempFolder;
use mostrace_bundle::{Bundle, archive};
use mostrace_tables::export::operations;

use super::{Replay, Replayed};
use crate::guest::{FILES, Job, OUT};
use crate::keep::keep;

/// The recording's name among the guest's files.
const RECORDING: &str = "recording";

/// Replays on all filesystems in one machine, and keeps the recordings in `folder`.
///
/// # Errors
/// Returns an error if the machine does not boot or a replay fails.
pub fn replay(args: &Replay, kernel: &str, folder: &Path) -> anyhow::Result<Vec<Replayed>> {
    let aside = TempFolder::new()?;
    let job = Job {
        kernel,
        script: script(args)?,
        programs: Vec::new(),
        files: recordings(args, aside.path())?,
    };
    let left = job.run()?;
    let replayed = args.fs.iter().map(|kind| {
        let name = kind.name();
        let path = folder.join(format!("{name}.most.tar.zst"));
        keep(&left.join(format!("{name}.most")), &path)?;
        let result = left.join(format!("{name}.json"));
        let text = fs::read(&result).with_context(|| result.display().to_string())?;
        Ok(Replayed {
            name: name.to_owned(),
            path,
            told: serde_json::from_slice(&text)?,
        })
    });
    replayed.collect()
}

/// Returns the files with the operations and their names in the guest, without what the guest does not need.
fn recordings(args: &Replay, aside: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    if !args.source.is_bundle()? {
        let paths = args.source.absolute()?;
        return Ok(names(&paths).into_iter().zip(paths).collect());
    }
    let folder = aside.join("operations.most");
    operations(&Bundle::open(args.source.first())?, &folder, None)?;
    let packed = aside.join("operations.most.tar.zst");
    archive::pack(&folder, &packed)?;
    Ok(vec![(RECORDING.to_owned(), packed)])
}

/// Returns the names of strace's files in the guest. With -ff, a name ends with the number of the thread.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let names = paths.iter().enumerate().map(|(nth, path)| {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        format!("{RECORDING}{nth}.{ending}")
    });
    names.collect()
}

/// Returns the guest's script: each filesystem is prepared, and the replay on it measured.
fn script(args: &Replay) -> anyhow::Result<String> {
    let names = match args.source.is_bundle()? {
        true => vec![RECORDING.to_owned()],
        false => names(&args.source.absolute()?),
    };
    let recordings: Vec<PathBuf> = names
        .iter()
        .map(|name| Path::new(FILES).join(name))
        .collect();
    let mut words = vec!["mostrace".into(), "workload".into(), "replay".into()];
    words.extend(args.source.words_for(&recordings)?);
    words.extend(args.how.words());
    let words = words.iter().map(|word| word.to_string_lossy());
    let replay = crate::shell::line(words);
    let mut script = String::new();
    for kind in &args.fs {
        let name = kind.name();
        let mut options = vec![format!("--fs={name}")];
        options.extend(args.fresh.words());
        options.push(format!("--before={replay} --prepare"));
        let options = crate::shell::line(options);
        writeln!(
            script,
            "mostrace measure {options} --empty -q -o {OUT}/{name}.most -- {replay} --keep --outcome {OUT}/{name}.json \
             >/dev/null 2>said || fail \"$(cat said)\""
        )?;
    }
    Ok(script)
}
