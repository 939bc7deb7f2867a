// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace phone`: controls the recorder on a phone from the desktop, through adb.

mod adb;
mod answer;
mod app;
mod attached;
mod output;
mod pull;
mod root;
mod there;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{DecimalBytes, HumanDuration};
use mostrace_bundle::units;
use mostrace_trace::tally;

use super::{say, shell};
use adb::Adb;
use app::App;
use pull::{Pull, archive, check_free, fetch_bundles, next};
use root::Root;
use there::{Doing, State, There};

/// The bytes of a segment that the recorder holds in memory.
const HELD: &str = "64M";

/// Record on a phone through adb; the phone must give root (adb root, or su).
#[derive(Debug, clap::Args)]
pub struct Phone {
    /// The serial number of the phone, as `adb devices` lists it, if there are several
    #[arg(short, long, value_name = "SERIAL")]
    serial: Option<String>,
    /// The adb program
    #[arg(long, value_name = "FILE", default_value = "adb")]
    adb: OsString,
    /// The recorder for the phone (`make phone`), instead of the one beside this program
    #[arg(long, value_name = "FILE")]
    recorder: Option<PathBuf>,
    /// The time in which somebody has to answer the phone's root prompt
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::time)]
    prompt: Duration,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Show what can be captured on the phone, what is missing, and what that costs
    Doctor {
        /// Examine this device too, or the device that this folder is on
        #[arg(short, long, value_name = "DEV|PATH", default_value = "/data")]
        device: String,
    },
    Record(Record),
    Start(Start),
    /// Say what the phone records: for how long, how much, what was lost, and what can be fetched
    Status,
    /// End what `start` began, and wait until it has ended
    Stop,
    Pull(Pull),
}

/// This is what is recorded.
#[derive(Debug, clap::Args)]
struct Subject {
    /// The device to trace, or a folder for the device that it is on
    #[arg(short, long, value_name = "DEV|PATH", default_value = "/data")]
    device: String,
    /// Ask for this app: the device is that of its files, and its folder's names are recorded as they are
    #[arg(long, value_name = "PACKAGE", conflicts_with = "device")]
    app: Option<String>,
    /// Further options of the phone's `mostrace record`
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Record on the phone and fetch the bundle; Ctrl-C ends the recording there.
///
/// After the options behind --, another -- and a command record while that command runs on the phone.
#[derive(Debug, clap::Args)]
struct Record {
    #[command(flatten)]
    subject: Subject,
    /// End the app first, and start it when the recording has begun
    #[arg(long, requires = "app")]
    cold: bool,
    /// Stop after this time, such as 60, 10m, 1h
    #[arg(short = 'w', long = "wait", value_name = "TIME", value_parser = units::time)]
    wait: Option<Duration>,
    /// The bundle to write on this machine, NAME.most.tar.zst
    #[arg(short, long, value_name = "OUT", default_value = pull::BUNDLE, value_parser = archive)]
    output: PathBuf,
}

/// Begin a recording that goes on without the desktop, until `stop` or a limit; `pull` fetches it.
#[derive(Debug, clap::Args)]
struct Start {
    #[command(flatten)]
    subject: Subject,
    /// Keep a ledger (what each app caused, by the hour) and no events; the phone needs the program with tables
    #[arg(long, conflicts_with_all = ["app", "size"])]
    ledger: bool,
    /// Stop after this time, such as 10m, 24h
    #[arg(short = 'w', long = "wait", value_name = "TIME", default_value = "24h", value_parser = units::time)]
    wait: Duration,
    /// Keep the last of what was recorded, as much as has this size
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    size: String,
}

/// Runs the verb; returns the exit status.
///
/// # Errors
/// Returns an error if there is no phone, it gives no root, or something on it fails.
pub fn run(args: &Phone) -> anyhow::Result<u8> {
    let adb = Adb {
        program: args.adb.clone(),
        serial: args.serial.clone(),
    };
    if let Verb::Record(record) = &args.verb {
        // This is checked before the phone does anything.
        check_free(&record.output)?;
    }
    let root = Root::find(&adb, args.prompt)?;
    let there = There {
        adb: &adb,
        root: &root,
    };
    let recorder = args.recorder.as_deref();
    match &args.verb {
        Verb::Doctor { device } => doctor(&there, recorder, device),
        Verb::Record(record) => record.run(&there, recorder),
        Verb::Start(start) => start.run(&there, recorder).map(|()| 0),
        Verb::Status => status(&there).map(|()| 0),
        Verb::Stop => stop(&there).map(|()| 0),
        Verb::Pull(pull) => pull.run(&there).map(|()| 0),
    }
}

fn doctor(there: &There<'_>, recorder: Option<&Path>, device: &str) -> anyhow::Result<u8> {
    there.check_free()?;
    there.push(recorder, false)?;
    let words = format!("{} doctor -d {}", there::program(), shell::plain(device));
    let status = there
        .adb
        .spawn(&mut there.adb.shell(&there.root.line(&words)))?
        .wait()?;
    there.remove()?;
    Ok(code(status))
}

impl Subject {
    fn find(&self, there: &There<'_>) -> anyhow::Result<Option<App>> {
        let find = |package: &String| App::find(there.adb, there.root, package);
        self.app.as_ref().map(find).transpose()
    }

