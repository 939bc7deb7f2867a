// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of Linux' ftrace: `trace` and `trace_pipe` of tracefs, `trace-cmd report`, and what atrace and systrace make of
//! them, also within a page.
//!
//! ```text
//!  sqlite3-697   (  690) [003] d..1.  9507.758123: block_rq_issue: 8,0 WS 4096 () 223490 + 8 none,0,0 [sqlite3]
//!  task   -thread process cpu  flags   seconds     event           by the event's format
//! ```
//!
//! <https://docs.kernel.org/trace/ftrace.html>, "Output format"; the events' formats are those of include/trace/events/block.h.
//! Process and flags may be absent. Sectors have 512 bytes and are counted from the start of the disk; -1 is none. The clock is
//! the one that was set in `trace_clock`: the text does not say which.

use mostrace_bundle::blk_io_trace::action::ta;
use mostrace_bundle::tracepoints::Fields;

use super::requests::{Place, Shape, shape};
use super::sched::{Named, Sched, sched};
use super::seen::{LineReader, Remap, Seen, Taker, malformed};
use super::told::{Told, tells};
use super::words::{Words, device, hexadecimal, number, rsplit_once, scaled, split_once};

#[derive(Default)]
pub(super) struct Ftrace {
    /// Events that the kernel says it overwrote, by its count of entries.
    overwritten: u64,
    /// Events that gaps in the text stand for.
    gaps: u64,
    /// Times without a dot are in ns.
    pub has_whole_ns: bool,
}

/// Returns true if the line is one of ftrace's own.
pub(super) fn is_ftrace(line: &[u8]) -> bool {
    line.starts_with(b"# tracer: ") || parse(line, false).is_some()
}

/// A line of the text.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    pid: u32,
    tgid: Option<u32>,
    cpu: u32,
    time_ns: u64,
    event: &'a [u8],
    fields: &'a [u8],
}

impl LineReader for Ftrace {
    fn line(&mut self, line: &[u8], to: &mut dyn Taker) -> Result<bool, String> {
        let Some(line) = parse(line, self.has_whole_ns) else {
            return Ok(self.note(line, to));
        };
        if let Some(shape) = shape(line.event) {
            let wrong = || {
                let event = String::from_utf8_lossy(line.event);
                malformed(&format!("a {event} of a format that is known"))
            };
            let seen = block_event(&line, shape).ok_or_else(wrong)??;
            to.event(&seen)?;
        } else if line.event == b"block_bio_remap" {
            if let Some(remap) = remap(line.fields) {
                to.remap(remap);
            }
        } else if let Some(tells) = tells(line.event) {
            let told = Told::of(line.pid, line.fields);
            let dev = told.number("dev").and_then(|dev| u32::try_from(dev).ok());
            to.told(tells, dev, &told);
        } else if let Some(sched) = sched(line.event) {
            if let Some(task) = task(sched, line.fields) {
                sched.tell(line.time_ns, line.tgid, task, to);
            }
        } else if line.event == b"tracing_mark_write" {
            // atrace's: trace_event_clock_sync: realtime_ts=1700000000123, in ms.
            let realtime = line
                .fields
                .strip_prefix(b"trace_event_clock_sync: realtime_ts=");
            if let Some(unix_ns) = realtime.and_then(|ms| scaled(ms, 1_000_000)) {
                to.wall_clock(line.time_ns, unix_ns);
            }
        }
        Ok(true)
    }
}

impl Ftrace {
    /// Takes a line that is no event; returns false if it is none of ftrace's.
    fn note(&mut self, line: &[u8], to: &mut dyn Taker) -> bool {
        if let Some((_, gap)) = split_once(line, b" [LOST ") {
            self.gap(Words::of(gap).number(), to);
            return true;
        }
        // trace-cmd's.
        if let Some(dropped) = line.strip_suffix(b"EVENTS DROPPED]") {
            let number = rsplit_once(dropped, b"[").map(|(_, number)| number);
            self.gap(number.and_then(|number| Words::of(number).number()), to);
            return true;
        }
        if let Some((_, entries)) = split_once(line, b"# entries-in-buffer/entries-written: ") {
            let word = Words::of(entries).word().unwrap_or_default();
            let counts = split_once(word, b"/")
                .and_then(|(kept, written)| number(written)?.checked_sub(number(kept)?));
            self.overwritten = self.overwritten.saturating_add(counts.unwrap_or(0));
            to.lost(counts.map(|_| self.lost()));
            return true;
        }
        line.is_empty()
            || line.starts_with(b"#")
            || line.starts_with(b"cpus=")
            || line.starts_with(b"version = ")
            || line.starts_with(b"CPU ")
            || line.starts_with(b"CPU:")
            || line.starts_with(b"##### CPU ")
    }

