// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes from the application down: process, file, layer, and the part of the layer.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::colour::Colour;
use crate::facts::Facts;
use crate::tables::layer::{self, Layer};
use crate::tables::{Grouping, Groups, Label, Result, Totals};
use crate::tally::{Tally, sum};

/// Number of processes that are shown one by one.
const PROCESSES: usize = 30;
/// Number of files of a process that are shown one by one.
const FILES: usize = 40;

/// The columns of the owner, by cause or by submission; the layer's columns and the operation follow them.
const CAUSED: [&str; 2] = ["cause_process", "cause_file"];
const SUBMITTED: [&str; 2] = ["process", "file"];
const OPERATION: &str = "cause_op";

/// The owners of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The processes that caused them.
    Caused,
    /// The processes that submitted them, because the trace has no cause for any of the bytes written.
    Submitted,
}

/// A node of the tree, with its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The node's name.
    #[serde(rename = "n")]
    pub name: String,
    /// Bytes; for a node with parts, their sum.
    #[serde(rename = "v")]
    pub bytes: u64,
    /// Its colour; None for processes and files.
    #[serde(rename = "k", skip_serializing_if = "Option::is_none")]
    pub colour: Option<usize>,
    /// Its parts, the largest first.
    #[serde(rename = "p", skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Node>,
    /// The bytes of a leaf by the operations that caused them.
    #[serde(rename = "o", skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, u64>,
}

impl Node {
    fn add(&mut self, path: &[(String, Option<usize>)], operation: Option<String>, bytes: u64) {
        self.bytes.tally(bytes);
        let Some(((name, colour), rest)) = path.split_first() else {
            if let Some(operation) = operation {
                self.operations.entry(operation).or_default().tally(bytes);
            }
            return;
        };
        let at = self.parts.iter().position(|part| part.name == *name);
        let at = at.unwrap_or_else(|| {
            let at = self.parts.len();
            self.parts.push(Node {
                name: name.clone(),
                colour: *colour,
                ..Node::default()
            });
            at
        });
        self.parts[at].add(rest, operation, bytes);
    }

    fn sort(&mut self) {
        self.parts.iter_mut().for_each(Node::sort);
        self.parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    }

    /// Returns the bytes of its leaves.
    pub fn leaves(&self) -> u64 {
        match &self.parts[..] {
            [] => self.bytes,
            parts => sum(parts.iter().map(Node::leaves)),
        }
    }
}

/// The bytes of one process or one file by colour.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub written: [u64; Colour::WITH_BYTES],
    pub read: u64,
}

/// The trees, and the same sums by process and by file.
#[derive(Debug, Serialize)]
pub struct Icicle {
    /// The owners of the bytes.
    pub basis: Basis,
    /// Bytes written.
    pub written: Node,
    /// Bytes read.
    pub read: Node,
    #[serde(skip)]
    pub(super) processes: HashMap<Label, Share>,
    #[serde(skip)]
    pub(super) files: HashMap<Label, Share>,
}

fn grouping(owner: [&str; 2]) -> Grouping {
    Grouping::by(&[&owner[..], &layer::COLUMNS, &[OPERATION]].concat())
}

impl Icicle {
    /// Sums up all rows.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read.
    pub fn new(facts: &Facts, filesystem: &str) -> Result<Icicle> {
        let caused = Groups::new(facts, grouping(CAUSED), None)?;
        let bytes = match caused.total.write_bytes {
            0 => |totals: &Totals| totals.read_bytes,
            _ => |totals: &Totals| totals.write_bytes,
        };
        let is_known = |(labels, totals): &(Vec<Label>, Totals)| {
            labels[0] != Label::Empty && bytes(totals) > 0
        };
        let (basis, groups) = match caused.groups.iter().any(is_known) || bytes(&caused.total) == 0
        {
            true => (Basis::Caused, caused),
            false => (
                Basis::Submitted,
                Groups::new(facts, grouping(SUBMITTED), None)?,
            ),
        };
        Ok(Icicle::of(basis, &groups, filesystem))
    }

