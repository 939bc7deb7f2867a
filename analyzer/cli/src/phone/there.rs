// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is on the phone: the recorder, what it recorded, and the process that records.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::DecimalBytes;
use mostrace_bundle::manifest::PROGRESS;
use mostrace_bundle::segments;

use super::adb::Adb;
use super::root::Root;
use crate::{say, shell};

/// The directory on the phone that holds everything; programs can be run from there.
pub const FOLDER: &str = "/data/local/tmp/mostrace";
/// The recording's name, of which each segment adds its number.
const BUNDLE: &str = "run.most.tar.zst";
/// The folder of a ledger, below that.
const LEDGER: &str = "ledger";
/// Succeeds if the recorder runs. Its process ID may belong to another program by now, and then has another name.
const RUNS: &str = "grep -q mostrace /proc/$(cat pid 2>/dev/null)/comm 2>/dev/null";
/// The time in which a recorder begins.
const BEGINS: Duration = Duration::from_secs(30);
/// What the recorder prints for people who work on the phone itself.
const ADVICE: [&str; 2] = ["mostrace: next:", "to look: mostrace ledger show"];

/// A phone that gives root.
pub struct There<'a> {
    pub adb: &'a Adb,
    pub root: &'a Root,
}

/// What the process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It records as long as the desktop is there.
    Attached,
    /// It records, with or without the desktop.
    Recording,
    /// It keeps a ledger.
    Ledger,
}

/// A file on the phone.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    pub bytes: u64,
}

/// What is there.
pub struct State {
    pub runs: bool,
    pub doing: Doing,
    /// What can be fetched, in its order.
    pub files: Vec<Found>,
}

