// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace phone`: controls the recorder on a phone from the desktop, through adb.

use std::cmp::Ordering;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::Duration;

use anyhow::{Context, bail};
use mostrace_bundle::{Folder, units};

use super::shell;

/// The directory on the phone that holds everything; programs can be run from there.
const FOLDER: &str = "/data/local/tmp/mostrace";
const BUNDLE: &str = "run.most.tar.zst";
const LOOK_AGAIN: Duration = Duration::from_millis(50);

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
    /// Record on the phone and fetch the bundle; Ctrl-C ends the recording there
    Record {
        /// The device to trace, or a folder for the device that it is on
        #[arg(
            short,
            long,
            value_name = "DEV|PATH",
            default_value = "/data",
            conflicts_with = "app"
        )]
        device: String,
        /// Trace the device that this app's files are on
        #[arg(long, value_name = "PACKAGE")]
        app: Option<String>,
        /// Stop after this time, such as 60, 10m, 1h
        #[arg(short = 'w', long = "wait", value_name = "TIME", value_parser = units::time)]
        wait: Option<Duration>,
        /// The bundle to write on this machine
        #[arg(short, long, value_name = "OUT", default_value = "phone.most.tar.zst")]
        output: PathBuf,
        /// Further options of the phone's `mostrace record`, and after another -- a command
        #[arg(last = true, value_name = "OPTION")]
        options: Vec<String>,
    },
    /// Fetch the bundle of a recording that continued while the phone was disconnected, or wait for its end
    Pull {
        /// The bundle to write on this machine
        #[arg(short, long, value_name = "OUT", default_value = "phone.most.tar.zst")]
        output: PathBuf,
    },
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
    let root = Root::find(&adb)?;
    match &args.verb {
        Verb::Doctor { device } => {
            push(&adb, args.recorder.as_deref())?;
            let words = [program(), "doctor".into(), "-d".into(), device.clone()];
            let status = adb.shell(&root.line(&quoted(&words))).status()?;
            Ok(code(status))
        }
        Verb::Record {
            device,
            app,
            wait,
            output,
            options,
        } => {
            // This is checked before the phone does anything.
            let here = Output::create(output)?;
            push(&adb, args.recorder.as_deref())?;
            let device = app
                .as_ref()
                .map_or(device.clone(), |app| format!("/data/data/{app}"));
            let line = record_line(&adb, &device, *wait, options)?;
            let status = until_ended(&adb, &root, &root.line(&line))?;
            pull(&adb, &root, here).with_context(|| {
                "the recording stays on the phone; `mostrace phone pull` fetches it".to_owned()
            })?;
            Ok(code(status))
        }
        Verb::Pull { output } => {
            let here = Output::create(output)?;
            pull(&adb, &root, here)?;
            Ok(0)
        }
    }
}

fn program() -> String {
    format!("{FOLDER}/mostrace")
}

fn code(status: ExitStatus) -> u8 {
    status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1)
}

/// The adb of one phone.
struct Adb {
    program: OsString,
    serial: Option<String>,
}

impl Adb {
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(serial) = &self.serial {
            command.args(["-s", serial]);
        }
        command.arg(verb);
        command
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = self.command("shell");
        command.arg(line).stdin(Stdio::null());
        command
    }

    /// Returns what a line prints on the phone, without the last line's end.
    fn ask(&self, line: &str) -> anyhow::Result<String> {
        answer(&mut self.shell(line), &format!("adb shell {line}"))
    }
}

/// The longest answer of the phone that is read, bytes; those that are asked for have some tens.
const LONGEST: u64 = 64 << 10;

/// Returns what a command prints, without the last line's end. The phone may be anybody's, so an answer has a bound.
fn answer(command: &mut Command, shown: &str) -> anyhow::Result<String> {
    let command = command.stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| shown.to_owned())?;
    let messages = child
        .stderr
        .take()
        .map(|from| thread::spawn(|| beginning(from)));
    let out = child.stdout.take().map_or_else(Vec::new, beginning);
    let is_too_long = out.len() as u64 > LONGEST;
    if is_too_long {
        child.kill()?;
    }
    let status = child.wait()?;
    if is_too_long {
        bail!("{shown}: answers with more than {LONGEST} bytes");
    }
    if !status.success() {
        let said = messages
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let said = said.lines().next().unwrap_or("failed without a message");
        bail!("{shown}: {said}");
    }
    Ok(String::from_utf8_lossy(&out).trim_end().to_owned())
}

