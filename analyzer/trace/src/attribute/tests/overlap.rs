// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests for the same sectors in flight at once: a row names the thread that wrote it, or none.

use proptest::prelude::*;

use super::*;
use crate::blktrace::{Event, LifeCycles};

/// A bio, or a part of one.
#[derive(Clone, Copy, Debug)]
struct Piece {
    number: u64,
    sector: u64,
    sectors: u32,
    pid: u32,
}

/// Adjacent pieces that are issued together.
#[derive(Clone, Debug)]
struct Issue {
    pieces: Vec<Piece>,
    /// True if any thread may issue it, because it was inserted or requeued.
    is_held: bool,
}

impl Issue {
    fn sector(&self) -> u64 {
        self.pieces[0].sector
    }

    fn sectors(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.sectors).sum()
    }
}

/// A block layer that writes down what a tracer and the probes see of it.
struct Queue {
    is_numbered: bool,
    /// True if a bio was merged with another one: a request has the number of its first bio only.
    has_merged: bool,
    time_ns: u64,
    bios: u64,
    waiting: Vec<Issue>,
    issued: Vec<Issue>,
    /// What was completed, in the order of C.
    done: Vec<Issue>,
    events: Vec<Event<'static>>,
    processes: Vec<RawProcess>,
    files: Vec<FileEntry>,
}

/// The thread and the file offset of each sector.
type Known = Vec<(Option<u32>, Option<u64>)>;

/// The CPU on which a thread runs.
fn cpu(pid: u32) -> u32 {
    pid % 2
}

impl Queue {
    fn new(is_numbered: bool) -> Queue {
        Queue {
            is_numbered,
            has_merged: false,
            time_ns: 1_000_000_000,
            bios: 0,
            waiting: Vec::new(),
            issued: Vec::new(),
            done: Vec::new(),
            events: Vec::new(),
            processes: Vec::new(),
            files: Vec::new(),
        }
    }

    fn event(&mut self, action: u64, pid: u32, (sector, sectors): (u64, u32), pdu: &[u64]) {
        self.time_ns += 1000;
        let pdu: Vec<u8> = pdu.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.events.push(Event {
            time_ns: self.time_ns,
            sector,
            action: action | BLK_TC_WRITE,
            bytes: sectors * 512,
            pid,
            cpu: cpu(pid),
            pdu: pdu.leak(),
            ..Event::default()
        });
    }

    fn event_of(&mut self, action: u64, pid: u32, issue: &Issue) {
        let number = [issue.pieces[0].number];
        let pdu = if self.is_numbered { &number[..] } else { &[] };
        self.event(action, pid, (issue.sector(), issue.sectors()), pdu);
    }

    /// Queues a bio, which may be merged with a request that waits, or be split.
    fn queue(&mut self, pid: u32, sector: u64, sectors: u32, merges: bool, splits: bool) {
        self.bios += 1;
        let piece = Piece {
            number: self.bios,
            sector,
            sectors,
            pid,
        };
        let head = RawHead {
            time_ns: (self.time_ns + 999).into(),
            cpu: u16::try_from(cpu(pid)).unwrap().into(),
            stage: Stage::QUEUE,
            ..process(0, sector, sectors * 512).head
        };
        self.processes.push(RawProcess {
            head,
            pid: pid.into(),
            tgid: pid.into(),
            ..process(0, sector, sectors * 512)
        });
        let file = file(0, sector, sectors * 512, "a");
        let kind = file.raw.head.kind;
        self.files.push(FileEntry {
            raw: RawFile {
                head: RawHead { kind, ..head },
                offset: (sector * 512).into(),
                ..file.raw
            },
            ..file
        });
        let mut issue = Issue {
            pieces: vec![piece],
            is_held: false,
        };
        self.event_of(ta::QUEUE, pid, &issue);
        if merges
            && let Some(before) = self.waiting.iter_mut().find(|before| {
                before.is_held && before.sector() + u64::from(before.sectors()) == sector
            })
        {
            before.pieces.push(piece);
            self.has_merged = true;
            return;
        }
        if splits && sectors > 4 {
            self.bios += 1;
            let front = Piece {
                number: self.bios,
                sectors: 4,
                ..piece
            };
            let pdu = [(sector + 4).swap_bytes(), front.number, piece.number];
            let known = if self.is_numbered { 3 } else { 1 };
            self.event(ta::SPLIT, pid, (sector, 4), &pdu[..known]);
            self.waiting.push(Issue {
                pieces: vec![front],
                is_held: false,
            });
            issue.pieces[0].sector += 4;
            issue.pieces[0].sectors -= 4;
        }
        self.waiting.push(issue);
    }

    fn insert(&mut self, which: usize) {
        let fresh: Vec<usize> = (0..self.waiting.len())
            .filter(|&at| !self.waiting[at].is_held)
            .collect();
        if let Some(&at) = fresh.get(which % fresh.len().max(1)) {
            self.waiting[at].is_held = true;
            let issue = self.waiting[at].clone();
            self.event_of(ta::INSERT, issue.pieces[0].pid, &issue);
        }
    }

    fn issue(&mut self, which: usize, anybody: u32) {
        if self.waiting.is_empty() {
            return;
        }
        let issue = self.waiting.remove(which % self.waiting.len());
        let pid = match issue.is_held {
            true => anybody,
            false => issue.pieces[0].pid,
        };
        self.event_of(ta::ISSUE, pid, &issue);
        self.issued.push(issue);
    }