    /// Takes a gap of so many events, if that is told.
    fn gap(&mut self, lost: Option<u64>, to: &mut dyn Taker) {
        self.gaps = self.gaps.saturating_add(lost.unwrap_or(0));
        to.lost(lost.map(|_| self.lost()));
    }

    /// Events overwritten before the text was read are in both counts.
    fn lost(&self) -> u64 {
        self.overwritten.max(self.gaps)
    }
}

/// The CPU is not looked for beyond this byte: a task's name has 15, and its numbers have less than 40.
const FARTHEST: usize = 256;

/// Parses a line; None if it is no event. A task's name may have blanks, dashes and brackets, so the CPU is looked for.
fn parse(line: &[u8], has_whole_ns: bool) -> Option<Line<'_>> {
    let ahead = line.iter().enumerate().take(FARTHEST);
    let brackets = ahead.filter(|(_, byte)| **byte == b'[');
    let mut cpus = brackets.filter_map(|(at, _)| {
        let (ahead, rest) = line.split_at_checked(at)?;
        Some((ahead.strip_suffix(b" ")?, rest))
    });
    cpus.find_map(|(task, rest)| behind_task(task, rest, has_whole_ns))
}

fn behind_task<'a>(task: &[u8], rest: &'a [u8], has_whole_ns: bool) -> Option<Line<'a>> {
    // A long time may follow without a blank.
    let (cpu, rest) = split_once(rest.strip_prefix(b"[")?, b"]")?;
    let mut words = Words::of(rest);
    let (pid, tgid) = thread(task.trim_ascii_end())?;
    let mut time = words.word()?;
    if !time.ends_with(b":") {
        // The flags.
        time = words.word()?;
    }
    let time = time.strip_suffix(b":")?;
    let time_ns = match time.contains(&b'.') {
        true => scaled(time, 1_000_000_000)?,
        false if has_whole_ns => number(time)?,
        false => return None,
    };
    let event = words.word()?.strip_suffix(b":")?;
    Some(Line {
        pid,
        tgid,
        cpu: u32::try_from(number(cpu)?).ok()?,
        time_ns,
        event,
        fields: words.rest(),
    })
}

/// Returns the thread of `name-thread`, and its process, which may follow: `(  690)`, `(-----)`.
fn thread(task: &[u8]) -> Option<(u32, Option<u32>)> {
    let id = |digits: &[u8]| u32::try_from(number(digits)?).ok();
    let (task, process) = match task.strip_suffix(b")") {
        Some(with_process) => {
            let open = with_process.iter().rposition(|&byte| byte == b'(')?;
            let (task, process) = with_process.split_at_checked(open)?;
            let process = process.get(1..)?.trim_ascii();
            (task.trim_ascii_end(), id(process))
        }
        None => (task, None),
    };
    let dash = task.iter().rposition(|&byte| byte == b'-')?;
    Some((id(task.get(dash.checked_add(1)?..)?)?, process))
}

/// Parses the fields of an event.
fn block_event<'a>(line: &Line<'a>, shape: Shape) -> Option<Result<Seen<'a>, String>> {
    let mut words = Words::of(line.fields);
    let device = device(words.word()?)?;
    let rwbs = match words.rest().starts_with(b"(") {
        true => &b""[..],
        false => words.word()?,
    };
    let command = match shape.has_bytes {
        true => words.number()?,
        false => 0,
    };
    if !shape.is_of_bio {
        while !words.word()?.ends_with(b")") {}
    }
    let sector = words.number()?;
    let mut seen = Seen {
        time_ns: line.time_ns,
        cpu: line.cpu,
        pid: line.pid,
        tgid: line.tgid,
        device,
        ..Seen::default()
    };
    words.eat(if shape.stage == ta::SPLIT { b"/" } else { b"+" })?;
    let extent = words.number()?;
    // The priority, of 6.11 and later: `none,0,0`.
    if !words.rest().starts_with(b"[") {
        words.word()?;
    }
    let last = words.in_brackets()?;
    match shape.has_error() {
        true => seen.error = errno(last)?,
        false => seen.comm = Some(last),
    }
    shape.seen(
        seen,
        Place {
            rwbs,
            sector,
            extent,
            command,
        },
    )
}

