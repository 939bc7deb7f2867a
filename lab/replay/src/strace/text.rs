// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of one of strace's texts, each put together from its lines.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::clock::{Clock, Kind};
use super::line::{self, Line};
use crate::{Error, Result};

/// The reasons why lines are left out.
const CUT: &str = "its line is cut off";
const NO_LINE: &str = "the line is not one of strace's";
const NO_BEGIN: &str = "its beginning is not in the text";

const SAID: &str = "strace: Process ";

/// Puts lines together: on a terminal, strace may say in the middle of a line that it follows another process.
pub(super) fn whole(text: &str) -> Cow<'_, str> {
    let said_within = |line: &str| {
        let at = line.rfind(SAID)?;
        (at > 0 && line.ends_with(" attached")).then_some(at)
    };
    if !text.lines().any(|line| said_within(line).is_some()) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut begun = "";
    for line in text.lines() {
        if let Some((first, said)) = said_within(line).and_then(|at| line.split_at_checked(at)) {
            if !begun.is_empty() {
                out.extend([begun, "\n"]);
            }
            begun = first;
            out.extend([said, "\n"]);
        } else if !begun.is_empty() && line.starts_with(SAID) {
            out.extend([line, "\n"]);
        } else {
            out.extend([begun, line, "\n"]);
            begun = "";
        }
    }
    out.push_str(begun);
    out.into()
}

/// What a text tells.
pub(super) struct Text<'t> {
    pub events: Vec<Event<'t>>,
    pub kind: Kind,
    /// True if calls returned of which it is not known how long they took.
    pub lacks_durations: bool,
    /// The number of lines that are left out, by reason.
    pub left_out: Vec<(&'static str, u64)>,
}

/// A thing that happened to a thread.
pub(super) struct Event<'t> {
    /// When it counts: a close and a clone when they begin, since their effects may be used before they return.
    pub at_ns: u64,
    pub thread: u32,
    pub what: What<'t>,
}

pub(super) enum What<'t> {
    Call(TracedCall<'t>),
    /// A call of this name did not return.
    Unreturned(&'t str),
    Exited,
    /// The thread with this number has the number of this one from now on.
    Superseded(u32),
}

/// A call that returned.
pub(super) struct TracedCall<'t> {
    pub name: &'t str,
    /// What is behind the parenthesis that opens.
    pub text: Cow<'t, str>,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// A call whose end is in a later line.
struct Begun<'t> {
    name: &'t str,
    text: &'t str,
    begin_ns: u64,
}

struct Builder<'t> {
    clock: Clock,
    /// The thread whose call is unfinished in the line before.
    before: Option<u32>,
    begun: HashMap<u32, Begun<'t>>,
    text: Text<'t>,
}