/// Reads at most one byte more than the longest answer has. Whoever goes on writing then finds the pipe closed.
fn beginning(from: impl io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // An answer that breaks off is one that is too short.
    let _ = from.take(LONGEST + 1).read_to_end(&mut bytes);
    bytes
}

/// The way in which a line is run as root.
enum Root {
    /// adbd is root: `adb root`.
    Adbd,
    /// `su -c`, as Magisk has it.
    Su,
    /// `su 0`, as Android's developer builds have it.
    SuZero,
}

impl Root {
    fn find(adb: &Adb) -> anyhow::Result<Root> {
        if adb.ask("id -u")? == "0" {
            return Ok(Root::Adbd);
        }
        for root in [Root::Su, Root::SuZero] {
            if adb.ask(&root.line("id -u")).is_ok_and(|id| id == "0") {
                return Ok(root);
            }
        }
        bail!("the phone gives no root: neither `adb root` nor su; recording needs it")
    }

    fn line(&self, line: &str) -> String {
        match self {
            Root::Adbd => line.to_owned(),
            Root::Su => format!("su -c {}", shell::plain(line)),
            Root::SuZero => format!("su 0 sh -c {}", shell::plain(line)),
        }
    }
}

/// Quotes words for the phone's shell.
fn quoted(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| shell::plain(word)).collect();
    words.join(" ")
}

/// Copies the recorder to the phone.
fn push(adb: &Adb, recorder: Option<&Path>) -> anyhow::Result<()> {
    let recorder = match recorder {
        Some(file) => file.to_owned(),
        None => recorder_for(&adb.ask("uname -m")?)?,
    };
    adb.ask(&format!("mkdir -p {FOLDER}"))?;
    let mut push = adb.command("push");
    let shown = format!("adb push {}", recorder.display());
    answer(push.arg(&recorder).arg(program()), &shown)?;
    adb.ask(&format!("chmod 755 {}", program()))?;
    Ok(())
}

/// Returns the recorder for a machine (`uname -m`), which lies beside this program or one directory above, where `make
/// phone` leaves it.
fn recorder_for(machine: &str) -> anyhow::Result<PathBuf> {
    let (name, target) = match machine {
        "aarch64" => ("mostrace-aarch64", "phone"),
        "armv7l" | "armv8l" => ("mostrace-armv7", "phone-armv7"),
        "x86_64" => ("mostrace-x86_64", "phone-x86_64"),
        other => {
            bail!(
                "the phone is a {other}, for which there is no recorder; name one with --recorder FILE"
            )
        }
    };
    let here = std::env::current_exe()?;
    let found = here
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name));
    found
        .into_iter()
        .find(|file| file.is_file())
        .with_context(|| {
            format!(
                "{name}: not beside {}: `make {target}` builds it",
                here.display()
            )
        })
}

/// Returns the line that records and leaves the recorder's process ID where [`end`] finds it.
fn record_line(
    adb: &Adb,
    device: &str,
    wait: Option<Duration>,
    options: &[String],
) -> anyhow::Result<String> {
    let mut words = vec![program(), "record".into(), "-d".into(), device.to_owned()];
    words.extend(["-o".into(), format!("{FOLDER}/{BUNDLE}")]);
    if let Some(time) = wait {
        words.extend(["-w".into(), time.as_secs_f64().to_string()]);
    }
    if !options.iter().any(|option| option.starts_with("--label")) {
        let serial = answer(&mut adb.command("get-serialno"), "adb get-serialno")?;
        words.extend(["--label".into(), format!("phone {serial}")]);
    }
    words.extend(options.iter().cloned());
    let left = format!("rm -f {FOLDER}/{BUNDLE} && echo $$ >{FOLDER}/pid");
    Ok(format!("{left} && exec {}", quoted(&words)))
}