fn errno(word: &[u8]) -> Option<u16> {
    u16::try_from(number(word.strip_prefix(b"-").unwrap_or(word))?).ok()
}

/// Parses what an event tells of a task. A name may have anything in it, so the last field that may follow ends it.
fn task(sched: Sched, fields: &[u8]) -> Option<Named<'_>> {
    let (ahead, behind): (&[u8], &[u8]) = match sched {
        Sched::Exec => (b"filename=", b" pid="),
        Sched::Fork => (b" child_comm=", b" child_pid="),
        Sched::NewTask => (b" comm=", b" clone_flags="),
        Sched::Rename => (b" newcomm=", b" oom_score_adj="),
    };
    let (before, rest) = split_once(fields, ahead)?;
    let (name, last) = rsplit_once(rest, behind)?;
    let thread = match sched {
        Sched::Exec | Sched::Fork => Words::of(last).number()?,
        Sched::NewTask | Sched::Rename => Words::of(before.strip_prefix(b"pid=")?).number()?,
    };
    let clone_flags = match sched {
        Sched::NewTask => hexadecimal(Words::of(last).word()?)?,
        _ => 0,
    };
    Some(Named {
        thread: u32::try_from(thread).ok()?,
        name,
        clone_flags,
    })
}

/// Parses a remap. Since 5.12 that of a partition names it twice: `259,3 WS 223490 + 8 <- (259,3) 128`
fn remap(fields: &[u8]) -> Option<Remap> {
    let (below, above) = split_once(fields, b"<- (")?;
    let (from, from_sector) = split_once(above, b")")?;
    let mut words = Words::of(below);
    let to = device(words.word()?)?;
    words.word()?;
    Some(Remap {
        from: device(from)?,
        from_sector: Words::of(from_sector).number()?,
        to,
        to_sector: words.number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::seen::OfProcess;
    use super::*;

    #[derive(Default)]
    struct All {
        seen: Vec<(u64, u32, u64, u32, u32, Option<String>)>,
        remaps: Vec<Remap>,
        lost: Vec<Option<u64>>,
        processes: Vec<String>,
    }

    impl Taker for All {
        fn event(&mut self, seen: &Seen<'_>) -> Result<(), String> {
            let comm = seen.comm.map(|name| String::from_utf8_lossy(name).into());
            self.seen.push((
                seen.stage,
                seen.pid,
                seen.sector,
                seen.bytes,
                u32::from(seen.error),
                comm,
            ));
            Ok(())
        }

        fn remap(&mut self, remap: Remap) {
            self.remaps.push(remap);
        }

        fn process(&mut self, told: OfProcess<'_>) {
            self.processes.push(match told {
                OfProcess::Thread { thread, process } => format!("{thread} of {process}"),
                OfProcess::Name { thread, name, .. } => {
                    format!("{thread} is {}", String::from_utf8_lossy(name))
                }
                other => format!("{other:?}"),
            });
        }

        fn lost(&mut self, events: Option<u64>) {
            self.lost.push(events);
        }
    }

    fn read(text: &str) -> Result<(All, usize), String> {
        let mut all = All::default();
        let mut reader = Ftrace::default();
        let mut others = 0;
        for line in text.lines() {
            others += usize::from(!reader.line(line.as_bytes(), &mut all)?);
        }
        Ok((all, others))
    }

    #[test]
    fn kernels_and_tools_print_an_event_in_many_forms() {
        let (all, others) = read(
            "# tracer: nop
# entries-in-buffer/entries-written: 140/240   #P:4
           <...>-77    (-----) [001] d.h2   100.000001: block_rq_complete: 8,0 WS () 16 + 8 [-5]
 a [0] b-c d-78    (  70) [001] d..1.   100.000002: block_bio_queue: 8,0 WS 16 + 8 [a [0] b-c d]
      sleep-79    [003]   100.000003456: block_rq_issue:       8,0 FF 0 () 18446744073709551615 + 0 none,0,0 [sleep]
      sleep-79    [003] ..... 100.000004: block_rq_issue: 8,0 N 36 (12 00 00) 0 + 0 [sleep]
      sleep-79    [003] ..... 100.000005: block_split: 8,0 W 8 / 12 [sleep]
CPU:3 [LOST 120 EVENTS]
CPU:3 [7 EVENTS DROPPED]
CPU:3 [EVENTS DROPPED]
      sleep-79    [003] ..... 100.000006: block_bio_remap: 259,3 W 136 + 8 <- (259,3) 8
      sleep-79    [003] ..... 100.000006: block_bio_remap: 8,0 W 136 + 8 <- (254,3) 8
      sleep-79    [003] ..... 100.000007: sched_switch: prev_comm=a
something else",
        )
        .unwrap();
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(
            all.seen,
            [
                (ta::COMPLETE, 77, 16, 4096, 5, None),
                (ta::QUEUE, 78, 16, 4096, 0, name("a [0] b-c d")),
                (ta::ISSUE, 79, 0, 0, 0, name("sleep")),
                (ta::ISSUE, 79, 0, 36, 0, name("sleep")),
                (ta::SPLIT, 79, 8, 2048, 0, name("sleep")),
            ]
        );
        let partition = 259 << 20 | 3;
        let remap = |from, from_sector, to| Remap {
            from,
            from_sector,
            to,
            to_sector: 136,
        };
        let remaps = [
            remap(partition, 8, partition),
            remap(254 << 20 | 3, 8, 8 << 20),
        ];
        assert_eq!(all.remaps, remaps);
        assert_eq!(all.lost, [Some(100), Some(120), Some(127), None]);
        assert_eq!(others, 1);
    }

    #[test]
    fn tasks_tell_processes_and_their_names() {
        let (all, _) = read(
            "  sh-77 (   77) [001] ..... 1.000001: sched_process_fork: comm=sh pid=77 child_comm=a child_pid=1 child_pid=78
  sh-77 (   77) [001] ..... 1.000001: task_newtask: pid=78 comm=sh clone_flags=1200000 oom_score_adj=0
  sh-77 (   77) [001] ..... 1.000001: task_newtask: pid=79 comm=sh clone_flags=3d0f00 oom_score_adj=0
  <...>-78 (-----) [001] ..... 1.000001: task_newtask: pid=80 comm=b clone_flags=3d0f00 oom_score_adj=0
  sh-78 (   78) [001] ..... 1.000001: sched_process_exec: filename=/bin/a pid=5 pid=78 old_pid=78
  sh-78 (   78) [001] ..... 1.000001: task_rename: pid=78 oldcomm=a newcomm=b c oom_score_adj=0
  sh-78 (   78) [001] ..... 1.000001: sched_process_exec: filename=x",
        )
        .unwrap();
        let told = [
            "78 is a child_pid=1",
            "78 of 78",
            "78 is sh",
            "79 of 77",
            "79 is sh",
            "80 is b",
            "78 of 78",
            "78 is a pid=5",
            "78 is b c",
        ];
        assert_eq!(all.processes, told);
    }

    /// Each bracket that may begin a CPU costs a look at all that is ahead of it.
    #[test]
    fn a_cpu_is_near() {
        let event = b"a-1 [001] d..1. 100.000002: block_rq_issue: x";
        let behind = |blanks: usize| [&vec![b' '; blanks][..], event].concat();
        let is_read =
            [FARTHEST - 5, FARTHEST].map(|blanks| parse(&behind(blanks), false).is_some());
        assert_eq!(is_read, [true, false]);
    }

    /// trace-cmd prints times of the clock `boot` like this one.
    #[test]
    fn whole_nanoseconds_are_read_if_they_are_some() {
        let line = b"all:  dd-28961 [000]7291075344083: block_plug:           [dd]";
        let times = [true, false].map(|whole| parse(line, whole).map(|line| line.time_ns));
        assert_eq!(times, [Some(7_291_075_344_083), None]);
    }

    #[test]
    fn a_broken_event_is_an_error() {
        let line = "a-1 [001] d..1. 100.000002: block_rq_complete: 8,0 WS () ";
        for fields in ["x + 8 [0]", "16 + 8 [x]", "16 + 99999999999 [0]", "16"] {
            assert!(read(&format!("{line}{fields}")).is_err(), "{fields}");
        }
    }
}