impl<'t> Text<'t> {
    /// Reads a text. Lines that are not strace's are counted, since a program's own output may be between them.
    ///
    /// # Errors
    /// Returns an error that names the first line if none is strace's.
    pub fn read(path: &Path, text: &'t str) -> Result<Text<'t>> {
        let lines: Vec<Option<Line<'t>>> = text.lines().map(Line::parse).collect();
        let kind = Kind::of(lines.iter().flatten().filter_map(|line| line.stamp));
        let mut threads = Threads::new(path, &lines);
        let mut builder = Builder {
            clock: Clock::new(kind),
            before: None,
            begun: HashMap::new(),
            text: Text {
                events: Vec::new(),
                kind,
                lacks_durations: false,
                left_out: Vec::new(),
            },
        };
        let mut unread = Vec::new();
        for (number, line) in (1_u64..).zip(&lines) {
            let Some(line) = line else {
                unread.push(number);
                continue;
            };
            if line.what == line::What::Summary {
                break;
            }
            let thread = threads.of(line);
            if !builder.line(thread, line) {
                unread.push(number);
            }
        }
        let is_cut = unread
            .last()
            .is_some_and(|last| *last == lines.len() as u64);
        if let (Some(first), true) = (unread.first(), builder.text.events.is_empty()) {
            return Err(Error::Line {
                path: path.to_owned(),
                line: *first,
                why: "it is not a line of strace's output".to_owned(),
            });
        }
        let others = (unread.len() as u64).saturating_sub(u64::from(is_cut));
        builder
            .text
            .left_out
            .extend([(CUT, u64::from(is_cut)), (NO_LINE, others)]);
        Ok(builder.finish())
    }
}

impl<'t> Builder<'t> {
    /// Takes a line; returns false if it is not whole.
    fn line(&mut self, thread: u32, line: &Line<'t>) -> bool {
        let before = self.before.take();
        if let line::What::Continued { text } = line.what {
            let Some((thread, begun)) = before.and_then(|id| self.begun.remove_entry(&id)) else {
                return false;
            };
            let whole = [begun.text, text].concat();
            return self.call(
                thread,
                begun.name,
                whole.into(),
                begun.begin_ns,
                begun.begin_ns,
            );
        }
        let now = self.clock.at(line.stamp);
        match line.what {
            line::What::Call { name, text } => self.call(thread, name, text.into(), now, now),
            line::What::Resumed { name, text } => {
                match self
                    .begun
                    .remove(&thread)
                    .filter(|begun| begun.name == name)
                {
                    Some(begun) => {
                        let whole = [begun.text, text].concat();
                        self.call(thread, name, whole.into(), begun.begin_ns, now)
                    }
                    None => {
                        self.text.left_out.push((NO_BEGIN, 1));
                        true
                    }
                }
            }
            line::What::Unfinished { name, text } => {
                let begin_ns = now;
                self.unreturned(thread, now);
                self.before = Some(thread);
                self.begun.insert(
                    thread,
                    Begun {
                        name,
                        text,
                        begin_ns,
                    },
                );
                true
            }
            line::What::Detached { name } => self.add(now, thread, What::Unreturned(name)),
            line::What::Exited => {
                self.unreturned(thread, now);
                self.add(now, thread, What::Exited)
            }
            line::What::Superseded(by) => {
                self.unreturned(thread, now);
                if let Some(begun) = self.begun.remove(&by) {
                    self.begun.insert(thread, begun);
                }
                self.add(now, thread, What::Superseded(by))
            }
            line::What::Attached(_)
            | line::What::Nothing
            | line::What::Continued { .. }
            | line::What::Summary => true,
        }
    }

    fn add(&mut self, at_ns: u64, thread: u32, what: What<'t>) -> bool {
        self.text.events.push(Event {
            at_ns,
            thread,
            what,
        });
        true
    }

    /// Notes that what the thread had begun does not return.
    fn unreturned(&mut self, thread: u32, now: u64) {
        if let Some(begun) = self.begun.remove(&thread) {
            self.add(now, thread, What::Unreturned(begun.name));
        }
    }

    fn call(
        &mut self,
        thread: u32,
        name: &'t str,
        text: Cow<'t, str>,
        begin: u64,
        now: u64,
    ) -> bool {
        let Some(returned) = line::returned(&text) else {
            return false;
        };
        // A call that never returns has no duration.
        self.text.lacks_durations |=
            returned.duration_ns.is_none() && !returned.value.starts_with('?');
        let end_ns = self.clock.end(begin, now, returned.duration_ns);
        let at_once = ["close", "close_range", "clone", "clone3", "fork", "vfork"].contains(&name);
        let call = TracedCall {
            name,
            text,
            begin_ns: begin,
            end_ns,
        };
        self.add(
            if at_once { begin } else { end_ns },
            thread,
            What::Call(call),
        )
    }

    fn finish(mut self) -> Text<'t> {
        let now = self.clock.at(None);
        let mut left: Vec<u32> = self.begun.keys().copied().collect();
        left.sort_unstable();
        for thread in left {
            self.unreturned(thread, now);
        }
        self.text
    }
}

/// The thread of lines that name none: strace writes these while it follows a single process.
struct Threads {
    first: u32,
    live: BTreeSet<u32>,
}

