// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks waiting entries against a plain list that is searched from end to end.

use std::cmp::Reverse;

use proptest::prelude::*;

use super::*;
use crate::attribute::pending::{Blur, Pending, Window, at};

/// A piece of an entry; entries are numbered in the order of their table.
#[derive(Clone, Copy, Debug)]
struct Piece {
    entry: u64,
    sector: u64,
    end: u64,
    skipped: u64,
    time_ns: u64,
    cpu: u32,
    stage: Stage,
}

/// The entries keep their numbers, by which the test recognises them.
impl Blur for u64 {
    fn blur(&mut self, _: &mut u64, _: i64) {}
}

#[derive(Default)]
struct Model {
    ahead: Vec<Piece>,
    pieces: Vec<Piece>,
    entries: u64,
    newest_ns: u64,
    sweep_at: usize,
    dropped: u64,
}

impl Model {
    fn insert(&mut self, head: &RawHead) {
        self.entries += 1;
        let piece = Piece {
            entry: self.entries,
            sector: head.sector.get(),
            end: head.sector.get() + u64::from(head.bytes.get()).div_ceil(512),
            skipped: 0,
            time_ns: head.time_ns.get(),
            cpu: head.cpu.get().into(),
            stage: head.stage,
        };
        if piece.sector < piece.end {
            self.ahead.push(piece);
        }
    }

    /// Lets the entries that were made by then be found.
    fn enter(&mut self, until_ns: u64) {
        let (mut made, ahead): (Vec<Piece>, Vec<Piece>) = std::mem::take(&mut self.ahead)
            .into_iter()
            .partition(|piece| piece.time_ns <= until_ns);
        self.ahead = ahead;
        made.sort_by_key(|piece| piece.time_ns);
        for piece in made {
            self.newest_ns = self.newest_ns.max(piece.time_ns);
            if self.pieces.len() >= self.sweep_at.max(4096) {
                let before = self.pieces.len();
                let oldest = self.newest_ns.saturating_sub(60_000_000_000);
                self.pieces.retain(|piece| piece.time_ns >= oldest);
                self.dropped += (before - self.pieces.len()) as u64;
                self.sweep_at = 2 * self.pieces.len();
            }
            self.put(piece);
        }
    }

    fn put(&mut self, piece: Piece) {
        if piece.sector < piece.end {
            self.pieces.push(piece);
        }
    }

    /// Returns first sector, end, entry and skipped sectors of each match.
    fn take(
        &mut self,
        range: (u64, u64),
        completion: &Completion<'_>,
    ) -> Vec<(u64, u64, u64, u64)> {
        let Completion {
            time_ns,
            i_ns,
            d_ns,
            ..
        } = *completion;
        self.enter(time_ns);
        let from_ns = match (completion.parts[0].q_ns, i_ns.or(d_ns)) {
            (Some(q_ns), _) => q_ns.saturating_sub(50_000),
            (None, Some(first)) => first.saturating_sub(1_000_000_000),
            (None, None) => time_ns.saturating_sub(60_000_000_000),
        };
        let mut fit: Vec<Piece> = self.pieces.clone();
        fit.retain(|p| p.sector < range.1 && p.end > range.0);
        let q_ns = completion.parts[0].q_ns;
        fit.retain(|p| {
            let (from_ns, to_ns) = match q_ns {
                Some(q_ns) if p.stage == Stage::QUEUE => {
                    (q_ns.saturating_sub(1_000_000_000), q_ns + 1_000_000_000)
                }
                _ => (from_ns, time_ns),
            };
            p.time_ns >= from_ns && p.time_ns <= to_ns.min(time_ns)
        });
        fit.sort_by_key(|p| {
            let q = completion.parts[0].q_ns.zip(completion.parts[0].q_cpu);
            let (i, d) = (i_ns.zip(completion.i_cpu), d_ns.zip(completion.d_cpu));
            let made_at = match p.stage {
                Stage::QUEUE if q.is_some() => q,
                Stage::INSERT => i.or(d),
                _ => d.or(i),
            };
            let ahead = made_at.is_some_and(|(ns, cpu)| cpu == p.cpu && p.time_ns <= ns);
            let made_ns = made_at.map_or(time_ns, |(ns, _)| ns);
            let distance = (!ahead, made_ns.abs_diff(p.time_ns));
            let magnitude = (p.end - p.sector).ilog2() / 4;
            (distance, Reverse(p.time_ns), magnitude, p.sector, p.entry)
        });
        let mut taken = Vec::new();
        for piece in fit {
            let (from, to) = (piece.sector.max(range.0), piece.end.min(range.1));
            let free = gaps(from, to, &taken);
            if free.is_empty() {
                continue;
            }
            let piece_at = |sector| piece.skipped + (sector - piece.sector);
            let others = match piece.stage {
                // Another bio's, which is still in flight.
                Stage::QUEUE => gaps(
                    from,
                    to,
                    &free.iter().map(|f| (f.0, f.1, 0, 0)).collect::<Vec<_>>(),
                ),
                _ => Vec::new(),
            };
            taken.extend(free.iter().map(|&(a, b)| (a, b, piece.entry, piece_at(a))));
            let is_it = |p: &Piece| (p.entry, p.sector) == (piece.entry, piece.sector);
            self.pieces.retain(|p| !is_it(p));
            for (sector, end) in others {
                let skipped = piece_at(sector);
                self.put(Piece {
                    sector,
                    end,
                    skipped,
                    ..piece
                });
            }
            self.put(Piece { end: from, ..piece });
            self.put(Piece {
                sector: to,
                skipped: piece_at(to),
                ..piece
            });
        }
        taken.sort_unstable();
        taken
    }
}

