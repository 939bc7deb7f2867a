// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks debugfs about many inodes. A debugfs process uses one processor, so there is one session per processor; the answers of one
//! share of the questions are read while the next share is processed.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::process::Debugfs;
use super::session::{Question, Session};
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::PartProgress;

/// Number of questions in a session: enough for the start-up time not to matter, with about 1 MB of answers.
const SHARE: usize = 8192;
/// The number of failures after which the remaining inodes are left out. debugfs may crash at an inode of a damaged image; it is
/// then started again with the next inode.
const MAX_FAILURES: usize = 20;

/// A session that took too long counts as this many failures, because each one takes so long to wait for.
const STALLED: usize = 10;

/// Asks all questions. `each` is called with the number of a question and its answer, in order. All answers together have at most
/// `lines` lines.
pub fn ask(
    image: &Image,
    lines: u64,
    questions: &[Question],
    notices: &mut Notices,
    part: PartProgress,
    each: impl FnMut(usize, &[u8]),
) -> Result<()> {
    if questions.is_empty() {
        return Ok(());
    }
    let file = image
        .file()
        .ok_or_else(|| image.unsupported("image", "debugfs reads files and devices alone"))?;
    let debugfs = &Debugfs { image, file, lines };
    let shares: Vec<&[Question]> = questions.chunks(SHARE).collect();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let taken = AtomicUsize::new(0);
    let (ended, sessions) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..processors.min(shares.len()) {
            let (shares, taken, ended) = (&shares, &taken, ended.clone());
            scope.spawn(move || {
                loop {
                    let nth = taken.fetch_add(1, Relaxed);
                    let Some(share) = shares.get(nth) else { break };
                    // The receiver is gone after an error was returned.
                    if ended.send((nth, Session::run(debugfs, share))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(ended);
        let reader = Reader {
            debugfs,
            notices,
            part,
            each,
            failures: 0,
        };
        reader.read_all(&shares, sessions)
    })
}

struct Reader<'a, F> {
    debugfs: &'a Debugfs<'a>,
    notices: &'a mut Notices,
    part: PartProgress<'a>,
    each: F,
    failures: usize,
}

impl<F: FnMut(usize, &[u8])> Reader<'_, F> {
    /// Reads the sessions in the order of their questions, whatever the order in which they end.
    fn read_all<'q>(
        mut self,
        shares: &[&'q [Question]],
        sessions: Receiver<(usize, Result<Session<'q>>)>,
    ) -> Result<()> {
        let mut early = HashMap::new();
        let mut from = 0usize;
        for (nth, share) in shares.iter().enumerate() {
            while !early.contains_key(&nth) {
                let Ok((other, session)) = sessions.recv() else {
                    return Ok(());
                };
                early.insert(other, session);
            }
            if let Some(session) = early.remove(&nth) {
                self.read_share(from, share, session?)?;
            }
            if self.failures > MAX_FAILURES {
                self.notices
                    .push("debugfs failed too often, the other inodes are left out");
                break;
            }
            from = from.saturating_add(share.len());
            self.part.add(share.len());
        }
        Ok(())
    }

    /// Reads one session. If it broke off, the question at which it did is left out and the rest is asked again.
    fn read_share(&mut self, from: usize, share: &[Question], session: Session) -> Result<()> {
        let each = &mut self.each;
        let first = session.read(self.debugfs.image, self.notices, |nth, answer| {
            each(from.saturating_add(nth), answer);
        })?;
        let mut answered = first;
        let (mut why, mut stalled) = (session.why(), session.is_stalled());
        while let Some(question) = share.get(answered) {
            let inode = question.inode;
            self.notices.push(format!(
                "inode {inode}: debugfs {why}, its blocks are unmapped"
            ));
            self.failures = self
                .failures
                .saturating_add(if stalled { STALLED } else { 1 });
            answered = answered.saturating_add(1);
            let rest = share.get(answered..).unwrap_or(&[]);
            if rest.is_empty() || self.failures > MAX_FAILURES {
                break;
            }
            let again = Session::run(self.debugfs, rest)?;
            let at = from.saturating_add(answered);
            let each = &mut self.each;
            let more = again.read(self.debugfs.image, self.notices, |nth, answer| {
                each(at.saturating_add(nth), answer);
            })?;
            answered = answered.saturating_add(more);
            (why, stalled) = (again.why(), again.is_stalled());
        }
        Ok(())
    }
}