impl Threads {
    fn new(path: &Path, lines: &[Option<Line<'_>>]) -> Threads {
        let of_file = path
            .extension()
            .and_then(|number| number.to_str()?.parse().ok());
        let mut attached = Vec::new();
        let mut children: BTreeSet<u32> = BTreeSet::new();
        for line in lines.iter().flatten() {
            match line.what {
                line::What::Attached(pid) => attached.push(pid),
                line::What::Call { name, text } | line::What::Resumed { name, text }
                    if ["clone", "clone3", "fork", "vfork"].contains(&name) =>
                {
                    let value = text.rsplit_once(" = ").map(|(_, value)| value);
                    let child: Option<u32> =
                        value.and_then(|value| value.split([' ', '<']).next()?.parse().ok());
                    children.extend(child);
                }
                _ => {}
            }
        }
        let is_child = |pid: &u32| children.contains(pid) || attached.contains(pid);
        let named = lines.iter().flatten().filter_map(|line| line.pid);
        let parent = named.into_iter().find(|pid| !is_child(pid));
        // With -p, strace says first to what it attached.
        let first = of_file
            .or(parent)
            .or(attached.first().copied())
            .unwrap_or(0);
        Threads {
            first,
            live: BTreeSet::from([first]),
        }
    }

    fn of(&mut self, line: &Line<'_>) -> u32 {
        let only = self.live.first().filter(|_| self.live.len() == 1);
        let thread = line.pid.or(only.copied()).unwrap_or(self.first);
        match line.what {
            line::What::Attached(pid) => drop(self.live.insert(pid)),
            line::What::Exited => drop(self.live.remove(&thread)),
            line::What::Nothing | line::What::Continued { .. } | line::What::Summary => {}
            _ => drop(self.live.insert(thread)),
        }
        thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strace_says_within_a_line_is_moved_in_front_of_it() {
        let text =
            "a(1) = 1\nwrite(strace: Process 5 attached\nstrace: Process 6 attached\n3) = 0\nb(2";
        let expected =
            "a(1) = 1\nstrace: Process 5 attached\nstrace: Process 6 attached\nwrite(3) = 0\nb(2\n";
        assert_eq!(whole(text), expected);
        assert!(matches!(whole("a(1) = 1\n"), Cow::Borrowed(_)));
    }

    fn threads(text: &str) -> Vec<(u32, Option<&str>)> {
        let read = Text::read(Path::new("a.7"), text).unwrap();
        let events = read.events.into_iter().map(|event| match event.what {
            What::Call(call) => (event.thread, Some(call.name)),
            _ => (event.thread, None),
        });
        events.collect()
    }

    /// A line names its thread only while strace follows several.
    #[test]
    fn a_line_without_a_thread_is_of_the_one_that_is_left() {
        let fork = "open(1) = 1\nfork() = 12\nstrace: Process 12 attached\n[pid 12] read(1) = 1\n[pid 7] close(1) = 0\n";
        let text = format!("{fork}[pid 7] +++ exited with 0 +++\nfsync(1) = 0\n");
        let read = Text::read(Path::new("a"), &text).unwrap();
        let of: Vec<u32> = read.events.iter().map(|event| event.thread).collect();
        assert_eq!(of, [7, 7, 12, 7, 7, 12]);
        assert_eq!(threads("fsync(1) = 0\n"), [(7, Some("fsync"))]);
    }

    #[test]
    fn what_is_cut_off_is_counted() {
        let text = "<... read resumed>) = 1\nwrite(1 <unfinished ...>\nhello\nfsync(1) = 0\nclo";
        let read = Text::read(Path::new("a"), text).unwrap();
        let left: Vec<u64> = read.left_out.iter().map(|(_, lines)| *lines).collect();
        assert_eq!(left, [1, 1, 1]);
        let why: Vec<&str> = read.left_out.iter().map(|(why, _)| *why).collect();
        assert_eq!(why, [NO_BEGIN, CUT, NO_LINE]);
        assert_eq!(threads(text), [(7, Some("fsync")), (7, None)]);
        assert!(Text::read(Path::new("a"), "hello\n").is_err());
    }
}