impl There<'_> {
    /// Runs a line as root in the folder.
    fn ask(&self, line: &str) -> anyhow::Result<String> {
        self.adb.ask(&self.root.line(&in_folder(line)))
    }

    /// Looks what is there.
    pub fn state(&self) -> anyhow::Result<State> {
        let line = format!(
            "{{ {RUNS} && echo runs || echo ended; }}; cat doing 2>/dev/null || echo attached; \
             for f in *.tar.zst {LEDGER}/*.parquet; do [ -f \"$f\" ] && wc -c <\"$f\" && echo \"$f\"; done; true"
        );
        let said = self.adb.ask(
            &self
                .root
                .line(&format!("[ -d {FOLDER} ] || exit 0; cd {FOLDER}; {line}")),
        )?;
        let mut lines = said.lines();
        let runs = lines.next() == Some("runs");
        let doing = match lines.next() {
            Some("recording") => Doing::Recording,
            Some("ledger") => Doing::Ledger,
            _ => Doing::Attached,
        };
        let mut files = Vec::new();
        while let (Some(bytes), Some(name)) = (lines.next(), lines.next()) {
            let bytes = bytes.trim().parse();
            let bytes = bytes.with_context(|| format!("{name}: the phone gives no size"))?;
            files.extend(file_of(name, doing).map(|name| Found { name, bytes }));
        }
        Ok(State { runs, doing, files })
    }

    /// Fails if something records already.
    pub fn check_free(&self) -> anyhow::Result<()> {
        let state = self.state()?;
        match (state.runs, state.files.is_empty()) {
            (true, _) => bail!(
                "the phone records already: `mostrace phone status` says more, `mostrace phone stop` ends it"
            ),
            (false, false) => bail!(
                "the phone has a recording that was not fetched: `mostrace phone pull` fetches it, `mostrace phone pull --discard` \
                 removes it"
            ),
            (false, true) => Ok(()),
        }
    }

    /// Copies the recorder there.
    pub fn push(&self, recorder: Option<&Path>, with_tables: bool) -> anyhow::Result<()> {
        let recorder = match recorder {
            Some(file) => file.to_owned(),
            None => recorder_for(&self.adb.ask("uname -m")?, with_tables)?,
        };
        let size = std::fs::metadata(&recorder)
            .with_context(|| recorder.display().to_string())?
            .len();
        say(&format!(
            "pushing {} ({})",
            recorder.display(),
            DecimalBytes(size)
        ));
        self.adb.ask(&format!("mkdir -p {FOLDER}"))?;
        self.adb.push(&recorder, &program())?;
        self.adb.ask(&format!("chmod 755 {}", program()))?;
        Ok(())
    }

    /// Returns the line that records in the foreground.
    pub fn attached(&self, words: &[String]) -> String {
        let words = quoted(words);
        self.root.line(&in_folder(&format!(
            "rm -f run.* doing && echo $$ >pid && exec {words}"
        )))
    }

    /// Starts a process in a session of its own, which goes on when the phone is disconnected. Returns what it said.
    pub fn start(&self, doing: Doing, words: &[String]) -> anyhow::Result<String> {
        let name = match doing {
            Doing::Ledger => "ledger",
            Doing::Recording | Doing::Attached => "recording",
        };
        let process = format!("echo $$ >pid; exec {}", quoted(words));
        let looks = BEGINS.as_secs() * 5;
        // The log tells that it has begun; if it ends before, why.
        let begun = format!("grep -q '^{PROGRESS}' log 2>/dev/null");
        self.ask(&format!(
            "rm -f run.* log pid; echo {name} >doing; setsid sh -c {} </dev/null >log 2>&1 & \
             i=0; while [ $i -lt {looks} ] && ! {begun} && {{ [ $i -lt 10 ] || {RUNS}; }}; do sleep 0.2; i=$((i+1)); done; \
             cat log; {begun}",
            shell::plain(&process)
        ))
        .map(|log| without_advice(&log))
        .or_else(|_| {
            let log = self.ask(&format!("{RUNS} && kill -KILL $(cat pid); cat log"));
            let log = log.unwrap_or_default();
            self.remove()?;
            bail!("not started: {}", last_of(&log))
        })
    }

    /// Asks the process for its progress.
    pub fn progress(&self) -> anyhow::Result<String> {
        let log = self.ask("kill -USR1 $(cat pid); sleep 0.5; cat log")?;
        let mut lines = log.lines().filter_map(|line| line.strip_prefix(PROGRESS));
        Ok(lines.next_back().unwrap_or("says nothing").to_owned())
    }

    /// Returns what the ledger says about itself.
    pub fn ledger_status(&self) -> anyhow::Result<String> {
        self.ask(&format!("./mostrace ledger status {LEDGER}"))
    }

    /// Asks the process to end, as Ctrl-C there would.
    pub fn interrupt(&self) -> anyhow::Result<()> {
        self.ask("kill -INT $(cat pid)").map(drop)
    }

    /// Waits until the process has ended.
    pub fn wait(&self) -> anyhow::Result<()> {
        let line = in_folder(&format!("while {RUNS}; do sleep 0.2; done"));
        self.adb.wait(&self.root.line(&line)).map(drop)
    }

    /// Returns what the process printed.
    pub fn log(&self) -> anyhow::Result<String> {
        Ok(without_advice(&self.ask("cat log 2>/dev/null; true")?))
    }

    /// Copies a file of the folder; only root can read it, so adb pull could not.
    pub fn fetch(
        &self,
        file: &Found,
        to: &mut impl std::io::Write,
        at: impl Fn(u64),
    ) -> anyhow::Result<()> {
        let line = format!("cat {FOLDER}/{}", file.name);
        self.adb.fetch(&self.root.line(&line), file.bytes, to, at)
    }

    /// Removes everything.
    pub fn remove(&self) -> anyhow::Result<()> {
        let line = self.root.line(&format!("rm -rf {FOLDER}"));
        self.adb.ask(&line).map(drop)
    }

    /// Returns the phone's model; empty if it has none.
    pub fn model(&self) -> String {
        let model = self.adb.ask("getprop ro.product.model");
        let model = model.unwrap_or_default();
        model.lines().next().unwrap_or_default().to_owned()
    }

    /// Returns how full the battery is, and whether it is being charged; None if the phone does not say.
    pub fn battery(&self) -> Option<String> {
        let said = self.adb.ask("dumpsys battery").ok()?;
        let of = |name: &str| {
            let mut lines = said
                .lines()
                .filter_map(|line| line.trim().strip_prefix(name));
            lines.next().map(str::trim)
        };
        let level: u8 = of("level:")?.parse().ok()?;
        let is_powered = ["AC powered:", "USB powered:", "Wireless powered:"]
            .into_iter()
            .any(|name| of(name) == Some("true"));
        let how = if is_powered {
            "on power"
        } else {
            "discharging"
        };
        Some(format!("battery {level} %, {how}"))
    }
}

fn in_folder(line: &str) -> String {
    format!("cd {FOLDER} && {line}")
}

/// Returns the path of the recorder there.
pub fn program() -> String {
    format!("{FOLDER}/mostrace")
}

/// Returns the path of the recording there.
pub fn recording() -> String {
    format!("{FOLDER}/{BUNDLE}")
}

/// Returns the path of the ledger there.
pub fn ledger() -> String {
    format!("{FOLDER}/{LEDGER}")
}

