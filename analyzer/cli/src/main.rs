// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mostrace command: a file for each verb, and a folder for those that need tables. Data goes to stdout, messages to stderr.
#![forbid(unsafe_code)]

mod bar;
mod brief;
mod budget;
#[cfg_attr(not(target_os = "linux"), path = "no_doctor.rs")]
mod doctor;
#[cfg(all(test, target_os = "linux"))]
mod examples;
mod flash;
#[cfg(target_os = "linux")]
mod ground;
#[cfg(target_os = "linux")]
mod guest;
mod help;
mod import;
mod json;
mod keep;
#[cfg(target_os = "linux")]
mod measure;
mod names;
mod paint;
mod phone;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod segments;
mod shell;
mod source;
mod steps;
#[cfg_attr(not(feature = "tables"), path = "no_tables.rs")]
mod tables;
#[cfg(target_os = "linux")]
mod top;
mod usage;
#[cfg(target_os = "linux")]
mod workload;
mod wrap;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use usage::{UsageError, usage};

/// For every block that reached the storage: who wrote it, to which file, what kind of block is it
#[derive(Parser)]
#[command(
    name = "mostrace",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Cli {
    /// Say more on stderr; -vv still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    #[cfg(target_os = "linux")]
    Record(Box<record::Record>),
    #[cfg(target_os = "linux")]
    Top(top::Top),
    Phone(phone::Phone),
    Import(import::Import),
    #[cfg(target_os = "linux")]
    Measure(Box<measure::Measure>),
    Check(Box<budget::Check>),
    #[command(flatten)]
    Tables(Box<tables::Verb>),
    Flash(Box<flash::Flash>),
    /// Generate the IO to be measured
    #[cfg(target_os = "linux")]
    Workload(workload::Workload),
    Doctor(doctor::Doctor),
    /// Print a shell's completions
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write those of all verbs into a folder
    #[command(hide = true)]
    Man {
        /// The folder
        #[arg(long, value_name = "FOLDER")]
        dir: Option<std::path::PathBuf>,
    },
}

impl Command {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            #[cfg(target_os = "linux")]
            Command::Record(args) => return Ok(ExitCode::from(record::run(&args)?)),
            #[cfg(target_os = "linux")]
            Command::Top(args) => args.run()?,
            Command::Import(args) => args.run()?,
            Command::Phone(args) => return Ok(ExitCode::from(phone::run(&args)?)),
            #[cfg(target_os = "linux")]
            Command::Measure(args) => return Ok(ExitCode::from(measure::run(&args)?)),
            Command::Check(args) => return Ok(ExitCode::from(args.run()?)),
            Command::Tables(verb) => return verb.run(),
            Command::Flash(args) => args.run()?,
            #[cfg(target_os = "linux")]
            Command::Workload(args) => workload::run(&args)?,
            Command::Doctor(args) => doctor::run(&args)?,
            Command::Completions { shell } => print(|out| {
                clap_complete::generate(shell, &mut Cli::command(), "mostrace", out);
                Ok(())
            })?,
            Command::Man { dir: None } => {
                print(|out| clap_mangen::Man::new(Cli::command()).render(out))?;
            }
            Command::Man { dir: Some(dir) } => clap_mangen::generate_to(Cli::command(), dir)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints what a generator writes, by way of memory, because some generators panic on a closed pipe.
fn print(generate: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> anyhow::Result<()> {
    let mut text = Vec::new();
    generate(&mut text)?;
    Ok(std::io::stdout().write_all(&text)?)
}

/// Runs the command. The exit status is 0 for success, 1 for an error at run time, 2 for wrong usage; `record` passes its
/// command's through.
fn main() -> ExitCode {
    let words = arguments(std::env::args_os().collect());
    let found = help::grouped(Cli::command()).try_get_matches_from(words);
    let cli = match found.and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let level = match cli.verbose {
        0 => log::LevelFilter::Warn,
        1 => log::LevelFilter::Info,
        _ => log::LevelFilter::Debug,
    };
    env_logger::Builder::new()
        .filter_level(level)
        .format(plain)
        .init();
    match cli.command.run() {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&one_line(&error));
            ExitCode::from(exit_status(&error))
        }
    }
}

/// Prepares the words of a command line for parsing. What follows `workload mobibench` is for Mobibench, whose -v differs
/// from ours, so `--` is inserted.
fn arguments(mut all: Vec<OsString>) -> Vec<OsString> {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let verb = all.iter().skip(1).position(|word| !is_option(word));
    let verb = verb.map_or(all.len(), |at| at + 1);
    if all.get(verb).is_some_and(|word| word == "workload")
        && all.get(verb + 1).is_some_and(|word| word == "mobibench")
    {
        all.insert(verb + 2, "--".into());
    }
    all
}

/// Prints what is wrong with the arguments, or the help that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let stray = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => word.as_str(),
        _ => "-",
    };
    let verb = std::env::args_os()
        .skip(1)
        .find(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let example = match verb.as_ref().and_then(|verb| verb.to_str()) {
        Some("record") => Some("mostrace record -d DEV"),
        Some("measure") => Some("mostrace measure"),
        _ => None,
    };
    match example {
        Some(example) if !stray.starts_with('-') => {
            say(&format!(
                "{stray}: the command comes after --, as in: {example} -- {stray}"
            ));
        }
        _ => match tables::hint(error) {
            Some(line) => say(&line),
            // If stderr is closed, nothing can be done.
            None => drop(error.print()),
        },
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn exit_status(error: &anyhow::Error) -> u8 {
    #[cfg(target_os = "linux")]
    if let Some(error) = error.downcast_ref::<mostrace_capture::Error>() {
        return error.exit_status();
    }
    if error.is::<UsageError>() { 2 } else { 1 }
}

/// Formats log messages like errors, with their level.
fn plain(out: &mut env_logger::fmt::Formatter, record: &log::Record<'_>) -> std::io::Result<()> {
    let level = record.level().as_str().to_lowercase();
    writeln!(
        out,
        "mostrace: {}",
        line(&format!("{level}: {}", record.args()))
    )
}

/// Prints a line on stderr.
fn say(text: &str) {
    // If stderr is closed, nothing can be done.
    let _ = writeln!(std::io::stderr(), "mostrace: {}", line(text));
}

/// Formats the error and its causes, each once.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            let _ = write!(text, ": {cause}");
        }
    }
    text
}

/// Makes a text one line that neither controls a terminal nor deceives. Messages of libraries may have several lines.
fn line(text: &str) -> String {
    mostrace_trace::text::harmless(&text.replace(['\n', '\t'], " ")).into_owned()
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
    })
}