    fn requeue(&mut self, which: usize) {
        if self.issued.is_empty() {
            return;
        }
        let issue = self.issued.remove(which % self.issued.len());
        self.event_of(ta::REQUEUE, 9, &issue);
        self.waiting.push(Issue {
            is_held: true,
            ..issue
        });
    }

    fn complete(&mut self, which: usize) {
        if self.issued.is_empty() {
            return;
        }
        let issue = self.issued.remove(which % self.issued.len());
        self.event_of(ta::COMPLETE, 9, &issue);
        self.done.push(issue);
    }

    fn step(&mut self, (what, which, pid, sector, sectors): Step) {
        match what {
            0..8 => self.queue(pid, sector * 4, sectors * 4, what < 3, what == 3),
            8..10 => self.insert(which),
            10..16 => self.issue(which, pid),
            16 => self.requeue(which),
            _ => self.complete(which),
        }
    }

    /// Attributes what was completed. Returns for each completion the thread and file offset of each of its sectors.
    fn attribute(self) -> Vec<Known> {
        let tables = [
            table(self.processes.iter().map(|p| record(p.as_bytes(), b""))),
            table(self.files.iter().map(file_record)),
        ];
        let mut readers = tables
            .each_ref()
            .map(|table| TableReader::new(&table[..], Path::new("table"), false).unwrap());
        let mut attributor = Attributor::new(readers.iter_mut().collect(), None);
        let mut cycles = LifeCycles::new();
        let mut rows: Vec<Vec<Row>> = Vec::new();
        for event in &self.events {
            if let Some(completion) = cycles.push(event) {
                rows.push(attributor.push(&completion).unwrap().1.to_vec());
            }
        }
        let names = attributor.finish(None).unwrap();
        let sectors = |row: &Row| {
            let pid = names.process(row.process).pid;
            let offset = row.file_offset;
            let offset_at = move |at| offset.map(|offset| offset + at * 512);
            (0..u64::from(row.bytes) / 512).map(move |at| (pid, offset_at(at)))
        };
        let of_rows = |rows: Vec<Row>| rows.iter().flat_map(sectors).collect();
        rows.into_iter().map(of_rows).collect()
    }
}

/// What is done, with which of several, by which thread, at which sector and of which length (in units of four sectors).
type Step = (u8, usize, u32, u64, u32);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0u8..22, 0usize..8, 1u32..5, 0u64..4, 1u32..4);
    prop::collection::vec(step, 0..80)
}

/// Returns what is known of each completed sector, beside the truth, and whether bios were merged.
fn answers(steps: &[Step], is_numbered: bool) -> (Vec<(Issue, Known)>, bool) {
    let mut queue = Queue::new(is_numbered);
    for step in steps {
        queue.step(*step);
    }
    let (done, has_merged) = (queue.done.clone(), queue.has_merged);
    let known = queue.attribute();
    (std::iter::zip(done, known).collect(), has_merged)
}

proptest! {
    // Unoptimised, as for mutants, a case takes ten times as long.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 1000 } else { 5000 }))]

    /// Whatever is in flight at once, no sector has the thread or the offset of another bio. Where the events have the bios'
    /// numbers, the thread of each is known, unless bios were merged.
    #[test]
    fn nobody_is_named_for_what_another_wrote(steps in steps(), is_numbered in any::<bool>()) {
        let (answers, has_merged) = answers(&steps, is_numbered);
        for (issue, sectors) in answers {
            prop_assert_eq!(sectors.len(), issue.sectors() as usize);
            let truth = issue.pieces.iter().flat_map(|piece| {
                (0..u64::from(piece.sectors)).map(|at| (piece.pid, (piece.sector + at) * 512))
            });
            for ((pid, offset), truth) in sectors.iter().zip(truth) {
                prop_assert!(pid.is_none_or(|pid| pid == truth.0), "{pid:?} {truth:?} {issue:?}");
                prop_assert!(offset.is_none_or(|offset| offset == truth.1));
                if is_numbered && !has_merged {
                    prop_assert_eq!(*pid, Some(truth.0));
                }
            }
        }
    }
}

/// Two threads write the same sectors, a third one more of them; the scheduler holds all. It is unknown whose request is
/// whose among the two, and the third is not named for them.
#[test]
fn a_longer_request_in_flight_is_not_taken_for_a_twin() {
    let queue = |pid, blocks| (7, 0, pid, 0, blocks);
    let told = [
        queue(1, 2),
        queue(2, 2),
        queue(3, 3),
        (8, 0, 0, 0, 0),
        (8, 0, 0, 0, 0),
        (8, 0, 0, 0, 0),
        (10, 0, 4, 0, 0),
        (10, 0, 4, 0, 0),
        (10, 0, 4, 0, 0),
        (17, 0, 0, 0, 0),
        (17, 0, 0, 0, 0),
        (17, 0, 0, 0, 0),
    ];
    let pids = |is_numbered| {
        let (answers, _) = answers(&told, is_numbered);
        let pids = answers.iter().map(|(_, sectors)| sectors[0].0);
        pids.collect::<Vec<_>>()
    };
    assert_eq!(pids(false), [None, None, Some(3)]);
    assert_eq!(pids(true), [Some(1), Some(2), Some(3)]);
}