    fn device(&self) -> String {
        match &self.app {
            Some(package) => format!("/data/data/{package}"),
            None => self.device.clone(),
        }
    }

    /// Returns the recorder's words.
    fn words(&self, there: &There<'_>, each: &str, more: &[String]) -> Vec<String> {
        let mut words = vec![there::program(), "record".into(), "-d".into()];
        words.extend([self.device(), "-o".into(), there::recording()]);
        words.extend(
            self.app
                .iter()
                .flat_map(|_| ["--names".into(), self.device()]),
        );
        if !self.has("--label") {
            // The serial number would tell whose phone it is.
            let label = format!("phone {}", there.model());
            words.extend(["--label".into(), label.trim_end().to_owned()]);
        }
        if let Some(battery) = there.battery() {
            words.extend(["--note".into(), format!("at the beginning: {battery}")]);
        }
        if !["--segment", "--source"]
            .iter()
            .any(|option| self.has(option))
        {
            let held = format!("{each},{HELD}");
            words.extend(["--segment".into(), held, "--memory".into()]);
        }
        words.extend(more.iter().cloned());
        words.extend(self.options.iter().cloned());
        words
    }

    /// Returns true if this option is given for the recorder itself, and not for its command.
    fn has(&self, option: &str) -> bool {
        let mut own = self.options.iter().take_while(|word| *word != "--");
        own.any(|word| word == option || word.starts_with(&format!("{option}=")))
    }
}

impl Record {
    fn run(&self, there: &There<'_>, recorder: Option<&Path>) -> anyhow::Result<u8> {
        let app = self.subject.find(there)?;
        there.check_free()?;
        there.push(recorder, false)?;
        let mut more = vec!["--progress".into(), "lines".into()];
        if let Some(time) = self.wait {
            more.extend(["-w".into(), time.as_secs_f64().to_string()]);
        }
        let words = self.subject.words(there, "24h", &more);
        let cold = app.as_ref().filter(|_| self.cold);
        if let Some(app) = cold {
            app.stop(there.adb, there.root)?;
        }
        say(&format!(
            "recording {}; Ctrl-C ends it",
            self.subject.device()
        ));
        let status = attached::run(there, &there.attached(&words), cold)?;
        let out = shell::plain(&self.output.display().to_string());
        let state = there.state().with_context(|| {
            format!("the phone is gone; what it recorded stays there: `mostrace phone pull -o {out}` fetches it")
        })?;
        if state.files.is_empty() && !state.runs {
            there.remove()?;
            bail!("nothing was recorded: the recorder ended with {status}");
        }
        fetch_bundles(there, &self.output).with_context(|| {
            format!("the recording stays on the phone; `mostrace phone pull -o {out}` fetches it")
        })?;
        tell_next(&self.output, app.as_ref());
        Ok(code(status))
    }
}

impl Start {
    fn run(&self, there: &There<'_>, recorder: Option<&Path>) -> anyhow::Result<()> {
        self.subject.find(there)?;
        there.check_free()?;
        there.push(recorder, self.ledger)?;
        let wait = self.wait.as_secs_f64().to_string();
        let (doing, words) = match self.ledger {
            true => {
                let device = self.subject.device();
                let words = [
                    &there::program(),
                    "ledger",
                    "start",
                    &there::ledger(),
                    "-d",
                    &device,
                    "-w",
                    &wait,
                    "--progress",
                    "asked",
                ];
                let words = words.map(str::to_owned).into_iter();
                (
                    Doing::Ledger,
                    words.chain(self.subject.options.iter().cloned()).collect(),
                )
            }
            false => {
                let more = ["--progress", "asked", "-w", &wait, "--keep", &self.size];
                let words = self.subject.words(there, "10m", &more.map(str::to_owned));
                (Doing::Recording, words)
            }
        };
        tell(&there.start(doing, &words)?);
        if let Some(battery) = there.battery() {
            say(&battery);
        }
        say(&format!(
            "{} is recorded, also without this machine, until `mostrace phone stop` or for {}",
            self.subject.device(),
            HumanDuration(self.wait)
        ));
        say("next: mostrace phone status");
        Ok(())
    }
}

/// Prints what the app caused, or says what to do with the recording.
fn tell_next(recorded: &Path, app: Option<&App>) {
    let Some(app) = app else {
        return next(recorded);
    };
    if let Err(error) = answer::print(app, recorded) {
        say(&format!("{error:#}"));
        next(recorded);
    }
}

fn status(there: &There<'_>) -> anyhow::Result<()> {
    let state = there.state()?;
    let what = match (state.doing, state.runs) {
        (_, false) if state.files.is_empty() => {
            "nothing is recorded, and nothing is to be fetched".into()
        }
        (_, false) => format!("ended; {}", sum(&state)),
        (Doing::Recording, true) => format!("recording: {}; {}", there.progress()?, sum(&state)),
        (Doing::Attached, true) => {
            "`phone record` runs, or has not yet packed what it recorded".into()
        }
        (Doing::Ledger, true) => {
            format!("keeping a ledger: {}; {}", there.progress()?, sum(&state))
        }
    };
    say(&what);
    if state.doing == Doing::Ledger && state.runs {
        tell(&there.ledger_status()?);
    }
    if !state.runs {
        tell(&there.log()?);
    }
    if let Some(battery) = there.battery() {
        say(&battery);
    }
    match (state.runs, state.files.is_empty()) {
        (true, _) => say("next: mostrace phone stop"),
        (false, false) => say("next: mostrace phone pull"),
        (false, true) => {}
    }
    Ok(())
}

fn stop(there: &There<'_>) -> anyhow::Result<()> {
    if there.state()?.runs {
        there.interrupt()?;
        say("asked to end");
        there.wait()?;
    } else {
        say("it had ended");
    }
    tell(&there.log()?);
    let state = there.state()?;
    if state.files.is_empty() {
        bail!("there is nothing to be fetched");
    }
    say(&sum(&state));
    say("next: mostrace phone pull");
    Ok(())
}

fn sum(state: &State) -> String {
    let bytes = tally::sum(state.files.iter().map(|file| file.bytes));
    let what = match state.doing {
        Doing::Ledger => "days",
        Doing::Attached | Doing::Recording => "finished segments",
    };
    format!("{} {what}, {}", state.files.len(), DecimalBytes(bytes))
}

/// Shows what the phone's recorder said.
fn tell(log: &str) {
    for line in log.lines().filter(|line| !there::is_advice(line)) {
        say(line.strip_prefix("mostrace: ").unwrap_or(line));
    }
}

fn code(status: ExitStatus) -> u8 {
    status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1)
}
