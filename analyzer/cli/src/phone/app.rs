// SPDX-License-Identifier: MIT OR Apache-2.0
//! An app on the phone: whether it exists, its user, and its start.

use anyhow::bail;
use mostrace_bundle::Packages;

use super::adb::Adb;
use super::root::Root;
use crate::{say, shell};

/// Android's list of apps.
const PACKAGES: &str = "/data/system/packages.list";
/// The least likeness of names of which one may stand for the other.
const ALIKE: f64 = 0.7;
/// The most names that are offered.
const MOST: usize = 3;

/// An installed app.
pub struct App {
    pub package: String,
    /// Its user, which other apps may share.
    pub uid: u32,
    /// True if it shares its user with no other app.
    pub is_alone: bool,
}

impl App {
    /// Finds the app on the phone.
    pub fn find(adb: &Adb, root: &Root, package: &str) -> anyhow::Result<App> {
        // The further fields are long.
        let list = adb.ask(&root.line(&format!("cut -d' ' -f1,2 {PACKAGES}")))?;
        let list = Packages::parse(list.as_bytes());
        let found = list.apps().find(|(_, name)| *name == package.as_bytes());
        if let Some((uid, _)) = found {
            return Ok(App {
                package: package.to_owned(),
                uid,
                is_alone: list.of_user(uid).is_none_or(|names| names.len() == 1),
            });
        }
        let names = list.apps().map(|(_, name)| String::from_utf8_lossy(name));
        let mut names: Vec<_> = names
            .map(|name| (likeness(package, &name), name.into_owned()))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .collect();
        names.sort_by(|a, b| b.0.total_cmp(&a.0));
        let names: Vec<_> = names.into_iter().take(MOST).map(|(_, name)| name).collect();
        match names.is_empty() {
            true => {
                bail!("{package}: no app of this phone (`adb shell pm list packages` lists them)")
            }
            false => bail!(
                "{package}: no app of this phone; the nearest: {}",
                names.join(", ")
            ),
        }
    }

    /// Ends all of the app's processes.
    pub fn stop(&self, adb: &Adb, root: &Root) -> anyhow::Result<()> {
        let line = format!("am force-stop {}", shell::plain(&self.package));
        adb.ask(&root.line(&line))?;
        Ok(())
    }

    /// Starts the app as the launcher does.
    pub fn start(&self, adb: &Adb, root: &Root) -> anyhow::Result<()> {
        let intent = "-a android.intent.action.MAIN -c android.intent.category.LAUNCHER";
        let line = format!("am start {intent} {}", shell::plain(&self.package));
        let said = adb.ask(&root.line(&line))?;
        // It ends well even if nothing was started.
        match said.lines().find(|line| line.contains("Error")) {
            Some(error) => bail!("{}: {error}", self.package),
            None => {
                say(&format!("{} started", self.package));
                Ok(())
            }
        }
    }
}

/// Returns how alike two names are. Apps are known by their last word, so that alone may be given.
fn likeness(wrong: &str, name: &str) -> f64 {
    let (wrong, name) = (wrong.to_lowercase(), name.to_lowercase());
    let last = name.rsplit('.').next().unwrap_or_default();
    strsim::jaro_winkler(&wrong, &name).max(strsim::jaro_winkler(&wrong, last))
}
