// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scenes.

use super::*;

/// A step of a random scene.
#[derive(Clone, Debug)]
enum Step {
    Handle {
        who: usize,
        what: usize,
        overlaps: bool,
        homes: Vec<u64>,
    },
    Commit,
    Home {
        block: u64,
        blocks: u32,
    },
    Data {
        who: usize,
        block: u64,
        dirtied: bool,
    },
    Call {
        who: usize,
        lasted_us: u64,
    },
    Superblock,
}

fn step() -> impl Strategy<Value = Step> {
    let homes = prop::collection::btree_set(1u64..12, 0..6);
    prop_oneof![
        4 => (0usize..3, 0usize..3, any::<bool>(), homes).prop_map(|(who, what, overlaps, homes)| {
            Step::Handle { who, what, overlaps, homes: homes.into_iter().map(|b| b * 8).collect() }
        }),
        2 => Just(Step::Commit),
        2 => (1u64..10, 1u32..4).prop_map(|(block, blocks)| Step::Home { block, blocks }),
        2 => (0usize..3, 100u64..120, any::<bool>())
            .prop_map(|(who, block, dirtied)| Step::Data { who, block, dirtied }),
        1 => (0usize..3, 1u64..20_000).prop_map(|(who, lasted_us)| Step::Call { who, lasted_us }),
        1 => Just(Step::Superblock),
    ]
}

fn play(steps: &[Step]) -> Scene {
    let who = [SQLITE, OTHER, KWORKER];
    let what = [CREATE, UNLINK, FLUSHER];
    let mut s = Scene::new();
    let mut homes: Vec<u64> = Vec::new();
    for step in steps {
        match step {
            Step::Handle {
                who: by,
                what: of,
                overlaps,
                homes: dirtied,
            } => {
                let new: Vec<u64> = dirtied
                    .iter()
                    .copied()
                    .filter(|h| !homes.contains(h))
                    .collect();
                let lasted_us = if *overlaps { 2500 } else { 50 };
                let handle = HandleOf {
                    thread: who[*by],
                    overlaps: *overlaps,
                    lasted_us,
                    ..what[*of]
                };
                s.handle(handle, &new);
                homes.extend(new);
            }
            Step::Commit => {
                s.commit(2000, &homes);
                homes.clear();
            }
            Step::Home { block, blocks } => {
                s.owned(WRITE, block * 8, blocks * 4096, KWORKER, Origin::BDEV);
            }
            Step::Data {
                who: by,
                block,
                dirtied,
            } => {
                s.owned(WRITE, block * 8, 4096, who[*by], Origin::FILE);
                s.file(block * 8, 4096, 12, 0, b"a.db");
                if *dirtied {
                    s.dirtier(block * 8, 4096, who[*by]);
                }
            }
            Step::Call { who: by, lasted_us } => {
                let lasted_us = *lasted_us;
                s.call(CallOf {
                    thread: who[*by],
                    lasted_us,
                    ..FSYNC
                });
            }
            Step::Superblock => {
                s.request(WRITE | SYNC, 1992, 4096, JBD2);
                s.journal(1992, 4096, JBD2, Origin::JOURNAL, Jbd2::SUPERBLOCK, NONE);
            }
        }
    }
    // A trace needs at least one event.
    s.write_file(800, 4096, 12, b"a.db");
    s
}

proptest! {
    #![proptest_config(test_support::property::config(file!(), 24))]

    /// Whatever happens, the causers' shares sum to the rows' bytes.
    #[test]
    fn causes_have_the_bytes_and_requests_of_classes(steps in prop::collection::vec(step(), 0..40), equal in any::<bool>()) {
        let s = play(&steps);
        let tmp = tempfile::tempdir().unwrap();
        let path = s.save(tmp.path());
        let options = mostrace_tables::analysis::Options {
            causes: Some(if equal { mostrace_trace::causes::Sharing::Equal } else { mostrace_trace::causes::Sharing::First }),
            ..Default::default()
        };
        let analysis = mostrace_tables::analysis::Analysis::open(&path, &options).unwrap();
        let groupings = ["class", "cause_process", "cause_op", "cause_file", "cause_known", "cause_pid", "causes"];
        let by = groupings.map(|name| mostrace_tables::tables::Grouping {
            by: vec![mostrace_tables::facts::Column::find(name).unwrap()],
            top: None,
 every: None,
        });
        let whole = mostrace_tables::tables::summed(&analysis.facts, by[0].clone(), None).unwrap();
        let several = mostrace_tables::tables::all_summed(&analysis.facts, &by, None).unwrap();
        let tree = mostrace_tables::tables::tree::of(&analysis.facts, &analysis.databases, "ext4", None).unwrap();
        prop_assert_eq!(tree.leaves(), whole.total.write_bytes);
        // The fold sums up what the tables do.
        let mut charging = mostrace_trace::charged::Charging::default();
        let recordings = mostrace_trace::recording::Recording::open_all(std::slice::from_ref(&path), false).unwrap();
        let reading = mostrace_trace::reading::read(recordings, &options, &|_| {}, &mut charging).unwrap();
        let charged = charging.charged(&reading.origins, reading.manifest.as_ref(), &reading.databases);
        prop_assert_eq!(charged.total, whole.total);
        prop_assert_eq!(charged.sums(), mostrace_tables::tables::for_the_answer(&analysis.facts, None).unwrap());
        let of_fold = charged.tree();
        prop_assert_eq!(of_fold.total, tree.total);
        prop_assert_eq!(of_fold.owners, tree.owners.clone());
        let owners: u64 = tree.owners.iter().map(|owner| owner.totals.flushes).sum();
        prop_assert_eq!(owners, whole.total.flushes);
        // Cut into shares or not, the groups by class are the same.
        prop_assert_eq!(&several[0].groups, &whole.groups);
        for (groups, name) in several.iter().zip(groupings) {
            prop_assert_eq!(groups.total, whole.total, "{}", name);
            let sum = |field: fn(&mostrace_trace::sums::Totals) -> u64| {
                groups.groups.iter().map(|(_, totals)| field(totals)).sum::<u64>()
            };
            prop_assert_eq!(sum(|t| t.write_bytes), whole.total.write_bytes, "{}", name);
            prop_assert_eq!(sum(|t| t.read_bytes), whole.total.read_bytes, "{}", name);
            prop_assert!(sum(|t| t.requests) >= whole.total.requests, "{}", name);
        }
    }
}
