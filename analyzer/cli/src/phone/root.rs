// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a line is run as root on the phone.

use std::time::Duration;

use anyhow::bail;

use super::adb::{Adb, Answer};
use crate::{say, shell};

/// The time after which a su that says nothing is taken to wait for a person.
const PROMPT: Duration = Duration::from_secs(2);
/// The time in which su tells whose it is.
const VERSION: Duration = Duration::from_secs(5);

/// The way in which a line is run as root.
pub enum Root {
    /// adbd is root: `adb root`.
    Adbd,
    /// `su -c`, as Magisk, KernelSU and APatch have it.
    Su,
    /// `su 0`, as Android's developer builds have it.
    SuZero,
}

impl Root {
    /// Finds the way, and says which it is. A su that asks a person is waited for.
    pub fn find(adb: &Adb, patience: Duration) -> anyhow::Result<Root> {
        if adb.ask("id -u")? == "0" {
            say("root: adb itself (adb root)");
            return Ok(Root::Adbd);
        }
        let mut said = Vec::new();
        for (root, name) in [(Root::Su, "su -c"), (Root::SuZero, "su 0")] {
            match asked(adb, &root.line("id -u"), patience)? {
                Answer::Said(id) if id == "0" => {
                    let version = root.version(adb);
                    say(&format!("root: {name}{version}"));
                    return Ok(root);
                }
                Answer::Said(other) => said.push(format!("{name}: user {other}, not root")),
                Answer::Failed(why) => said.push(format!("{name}: {why}")),
                Answer::Silent => bail!(
                    "su did not answer within {} s: unlock the phone, and allow `Shell` in the prompt or in the root manager's app",
                    patience.as_secs()
                ),
            }
        }
        bail!(
            "the phone gives no root ({}): allow `Shell` in the root manager's app (Magisk, KernelSU, APatch), or run `adb root` on a \
             developer build",
            said.join("; ")
        )
    }

    /// Returns whose su it is, in its own words.
    fn version(&self, adb: &Adb) -> String {
        match self {
            Root::Su => match adb.run(adb.shell("su -v"), "su -v", Some(VERSION)) {
                Ok(Answer::Said(version)) if !version.is_empty() => {
                    format!(" ({})", version.lines().next().unwrap_or_default())
                }
                _ => String::new(),
            },
            Root::Adbd | Root::SuZero => String::new(),
        }
    }

    /// Returns the line that the phone's shell runs.
    pub fn line(&self, line: &str) -> String {
        match self {
            Root::Adbd => line.to_owned(),
            Root::Su => format!("su -c {}", shell::plain(line)),
            Root::SuZero => format!("su 0 sh -c {}", shell::plain(line)),
        }
    }
}

/// Runs the line; says so if a person has to answer.
fn asked(adb: &Adb, line: &str, patience: Duration) -> anyhow::Result<Answer> {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || tell.send(adb.run(adb.shell(line), "su", Some(patience))));
        if let Ok(answer) = told.recv_timeout(PROMPT.min(patience)) {
            return answer;
        }
        say("su has not answered yet: the phone may be asking for permission");
        told.recv()?
    })
}
