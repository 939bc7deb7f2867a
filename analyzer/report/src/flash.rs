// SPDX-License-Identifier: MIT OR Apache-2.0
//! The panel of what a model of a drive writes to its flash.

use mostrace_trace::flash::{Drive, Level, Load, Model, sums};
use serde::Serialize;

/// The panel draws this.
#[derive(Debug, Serialize)]
pub struct Flash {
    /// The line that says that it is a model, and of what.
    words: String,
    /// Bytes of its capacity.
    capacity: u64,
    /// Why the recording has no model.
    problem: Option<String>,
    /// The share of the capacity that the recording writes.
    own_share: f64,
    /// Bytes of the units that it writes, for each byte at the device.
    rounded: f64,
    levels: Vec<Step>,
    /// The given one of these.
    at: usize,
    /// The ratio of a new drive, of one that is full of what was deleted too, and of that after an fstrim.
    life: [f64; 3],
}

/// A level of fill, with the share of each layer in what is moved, the largest first.
#[derive(Debug, Serialize)]
struct Step {
    fill: f64,
    ratio: f64,
    moved: f64,
    padded: f64,
    least: f64,
    greatest: f64,
    is_steady: bool,
    layers: Vec<(String, f64)>,
}

impl Flash {
    /// Repeats what a recording does on a drive.
    pub fn new(drive: &Drive, load: &Load) -> Flash {
        let none = |problem| Flash {
            words: drive.words(),
            capacity: drive.capacity,
            problem: Some(problem),
            own_share: 0.0,
            rounded: 1.0,
            levels: Vec::new(),
            at: 0,
            life: [1.0; 3],
        };
        let model = match Model::of(drive, load) {
            Ok(model) => model,
            Err(problem) => return none(problem),
        };
        let is_given = |level: &Level| level.fill == model.at.fill;
        Flash {
            problem: None,
            own_share: model.own_share,
            rounded: model.rounded,
            at: model.curve.iter().position(is_given).unwrap_or(0),
            life: [model.new, model.full.ratio, model.after_fstrim.ratio],
            levels: model.curve.iter().map(step).collect(),
            ..none(String::new())
        }
    }
}

fn step(level: &Level) -> Step {
    let layers = level
        .parts
        .iter()
        .map(|part| (part.owner.layer.clone(), part.share));
    Step {
        fill: level.fill,
        ratio: level.ratio,
        moved: level.moved,
        padded: level.padded,
        least: level.least,
        greatest: level.greatest,
        is_steady: level.is_steady,
        layers: sums(layers),
    }
}
