// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of small loads, and of samples.

use std::path::Path;

use std::time::Duration;

use super::ftl::Collector;
use super::load::{Act, What};
use super::*;
use crate::reading::{self, Options};
use crate::recording::Recording;

const BEFORE: &str = "before";

/// A drive of 64 MiB with blocks of 256 KiB.
fn drive() -> Drive {
    Drive {
        capacity: 64 << 20,
        spare: 0.07,
        page: None,
        block: 256 << 10,
        unit: 4096,
        collector: Collector::Greedy,
        streams: 1,
        fill: 0.9,
        discard: Discards::AsRecorded,
        fstrim_every: None,
    }
}

/// A file of 64 units that is written again and again, and 960 units each of which is written, discarded and left.
fn load() -> Load {
    let mut acts = Vec::new();
    for nth in 0..960 {
        // Units far from each other follow one another, so that blocks have units of all ages.
        let first = 64 + nth * 487 % 960;
        let hot = nth * 5 % 64;
        acts.push((What::Write(1), hot..hot + 1));
        acts.push((What::Write(2), first..first + 1));
        acts.push((What::Flush, 0..0));
        if nth >= 480 {
            let first = 64 + (nth - 480) * 487 % 960;
            acts.push((What::Discard, first..first + 1));
        }
    }
    let owner = |layer: &str| Owner {
        layer: layer.into(),
        ..Owner::default()
    };
    Load {
        acts: acts
            .into_iter()
            .map(|(what, units)| Act { what, units })
            .collect(),
        units: 1024,
        writes: 1920,
        discards: 480,
        bytes: 1920 * 4096,
        duration_ns: 10_000_000_000,
        device_bytes: Some(8 << 20),
        owners: [BEFORE, "hot", "cold"].map(owner).into(),
        free: std::iter::once(64..544).collect(),
    }
}

fn model(drive: &Drive) -> Model {
    Model::of(drive, &load()).unwrap()
}

#[test]
fn parts_sum_to_the_whole() {
    let model = model(&drive());
    assert_eq!(
        (model.copies, model.own_share, model.rounded),
        (8, 0.5, 1.0)
    );
    let shares: f64 = model.at.parts.iter().map(|part| part.share).sum();
    let moved: f64 = model.at.parts.iter().map(|part| part.moved).sum();
    assert!((shares - 1.0).abs() < 1e-9 && (moved - model.at.moved).abs() < 1e-9);
    assert!((1.0 + model.at.moved + model.at.padded - model.at.ratio).abs() < 1e-9);
    assert!(model.at.parts.iter().any(|part| part.owner.layer == BEFORE));
    assert!(
        model.at.is_steady
            && model.at.least <= model.at.ratio
            && model.at.ratio <= model.at.greatest
    );
    let again = Model::of(&drive(), &load()).unwrap();
    assert_eq!(model, again);
}

#[test]
fn a_full_drive_costs_more_and_trim_saves() {
    let model = model(&drive());
    let rises = model
        .curve
        .windows(2)
        .all(|two| two[1].ratio > two[0].ratio * 0.99);
    assert!(rises, "{:#?}", model.curve);
    // New, full to the level, full of what was deleted, after fstrim.
    assert_eq!(model.new, 1.0);
    assert!(model.new < model.at.ratio && model.at.ratio < model.full.ratio);
    assert!(model.after_fstrim.ratio < model.full.ratio);
    let with = |discard| {
        let drive = Drive { discard, ..drive() };
        Model::of(&drive, &load()).unwrap().at.ratio
    };
    let (none, recorded, always) = (with(Discards::None), model.at.ratio, with(Discards::Always));
    println!("discards: none {none:.3}, recorded {recorded:.3}, always {always:.3}");
    assert!(none > recorded * 1.01 && always < recorded * 1.01);
}

/// What is shown beside a level does not change it: each drive has a history of its own.
#[test]
fn a_level_is_that_of_a_drive_that_was_filled_to_it() {
    let at = |fill| model(&Drive { fill, ..drive() });
    let curve = at(0.85).curve;
    let shown = curve.iter().find(|level| level.fill == 0.9).unwrap();
    assert_eq!(*shown, at(0.9).at);
}