/// Returns the name if what the phone lists can be a file of ours: its name goes into a line and becomes a file here.
fn file_of(name: &str, doing: Doing) -> Option<String> {
    let is_ours = match doing {
        Doing::Ledger => name
            .strip_prefix(LEDGER)
            .and_then(|name| name.strip_prefix('/'))
            .is_some_and(is_day),
        Doing::Attached | Doing::Recording => {
            name == BUNDLE || segments::number(Path::new(BUNDLE), name).is_some()
        }
    };
    is_ours.then(|| name.to_owned())
}

fn is_day(name: &str) -> bool {
    let day = name.strip_suffix(".parquet").unwrap_or_default();
    day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Returns the number of the segment; None for a recording in one piece.
pub fn number_of(file: &Found) -> Option<u32> {
    segments::number(Path::new(BUNDLE), &file.name)
}

/// Returns the log without progress, and without what is advice only there.
fn without_advice(log: &str) -> String {
    let lines = log.lines().filter(|line| !is_advice(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns true for a line that is of no use here.
pub fn is_advice(line: &str) -> bool {
    line.starts_with(PROGRESS) || ADVICE.iter().any(|advice| line.contains(advice))
}

/// Returns the last line that says something.
fn last_of(log: &str) -> String {
    let mut lines = log.lines().rev().filter(|line| !is_advice(line));
    let last = lines.find(|line| !line.trim().is_empty());
    let last = last.unwrap_or("the recorder ended without a message");
    last.strip_prefix("mostrace: ").unwrap_or(last).to_owned()
}

/// Quotes words for the phone's shell.
fn quoted(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| shell::plain(word)).collect();
    words.join(" ")
}

/// Returns the recorder for a machine (`uname -m`), which lies beside this program or one directory above, where `make
/// phone` leaves it; that of a release has another name. A ledger needs the program with tables.
fn recorder_for(machine: &str, with_tables: bool) -> anyhow::Result<PathBuf> {
    let (name, makes) = match (machine, with_tables) {
        ("aarch64", true) => ("mostrace-analyzer-aarch64", "scripts/analyzer.sh"),
        ("aarch64", false) => ("mostrace-aarch64", "make phone"),
        ("armv7l" | "armv8l", false) => ("mostrace-armv7", "make phone-armv7"),
        ("x86_64", false) => ("mostrace-x86_64", "make phone-x86_64"),
        (other, _) => {
            bail!(
                "the phone is a {other}, for which there is no recorder; name one with --recorder FILE"
            )
        }
    };
    let here = std::env::current_exe()?;
    let version = env!("CARGO_PKG_VERSION");
    let released = format!("mostrace-recorder-{version}-{machine}-static");
    let names: Vec<&str> = match with_tables {
        true => vec![name],
        false => vec![name, &released],
    };
    let folders = here.ancestors().skip(1).take(2);
    let mut found = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    found
        .find(|file| file.is_file())
        .with_context(|| format!("{name}: not beside {}: `{makes}` builds it", here.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_pass_the_phones_shell() {
        let words = ["a b", "", "it's", "$(id)", "/data/x-1.db"].map(str::to_owned);
        let line = format!("printf '%s\\n' {}", quoted(&words));
        let run = |line: &str| {
            let mut sh = std::process::Command::new("sh");
            let out = sh.args(["-c", line]).output().unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        assert_eq!(run(&line), words.join("\n") + "\n");
        let twice = format!("sh -c {}", shell::plain(&line));
        assert_eq!(run(&twice), words.join("\n") + "\n");
    }

    #[test]
    fn only_our_files_are_fetched() {
        for (name, doing, is_ours) in [
            ("run.most.tar.zst", Doing::Attached, true),
            ("run.0002.most.tar.zst", Doing::Recording, true),
            ("run.0002.most.tar.zst; id", Doing::Recording, false),
            ("../x.tar.zst", Doing::Recording, false),
            ("ledger/2026-11-27.parquet", Doing::Ledger, true),
            ("ledger/../2026-1.parquet", Doing::Ledger, false),
            ("ledger/2026-11-27.parquet", Doing::Attached, false),
        ] {
            assert_eq!(file_of(name, doing).is_some(), is_ours, "{name}");
        }
    }

    #[test]
    fn the_last_words_are_no_advice() {
        let log = "mostrace: 3 events\nmostrace: /x: no such device\nmostrace: next: analyze\nprogress: 1 s\n";
        assert_eq!(last_of(log), "/x: no such device");
        assert_eq!(
            without_advice(log),
            "mostrace: 3 events\nmostrace: /x: no such device"
        );
        assert_eq!(last_of(""), "the recorder ended without a message");
    }
}
