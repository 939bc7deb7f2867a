// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a bundle with the shares of their causers, read by the library, without tables.

use std::path::Path;

use mostrace_bundle::layout;
use mostrace_map::class::{Class, Kind};
use mostrace_map::fs::{self, Image};
use mostrace_trace::attribute::{Attributor, Op};
use mostrace_trace::blktrace::Completions;
use mostrace_trace::causes::{self, Causer, Known, Sharing};
use mostrace_trace::pipeline::Pipeline;
use mostrace_trace::recording::Recording;

/// The losses of entries of causes.
const LOSSES: [&str; 3] = ["causes_ring", "causes_tasks", "causes_misses"];

/// A causer's share of a row.
pub struct Share {
    pub op: Op,
    pub kind: Option<Kind>,
    /// The name of the causing process; empty if it is unknown.
    pub comm: String,
    /// The operation; `-` if it is unknown.
    pub operation: &'static str,
    pub known: Known,
    pub bytes: u32,
}

impl Share {
    /// Returns the class of the row's blocks.
    pub fn class(&self) -> Option<Class> {
        self.kind.map(Kind::class)
    }

    /// Returns comm, operation and certainty.
    pub fn words(&self) -> String {
        format!("{} {} {}", self.comm, self.operation, self.known.as_str())
    }
}

/// Returns the shares of every row of a bundle, row by row.
pub fn shares(bundle: &Path) -> Vec<Share> {
    let recording = Recording::open_all(&[bundle.to_owned()], false).unwrap();
    let recording = &recording[0];
    let manifest = recording.manifest().unwrap();
    let image = recording.last().unwrap().snapshot().unwrap();
    let map = image.map(|image| {
        let image = Image::open(image.path()).unwrap();
        fs::build_by(fs::State::Mounted, &image, 0, &|_| {}).unwrap()
    });
    let mut of_bios: Vec<_> = layout::TABLES
        .iter()
        .filter_map(|name| recording.table(name).unwrap())
        .collect();
    let mut of_causes = layout::CAUSES.map(|name| recording.table(name).unwrap());
    let mut all_calls = recording.table(layout::CALL).unwrap();
    let [handles, dirtied, calls, f2fs] = &mut of_causes;
    let tables = causes::Tables {
        handles: handles.as_mut(),
        dirtied: dirtied.as_mut(),
        calls: calls.as_mut().zip(all_calls.as_mut()),
        f2fs: f2fs.as_mut(),
    };
    let is_whole = LOSSES.iter().all(|name| manifest.losses[*name] == 0);
    let mut pipeline = Pipeline::new(
        Completions::new(recording.events().unwrap()),
        Attributor::new(of_bios.iter_mut().collect(), map.as_ref()),
        Some(Causer::new(
            tables,
            &manifest.functions,
            Sharing::Equal,
            is_whole,
        )),
    );
    let mut found = Vec::new();
    while let Some(step) = pipeline.next().unwrap() {
        let verdicts = step.verdicts.unwrap();
        for (row, (_, shares)) in step.rows.iter().zip(verdicts.iter()) {
            let sum: u32 = shares.iter().map(|share| share.bytes).sum();
            let is_divided = matches!(row.op, Op::Write | Op::Read);
            assert!(!is_divided || sum == row.bytes, "{sum} of {row:?}");
            found.extend(shares.iter().map(|&share| (*row, share)));
        }
    }
    let names = |pipeline: &Pipeline<'_, _>, id| {
        let cause = pipeline.cause(id);
        let process = pipeline.registry().process(cause.process);
        let comm = process.comm.as_deref().unwrap_or_default();
        let operation = cause.operation.map_or("-", |operation| operation.as_str());
        (String::from_utf8_lossy(comm).into_owned(), operation)
    };
    found
        .into_iter()
        .map(|(row, share)| {
            let (comm, operation) = names(&pipeline, share.cause);
            Share {
                op: row.op,
                kind: row.kind,
                comm,
                operation,
                known: share.known,
                bytes: share.bytes,
            }
        })
        .collect()
}