#[test]
fn discards_now_and_then_make_a_saw() {
    let every = Some(Duration::from_secs(1000));
    let model = model(&Drive {
        discard: Discards::None,
        fstrim_every: every,
        ..drive()
    });
    let saw = model.saw.unwrap();
    assert!(saw.units > 0 && saw.after < saw.before * 0.98, "{saw:?}");
}

/// There is no shorter time than a repetition.
#[test]
fn discards_all_the_time_follow_each_repetition() {
    let saw = |every| {
        let fstrim_every = Some(every);
        let model = model(&Drive {
            fstrim_every,
            ..drive()
        });
        model.saw.unwrap()
    };
    assert_eq!(saw(Duration::ZERO), saw(Duration::from_secs(1)));
}

#[test]
fn a_flush_costs_the_rest_of_a_page_if_there_is_one() {
    let padded = |page| {
        let drive = Drive { page, ..drive() };
        let load = Load {
            device_bytes: None,
            ..load()
        };
        let model = Model::of(&drive, &load).unwrap();
        assert_eq!(model.copies, 1);
        model.at.padded
    };
    assert_eq!(padded(None), 0.0);
    // Two units are written between flushes, into pages of four. What is moved fills pages too.
    assert!(
        (0.8..1.01).contains(&padded(Some(16384))),
        "{}",
        padded(Some(16384))
    );
}

#[test]
fn impossible_drives_are_refused_in_a_line() {
    let said = |drive: Drive| Model::of(&drive, &load()).unwrap_err();
    let all = [
        said(Drive {
            capacity: 1 << 50,
            ..drive()
        }),
        said(Drive {
            capacity: 100,
            ..drive()
        }),
        said(Drive {
            capacity: 2 << 20,
            ..drive()
        }),
        said(Drive {
            unit: 5000,
            ..drive()
        }),
        said(Drive {
            page: Some(6000),
            ..drive()
        }),
        said(Drive {
            block: 0,
            ..drive()
        }),
        said(Drive {
            block: 1 << 40,
            ..drive()
        }),
        said(Drive {
            fill: 1.01,
            ..drive()
        }),
        said(Drive {
            fill: f64::NAN,
            ..drive()
        }),
        said(Drive {
            spare: 0.0,
            ..drive()
        }),
        said(Drive {
            streams: 0,
            ..drive()
        }),
        said(Drive {
            block: 32 << 20,
            ..drive()
        }),
    ];
    for line in &all {
        println!("{line}");
        assert!(!line.is_empty() && !line.contains('\n'));
    }
    let nothing = Model::of(&drive(), &Load::default()).unwrap_err();
    assert_eq!(nothing, "nothing was written");
}

#[test]
fn a_sample_is_moved_on_the_account_of_who_wrote_it() {
    let sample =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces/delete.most.tar.zst");
    let recordings = Recording::open_all(&[sample], false).unwrap();
    let options = Options {
        causes: Some(crate::causes::Sharing::default()),
        ..Options::default()
    };
    let mut taking = Taking::new(4096);
    let reading = reading::read(recordings, &options, &|_| {}, &mut taking).unwrap();
    let free = free(&reading.recordings[0]).unwrap().unwrap();
    let load = taking.load(&reading.origins, reading.manifest.as_ref(), &free);
    let writes = load
        .acts
        .iter()
        .filter(|act| matches!(act.what, What::Write(_)));
    let written: u64 = writes.map(|act| act.units.end - act.units.start).sum();
    assert_eq!((written, written * 4096), (load.writes, load.bytes));
    assert!(!load.free.is_empty() && load.acts.iter().any(|act| act.what == What::Flush));
    // What is moved is the recording's own, as there is too little that is empty.
    let drive = Drive {
        fill: 0.95,
        capacity: 512 << 20,
        block: 1 << 20,
        ..drive()
    };
    let model = Model::of(&drive, &load).unwrap();
    let share = |is_it: fn(&Owner) -> bool| -> f64 {
        let parts = model.at.parts.iter().filter(|part| is_it(&part.owner));
        parts.map(|part| part.share).sum()
    };
    println!("{:?} {:#?}", model.at, model.at.parts);
    let known = share(|owner| owner.program == "mostrace" && owner.file.starts_with("/app/"));
    let journals = share(|owner| owner.layer.ends_with("journal"));
    assert!(model.at.moved > 0.5 && known > 0.5 && journals > 0.5);
}