/// Runs the recorder until it ends; Ctrl-C here acts as Ctrl-C there.
fn until_ended(adb: &Adb, root: &Root, line: &str) -> anyhow::Result<ExitStatus> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&asked))?;
    }
    let mut shell = adb.shell(line);
    alone(&mut shell);
    let mut shell: Child = shell.spawn()?;
    loop {
        if let Some(status) = shell.try_wait()? {
            return Ok(status);
        }
        if asked.swap(false, Relaxed) {
            end(adb, root)?;
        }
        sleep(LOOK_AGAIN);
    }
}

/// Keeps the terminal's Ctrl-C from adb, which would end and leave the recorder running.
#[cfg(unix)]
fn alone(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn alone(_command: &mut Command) {}

/// Ends the recorder as Ctrl-C there would.
fn end(adb: &Adb, root: &Root) -> anyhow::Result<()> {
    adb.ask(&root.line(&format!("kill -INT $(cat {FOLDER}/pid)")))?;
    Ok(())
}

/// A local file that gets its name when it is complete.
struct Output {
    path: PathBuf,
    folder: Folder,
    part: OsString,
    file: File,
}

impl Output {
    /// Creates the file's partial version, replacing one that an earlier run left.
    fn create(path: &Path) -> anyhow::Result<Output> {
        let name = path.file_name().unwrap_or_default();
        let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
        if folder.has(name)? {
            bail!("{}: exists, and is not overwritten", path.display());
        }
        let mut part = name.to_owned();
        part.push(".part");
        Ok(Output {
            path: path.to_owned(),
            file: folder.replace(&part)?,
            folder,
            part,
        })
    }

    fn finish(self) -> anyhow::Result<()> {
        let path = || self.path.display().to_string();
        self.file.sync_all().with_context(path)?;
        let name = self.path.file_name().unwrap_or_default();
        Ok(self.folder.rename_new(&self.file, &self.part, name)?)
    }
}

/// Waits for the recorder's end, fetches the bundle, and removes everything from the phone.
fn pull(adb: &Adb, root: &Root, mut to: Output) -> anyhow::Result<()> {
    // The process ID may belong to another program by now; one of another name is not waited for.
    let pid = format!("$(cat {FOLDER}/pid 2>/dev/null)");
    let runs = format!("grep -q mostrace /proc/{pid}/comm 2>/dev/null");
    adb.ask(&root.line(&format!("while {runs}; do sleep 0.2; done")))?;
    let bundle = format!("{FOLDER}/{BUNDLE}");
    let size = adb.ask(&root.line(&format!("wc -c <{bundle}")))?;
    let size: u64 = size
        .trim()
        .parse()
        .with_context(|| format!("wc of {bundle}: {size}"))?;
    // Only root can read the bundle, so adb pull could not.
    let mut cat = adb.command("exec-out");
    let cat = cat
        .arg(root.line(&format!("cat {bundle}")))
        .stdin(Stdio::null());
    let mut cat = cat.stdout(Stdio::piped()).spawn()?;
    let from = cat.stdout.take().context("adb exec-out")?;
    let shown = to.path.display();
    let copied = io::copy(&mut from.take(size.saturating_add(1)), &mut to.file);
    if !matches!(copied, Ok(bytes) if bytes <= size) {
        cat.kill()?;
    }
    let (copied, status) = (copied.with_context(|| shown.to_string())?, cat.wait()?);
    match copied.cmp(&size) {
        Ordering::Less => bail!("{shown}: only {copied} of {size} bytes arrived"),
        Ordering::Greater => bail!("{shown}: more than the {size} bytes of the bundle arrived"),
        Ordering::Equal if !status.success() => bail!("{shown}: adb exec-out: {status}"),
        Ordering::Equal => {}
    }
    let path = to.path.clone();
    to.finish()?;
    adb.ask(&root.line(&format!("rm -rf {FOLDER}")))?;
    super::say(&format!("{}: {size} bytes", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_pass_the_phones_shell() {
        let words = ["a b", "", "it's", "$(id)", "/data/x-1.db"].map(str::to_owned);
        let line = format!("printf '%s\\n' {}", quoted(&words));
        let out = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(
            String::from_utf8(out.stdout).unwrap(),
            words.join("\n") + "\n"
        );
        let twice = format!("sh -c {}", shell::plain(&line));
        let out = Command::new("sh").args(["-c", &twice]).output().unwrap();
        assert_eq!(
            String::from_utf8(out.stdout).unwrap(),
            words.join("\n") + "\n"
        );
    }
}
