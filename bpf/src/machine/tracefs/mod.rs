// SPDX-License-Identifier: MIT OR Apache-2.0
//! The global part of tracefs: its tracer, its clock and its buffers, which only one user at a time can have.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{At, Error, Result, read_line};
use crate::machine::guard::Undo;
use crate::machine::openers;

mod buffer;
mod ring_page;

pub(crate) use buffer::{Buffer, PAGE_MAX, open_pipe};

/// More bytes than the text of a buffer's counters needs.
const STATS_MAX: usize = 4096;

/// The kernel's counters of one CPU's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// The number of events that nobody has read.
    pub entries: u64,
    /// The number of events that anybody has read since the buffer was last emptied.
    pub read: u64,
    /// The number of events that were overwritten or dropped since.
    pub lost: u64,
}

impl Stats {
    /// Reads the counters of the buffer whose folder is `folder`, `per_cpu/cpuN`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a counter is missing from it.
    pub fn read(folder: &Path) -> Result<Stats> {
        let file = folder.join("stats");
        let mut text = [0; STATS_MAX];
        // The kernel generates the text anew for each read() (tracing_stats_read), with other numbers of other lengths.
        let len = File::open(&file).at(&file)?.read(&mut text).at(&file)?;
        let stats = str::from_utf8(&text[..len]).ok().and_then(Stats::parse);
        stats.ok_or_else(|| Error::malformed(file.display(), "not all counters of a buffer"))
    }

    /// Parses the counters; None if one is missing or is not a number.
    fn parse(text: &str) -> Option<Stats> {
        let count = |name: &str| {
            let named = |line: &str| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok();
            text.lines().find_map(named)
        };
        let lost: [Option<u64>; 3] = ["overrun", "commit overrun", "dropped events"].map(count);
        Some(Stats {
            entries: count("entries")?,
            read: count("read events")?,
            lost: lost
                .into_iter()
                .try_fold(0, |sum: u64, lost| sum.checked_add(lost?))?,
        })
    }
}

/// Returns the folders of the CPUs' buffers, by CPU.
///
/// # Errors
/// Returns an error if the folder cannot be listed.
pub(crate) fn buffers(tracefs: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let dir = tracefs.join("per_cpu");
    let mut buffers = Vec::new();
    for entry in fs::read_dir(&dir).at(&dir)? {
        let name = entry.at(&dir)?.file_name();
        let cpu = name.to_str().and_then(|n| n.strip_prefix("cpu"));
        if let Some(cpu) = cpu.and_then(|n| n.parse().ok()) {
            buffers.push((cpu, dir.join(&name)));
        }
    }
    buffers.sort();
    Ok(buffers)
}

/// Checks that the kernel has the blk tracer, and that nobody uses another one.
///
/// # Errors
/// Returns the reason as an error if this is not so.
pub(crate) fn has_blk(tracefs: &Path) -> Result<()> {
    let tracers = read_line(tracefs.join("available_tracers"))?;
    if !tracers.split_ascii_whitespace().any(|t| t == "blk") {
        return Err(Error::NoBlkTracer);
    }
    let file = tracefs.join("current_tracer");
    let current = read_line(&file)?;
    if current != "nop" {
        return Err(in_use(format!(
            "current_tracer is {current} (to free it: echo nop > {})",
            file.display()
        )));
    }
    Ok(())
}

/// Checks that nobody uses tracefs: changing the tracer, its clock or its buffers would destroy what they trace and have traced.
/// Instances have their own buffers and clocks and do not matter.
///
/// # Errors
/// Returns the reason as an error if somebody does.
pub(crate) fn check_free(tracefs: &Path) -> Result<()> {
    has_blk(tracefs)?;
    let events = tracefs.join("set_event");
    if let Some(first) = read_line(&events)?.lines().next() {
        return Err(in_use(format!(
            "events are enabled, {first} first (to free it: echo > {})",
            events.display()
        )));
    }
    let instances = tracefs.join("instances");
    let is_pipe = |open: &Path| {
        let name = open.file_name().and_then(|name| name.to_str());
        open.starts_with(tracefs)
            && !open.starts_with(&instances)
            && name.is_some_and(|name| name.starts_with("trace_pipe"))
    };
    if let Some(reader) = openers::named(is_pipe) {
        return Err(in_use(format!("its pipes are open: {reader}")));
    }
    for (cpu, folder) in buffers(tracefs)? {
        let entries = Stats::read(&folder)?.entries;
        if entries > 0 {
            return Err(in_use(format!(
                "{entries} events of CPU {cpu} wait to be read (to drop them: echo > {})",
                tracefs.join("trace").display()
            )));
        }
    }
    Ok(())
}

fn in_use(by: String) -> Error {
    Error::Busy {
        what: "ftrace is in use".into(),
        by,
    }
}

/// Returns the steps that restore the present settings, in an order that leaves nothing running.
///
/// # Errors
/// Returns an error if a setting cannot be read.
pub(crate) fn undo_steps(tracefs: &Path) -> Result<Vec<Undo>> {
    let clock = read_line(tracefs.join("trace_clock"))?;
    let on = read_line(tracefs.join("tracing_on"))?;
    // Before the first use, the file holds `7 (expanded: 1408)`.
    let size = read_line(tracefs.join("buffer_size_kb"))?;
    let size = size.split_ascii_whitespace().next().unwrap_or("1408");
    let write = |name: &str, text: &str| Undo::Write(tracefs.join(name), text.to_owned());
    Ok(vec![
        write("current_tracer", "nop"),
        write("tracing_on", &on),
        write("trace_clock", chosen(&clock).unwrap_or("local")),
        write("buffer_size_kb", size),
    ])
}

/// Returns the choice in brackets.
fn chosen(choices: &str) -> Option<&str> {
    Some(choices.split_once('[')?.1.split_once(']')?.0)
}

/// Returns the settings that somebody else may change while the tracer runs.
pub(crate) fn settings(tracefs: &Path) -> impl Iterator<Item = PathBuf> {
    [
        "tracing_on",
        "current_tracer",
        "trace_clock",
        "buffer_size_kb",
        "tracing_cpumask",
    ]
    .map(|name| tracefs.join(name))
    .into_iter()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stats_are_told_by_their_names() {
        let text = "entries: 5\noverrun: 2\ncommit overrun: 1\nbytes: 99\noldest event ts: 4.5\n\
                    now ts: 678.147291\ndropped events: 4\nread events: 6";
        let expected = Stats {
            entries: 5,
            read: 6,
            lost: 7,
        };
        assert_eq!(Stats::parse(text), Some(expected));
    }

    #[test]
    fn stats_of_two_reads_are_none() {
        // Two reads gave this while the buffer was filling, on 6.18.
        let text = "entries: 9\noverrun: 0\ncommit oveoverrun: 0\nbytes: 48216\noldest event ts: 4.5\n\
                    now ts: 17333.478681\ndropped events: 0\nread events: 0\n";
        assert_eq!(Stats::parse(text), None);
    }

    #[test]
    fn the_clock_in_use_stands_in_brackets() {
        assert_eq!(chosen("local global [mono] boot"), Some("mono"));
        assert_eq!(chosen("local"), None);
    }

    proptest! {
        #[test]
        fn any_text_has_stats(text: String) {
            Stats::parse(&text);
        }
    }
}