/// Returns the ranges between `from` and `to` that are not taken.
fn gaps(from: u64, to: u64, taken: &[(u64, u64, u64, u64)]) -> Vec<(u64, u64)> {
    let mut taken: Vec<_> = taken.iter().filter(|t| t.1 > from && t.0 < to).collect();
    taken.sort_unstable();
    let starts = std::iter::once(from).chain(taken.iter().map(|t| t.1));
    let ends = taken.iter().map(|t| t.0).chain([to]);
    starts.zip(ends).filter(|(from, to)| from < to).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(RawHead),
    /// Inserts this many entries, this far apart in time.
    Burst(RawHead, u64, u64),
    Take(u64, u64, Completion<'static>),
}

/// The numbers are mostly small, so that entries meet, with some of every length.
fn sectors() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..24,
        2 => 0u64..140,
        2 => (0u32..23, 0u64..3).prop_map(|(bits, less)| (1u64 << bits).saturating_sub(less)),
    ]
}

fn head_of() -> impl Strategy<Value = RawHead> {
    let head = (0u64..400, sectors(), sectors(), 0u8..3, 0u16..2);
    head.prop_map(|(t, sector, sectors, stage, cpu)| {
        let mut head = process(0, sector, 512 * u32::try_from(sectors).unwrap()).head;
        head.time_ns = (t * 1000).into();
        head.stage = Stage(stage);
        head.cpu = cpu.into();
        head
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flag = any::<bool>;
    let take = (0u64..400, sectors(), sectors(), (flag(), flag(), flag()));
    let take = take.prop_map(|(t, sector, sectors, (q, i, d))| {
        let mut completion = write(t, sector, 512);
        completion.i_ns = completion.i_ns.filter(|_| i);
        completion.d_ns = completion.d_ns.filter(|_| d);
        let part = Part {
            q_ns: completion.parts[0].q_ns.filter(|_| q),
            ..completion.parts[0]
        };
        completion.parts = vec![part].leak();
        Step::Take(sector, sector + sectors, completion)
    });
    let burst = (head_of(), 0u64..3000, 0u64..60_000_000);
    let step = prop_oneof![
        20 => head_of().prop_map(Step::Insert),
        20 => take,
        1 => burst.prop_map(|(head, count, gap_ns)| Step::Burst(head, count, gap_ns)),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #[test]
    fn entries_are_found_as_in_a_list(steps in steps()) {
        let (mut model, mut pending) = (Model::default(), Pending::new());
        let mut matches = Vec::new();
        for step in steps {
            match step {
                Step::Insert(head) => {
                    model.insert(&head);
                    pending.insert(&head, model.entries);
                }
                Step::Burst(mut head, count, gap_ns) => {
                    for n in 0..count {
                        head.time_ns += gap_ns;
                        // A few of them lie where others are, but too few to crowd.
                        if n % 64 == 0 {
                            head.sector.set(n % 7);
                        } else {
                            head.sector.set(n << 12);
                            head.bytes.set(head.bytes.get().min(4096));
                        }
                        model.insert(&head);
                        pending.insert(&head, model.entries);
                    }
                }
                Step::Take(sector, end, completion) => {
                    let window = Window::of(&completion, &completion.parts[0]);
                    pending.take(sector, end, &window, &mut matches);
                    let mut found = Vec::new();
                    let mut from = sector;
                    while from < end {
                        let (piece, to) = at(&matches, from, end);
                        found.extend(piece.map(|p| (from, to, **p, p.skipped_at(from))));
                        from = to;
                    }
                    prop_assert_eq!(found, model.take((sector, end), &completion));
                }
            }
            prop_assert_eq!(pending.len(), (model.pieces.len() + model.ahead.len()) as u64);
            prop_assert_eq!(pending.dropped(), model.dropped);
        }
    }
}

/// The trace has lost its completions: the latest entries are found, and no lookup examines all.
#[test]
fn where_entries_crowd_the_oldest_are_dropped() {
    let mut pending = Pending::new();
    let mut matches = Vec::new();
    let mut taken = 0;
    for time_us in 1..=20_000u64 {
        let mut head = process(0, 8, 4096).head;
        head.time_ns = (time_us * 1000).into();
        pending.insert(&head, time_us);
        if time_us % 1000 == 0 {
            let mut completion = write(time_us, 8, 4096);
            completion.time_ns = time_us * 1000;
            let window = Window::of(&completion, &completion.parts[0]);
            pending.take(8, 16, &window, &mut matches);
            assert_eq!(matches.len(), 1, "{time_us}");
            taken += 1;
            assert!(pending.len() <= 2048, "{}", pending.len());
        }
    }
    assert_eq!(pending.len() + pending.dropped() + taken, 20_000);
    assert!(pending.dropped() > 15_000);
}

/// One place is written again and again by a disk that is fast enough to do so thousands of times while a table is read ahead.
#[test]
fn entries_that_were_read_ahead_crowd_nobody() {
    let mut pending = Pending::new();
    let mut matches = Vec::new();
    let entry = |time_us: u64| {
        let mut head = process(0, 8, 4096).head;
        head.time_ns = (time_us * 1000).into();
        head
    };
    (1..=20_000).for_each(|time_us| pending.insert(&entry(time_us), time_us));
    for time_us in 1..=20_000 {
        let mut completion = write(time_us, 8, 4096);
        completion.time_ns = time_us * 1000;
        let window = Window::of(&completion, &completion.parts[0]);
        pending.take(8, 16, &window, &mut matches);
        let found: Vec<u64> = matches.iter().map(|found| **found).collect();
        assert_eq!(found, [time_us]);
    }
    assert_eq!((pending.len(), pending.dropped()), (0, 0));
}