    fn of(basis: Basis, groups: &Groups, filesystem: &str) -> Icicle {
        let mut icicle = Icicle {
            basis,
            written: Node::default(),
            read: Node::default(),
            processes: HashMap::new(),
            files: HashMap::new(),
        };
        let mut pairs: HashMap<(Label, Label), Share> = HashMap::new();
        for (labels, totals) in groups.groups.iter().filter(|(_, t)| t.bytes() > 0) {
            let colour = colour_of(labels) as usize;
            let [process, file] = [labels[0].clone(), labels[1].clone()];
            for share in [
                icicle.processes.entry(process.clone()).or_default(),
                icicle.files.entry(file.clone()).or_default(),
                pairs.entry((process, file)).or_default(),
            ] {
                share.written[colour].tally(totals.write_bytes);
                share.read.tally(totals.read_bytes);
            }
        }
        let shown = Shown::new(&icicle.processes, &pairs);
        for (labels, totals) in &groups.groups {
            let Some(layer) = Layer::of(&labels[2..6]) else {
                continue;
            };
            let colour = Some(colour_of(labels) as usize);
            let operation = labels[6].text().filter(|_| basis == Basis::Caused);
            let (process, file) = shown.names(&labels[0], &labels[1], &layer);
            let layer_name = Some((layer.name(filesystem), colour));
            let part = layer.part().map(|part| (part, colour));
            let mut path = vec![(process, None), (file, None)];
            path.extend(layer_name.into_iter().chain(part));
            for (node, bytes) in [
                (&mut icicle.written, totals.write_bytes),
                (&mut icicle.read, totals.read_bytes),
            ] {
                if bytes > 0 {
                    node.add(&path, operation.clone(), bytes);
                }
            }
        }
        for (node, name) in [
            (&mut icicle.written, "written to the device"),
            (&mut icicle.read, "read from the device"),
        ] {
            node.name = name.into();
            node.sort();
        }
        icicle
    }
}

fn colour_of(labels: &[Label]) -> Colour {
    let text = |at: usize| labels.get(at).and_then(Label::text);
    // The labels after the owner are class, kind and role.
    Colour::of_class(text(2).as_deref(), text(4).as_deref())
}

/// The processes and files that are shown one by one.
struct Shown {
    processes: HashMap<Label, String>,
    files: HashMap<(Label, Label), bool>,
    other_processes: String,
}

impl Shown {
    fn new(processes: &HashMap<Label, Share>, pairs: &HashMap<(Label, Label), Share>) -> Shown {
        let bytes = |share: &Share| sum(share.written).saturating_add(share.read);
        let mut most: Vec<(&Label, u64)> = processes
            .iter()
            .map(|(process, share)| (process, bytes(share)))
            .collect();
        most.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let others = most.len().saturating_sub(PROCESSES);
        let name = |label: &Label| label.text().unwrap_or_else(|| "nobody known".into());
        let mut files: Vec<(&(Label, Label), u64)> = pairs
            .iter()
            .map(|(pair, share)| (pair, bytes(share)))
            .collect();
        files.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let mut count: HashMap<&Label, usize> = HashMap::new();
        let shown = files.into_iter().map(|(pair, _)| {
            let count = count.entry(&pair.0).or_default();
            count.tally(1);
            (pair.clone(), *count <= FILES)
        });
        Shown {
            files: shown.collect(),
            processes: most
                .into_iter()
                .take(PROCESSES)
                .map(|(label, _)| (label.clone(), name(label)))
                .collect(),
            other_processes: format!("({others} other processes)"),
        }
    }

    fn names(&self, process: &Label, file: &Label, layer: &Layer) -> (String, String) {
        let of_process = self.processes.get(process);
        let pair = (process.clone(), file.clone());
        let file = match (self.files.get(&pair), file.text()) {
            _ if of_process.is_none() => "(their files)".into(),
            (Some(false), _) => "(other files)".into(),
            (_, Some(file)) => file,
            (_, None) => match layer {
                Layer::Journal { .. } | Layer::Metadata(_) => "the filesystem itself".into(),
                _ => "no known file".into(),
            },
        };
        let process = of_process.unwrap_or(&self.other_processes);
        (process.clone(), file)
    }
}
