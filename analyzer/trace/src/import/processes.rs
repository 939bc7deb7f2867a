// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace tells of processes, at whatever place of it: it is read ahead of the import.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::seen::OfProcess;

/// The most threads, processes and apps; there are no more process numbers on most machines.
const MANY: usize = 1 << 17;

/// The processes and users of a trace.
#[derive(Default)]
pub(super) struct Processes {
    /// The process of each thread; None if several are told, as numbers are used again.
    of_threads: HashMap<u32, Option<u32>, RandomState>,
    /// The user of each process; None likewise.
    users: HashMap<u32, Option<u32>, RandomState>,
    /// Lines of a [`mostrace_bundle::Packages`].
    packages: Vec<u8>,
}

impl Processes {
    pub fn take(&mut self, told: OfProcess<'_>) {
        match told {
            OfProcess::Thread { thread, process } => tell(&mut self.of_threads, thread, process),
            OfProcess::User { process, user } => tell(&mut self.users, process, user),
            OfProcess::Package { name, user } => {
                let is_plain = !name.is_empty() && !name.iter().any(u8::is_ascii_whitespace);
                let line = [name, format!(" {user}\n").as_bytes()].concat();
                let size = self.packages.len().saturating_add(line.len());
                if is_plain && size as u64 <= mostrace_bundle::packages::LIMIT {
                    self.packages.extend(line);
                }
            }
            OfProcess::Name { .. } => {}
        }
    }

    /// Returns true if no thread's process is known.
    pub fn is_empty(&self) -> bool {
        self.of_threads.is_empty()
    }

    /// Returns the process of a thread.
    pub fn of(&self, thread: u32) -> Option<u32> {
        *self.of_threads.get(&thread)?
    }

    /// Returns the user of a process.
    pub fn user(&self, process: u32) -> Option<u32> {
        *self.users.get(&process)?
    }

    /// Returns the text of the apps; None if there are none.
    pub fn packages(&self) -> Option<&[u8]> {
        (!self.packages.is_empty()).then_some(&self.packages)
    }
}

fn tell(of: &mut HashMap<u32, Option<u32>, RandomState>, who: u32, told: u32) {
    if of.len() < MANY || of.contains_key(&who) {
        let known = of.entry(who).or_insert(Some(told));
        if *known != Some(told) {
            *known = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_used_again_is_unknown() {
        let mut processes = Processes::default();
        let thread = |thread, process| OfProcess::Thread { thread, process };
        for told in [thread(7, 7), thread(8, 7), thread(8, 7), thread(9, 7)] {
            processes.take(told);
        }
        processes.take(thread(9, 9));
        assert_eq!(
            [7, 8, 9, 10].map(|t| processes.of(t)),
            [Some(7), Some(7), None, None]
        );
        for (name, user) in [(&b"com.a"[..], 10_001), (b"b 10\nc", 10_002), (b"", 3)] {
            processes.take(OfProcess::Package { name, user });
        }
        assert_eq!(processes.packages(), Some(&b"com.a 10001\n"[..]));
    }
}
