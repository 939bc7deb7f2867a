// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches settings that must not change while a trace runs, because somebody else may change them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::error::{Result, read_line};

const EVERY: Duration = Duration::from_secs(1);

/// The watched settings.
#[derive(Debug)]
pub(crate) struct Watch {
    settings: Vec<(PathBuf, String)>,
    /// The first other value that each changed setting was seen to have.
    changed: BTreeMap<PathBuf, String>,
    checked: Instant,
}

impl Watch {
    /// Watches the files from now on.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn new(files: impl IntoIterator<Item = PathBuf>) -> Result<Watch> {
        let settings = files.into_iter().map(|file| {
            let text = read_line(&file)?;
            Ok((file, text))
        });
        Ok(Watch {
            settings: settings.collect::<Result<_>>()?,
            changed: BTreeMap::new(),
            checked: Instant::now(),
        })
    }

    /// Checks the settings if some time has passed since the last check; this is called often.
    pub fn poll(&mut self) {
        if self.checked.elapsed() >= EVERY {
            self.check();
        }
    }

    /// Checks every setting.
    pub fn check(&mut self) {
        self.checked = Instant::now();
        for (file, set) in &self.settings {
            let now = read_line(file).unwrap_or_else(|e| e.to_string());
            if now != *set {
                self.changed.entry(file.clone()).or_insert(now);
            }
        }
    }

    /// Returns the changes that were seen, one line each.
    pub fn changes(&self) -> Vec<String> {
        let line = |(file, set): &(PathBuf, String)| {
            let now = self.changed.get(file)?;
            Some(format!(
                "{} was set to `{now}`, from `{set}`",
                file.display()
            ))
        };
        self.settings.iter().filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stays_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (on, mask) = (file("on", "1\n"), file("mask", "read,write\n"));
        let mut watch = Watch::new([on.clone(), mask]).unwrap();
        watch.check();
        assert!(watch.changes().is_empty());
        file("on", "0\n");
        watch.check();
        file("on", "1\n");
        watch.check();
        let expected = format!("{} was set to `0`, from `1`", on.display());
        assert_eq!(watch.changes(), [expected]);
        assert!(Watch::new([dir.path().join("none")]).is_err());
    }
}
