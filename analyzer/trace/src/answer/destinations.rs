// SPDX-License-Identifier: MIT OR Apache-2.0
//! The destinations of most written bytes, as a tree of program, the file it worked on, and where the bytes went. Only the largest are
//! shown, as [dust](https://github.com/bootandy/dust) shows the largest directories of a tree; what is left of a shown one is its
//! `others`, so that children sum to their parent.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::words::percent;
use crate::attribute::{HashMap, program};
use crate::sums::layer::Layer;
use crate::sums::{Groups, Label};
use crate::tally::{Tally, sum};

/// The first labels are the process and the file of the cause; if it is unknown, the submitter and the file that was written.
const WHO: usize = 2;
/// The name of an unknown process.
const NOBODY: &str = "(nobody known)";
const NO_FILE: &str = "(no file known)";
/// The name of what is not shown.
const OTHERS: &str = "others";

/// A program, one of its files, or a layer that was written for such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Depth in the tree; 0 for programs.
    pub depth: usize,
    /// The name of the program, the path of the file, or the name of the layer.
    pub name: String,
    /// The number of different processes that wrote it.
    pub processes: usize,
    /// Bytes that were written for it.
    pub bytes: u64,
    /// True if it is the last one shown of its parent.
    pub is_last: bool,
}

/// The largest parts of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    /// The parts; each follows its parent.
    pub parts: Vec<Destination>,
    /// Bytes of all parts.
    pub total: u64,
}

impl Destinations {
    /// Returns the `most` largest; the groups are the answer's second.
    pub(super) fn of(groups: &Groups, filesystem: &str, most: usize) -> Destinations {
        let mut root = Node::default();
        for (labels, totals) in groups.groups.iter().filter(|(_, t)| t.write_bytes > 0) {
            root.add(
                &path(labels, filesystem),
                labels.first(),
                totals.write_bytes,
            );
        }
        root.sort();
        root.choose(most);
        root.choose_the_last(root.bytes);
        let mut parts = Vec::new();
        root.flatten(0, root.bytes, &mut parts);
        Destinations {
            parts,
            total: root.bytes,
        }
    }
}

/// Returns where a group stands in the tree.
fn path(labels: &[Label], filesystem: &str) -> Vec<String> {
    if labels.iter().any(|label| matches!(label, Label::Rest(_))) {
        return vec![OTHERS.into()];
    }
    let ([program, file], layer) = names(labels, filesystem);
    [program, file].into_iter().chain(layer).collect()
}

/// Returns program and file of a group, and its layer, which what carries no data does not have.
pub(super) fn names(labels: &[Label], filesystem: &str) -> ([String; 2], Option<String>) {
    let (who, layer) = labels.split_at(WHO.min(labels.len()));
    let text = |at: usize| who.get(at).and_then(Label::text);
    let process = text(0);
    let program = process
        .as_deref()
        .map_or(NOBODY.into(), |process| program(process).into_owned());
    let file = text(1).unwrap_or_else(|| NO_FILE.into());
    let layer = Layer::of(layer).map(|layer| layer.name(filesystem));
    ([program, file], layer)
}

#[derive(Default)]
struct Node<'g> {
    name: String,
    bytes: u64,
    processes: BTreeSet<&'g Label>,
    parts: Vec<Node<'g>>,
    /// The index of each part by its name, while parts are added.
    numbers: HashMap<String, usize>,
    is_chosen: bool,
}

impl<'g> Node<'g> {
    fn add(&mut self, path: &[String], process: Option<&'g Label>, bytes: u64) {
        self.bytes.tally(bytes);
        self.processes.extend(process);
        let Some((name, rest)) = path.split_first() else {
            return;
        };
        let at = self.numbers.get(name).copied().unwrap_or_else(|| {
            let at = self.parts.len();
            self.numbers.insert(name.clone(), at);
            self.parts.push(Node {
                name: name.clone(),
                ..Node::default()
            });
            at
        });
        self.parts[at].add(rest, process, bytes);
    }

    fn sort(&mut self) {
        self.numbers.clear();
        self.parts.iter_mut().for_each(Node::sort);
        self.parts.sort_by_key(|part| Reverse(part.bytes));
    }

    /// Chooses the largest nodes. A part is never larger than its parent, which comes first if they are equal.
    fn choose(&mut self, most: usize) {
        let mut open: Vec<&mut Node<'_>> = self.parts.iter_mut().collect();
        for _ in 0..most {
            // The first one of the largest is taken.
            let largest = (0..open.len()).rev().max_by_key(|&at| open[at].bytes);
            let Some(at) = largest else {
                return;
            };
            let node = open.remove(at);
            node.is_chosen = true;
            open.extend(node.parts.iter_mut());
        }
    }

    /// Chooses a node that would otherwise stand alone as `others`: its name says more.
    fn choose_the_last(&mut self, total: u64) {
        let left = self.parts.iter().filter(|part| !part.is_chosen).count();
        let is_last = left == 1 && left < self.parts.len();
        for part in &mut self.parts {
            part.is_chosen |= is_last && percent(part.bytes, total) > 0;
            part.choose_the_last(total);
        }
    }

    /// Appends the chosen nodes below this one, and what is left of it, unless that rounds to 0 % of `total`. A node without
    /// chosen children shows none.
    fn flatten(&self, depth: usize, total: u64, out: &mut Vec<Destination>) {
        let chosen: Vec<&Node<'_>> = self.parts.iter().filter(|part| part.is_chosen).collect();
        let shown: u64 = sum(chosen.iter().map(|part| part.bytes));
        let rest = self.bytes.saturating_sub(shown);
        let has_rest = percent(rest, total) > 0 && !chosen.is_empty();
        for (nth, part) in (1..).zip(&chosen) {
            out.push(Destination {
                depth,
                name: part.name.clone(),
                processes: part.processes.len(),
                bytes: part.bytes,
                is_last: nth == chosen.len() && !has_rest,
            });
            part.flatten(depth.saturating_add(1), total, out);
        }
        if has_rest {
            out.push(Destination {
                depth,
                name: OTHERS.into(),
                processes: 0,
                bytes: rest,
                is_last: true,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::Totals;

    fn groups(of: &[(&str, &str, &str, u64)]) -> Groups {
        let mut groups = Groups::default();
        let text = |word: &str| match word {
            "" => Label::Empty,
            word => Label::Text(word.to_owned()),
        };
        for &(process, file, class, write_bytes) in of {
            let kind = match class {
                "data" => "regular",
                _ => "commit",
            };
            let labels = [process, file, class, kind, "db", ""].map(text);
            let totals = Totals {
                write_bytes,
                ..Totals::default()
            };
            groups.groups.push((labels.into(), totals));
        }
        groups
    }

    fn shown(groups: &Groups, most: usize) -> Vec<String> {
        let brief = Destinations::of(groups, "ext4", most);
        let line = |part: &Destination| format!("{} {} {}", part.depth, part.name, part.bytes);
        brief.parts.iter().map(line).collect()
    }

    #[test]
    fn the_largest_are_shown_each_behind_what_it_is_a_part_of() {
        let groups = groups(&[
            ("app:1", "/a", "journal", 50),
            ("app:1", "/a", "data", 30),
            ("app:2", "/b", "data", 5),
            ("sh:3", "/c", "data", 10),
            ("", "", "journal", 5),
        ]);
        assert_eq!(
            shown(&groups, 4),
            [
                "0 app 85",
                "1 /a 80",
                "2 ext4's journal 50",
                "2 the database 30",
                "1 /b 5",
                "0 others 15"
            ]
        );
        assert_eq!(
            shown(&groups, 6)[5..],
            ["0 sh 10", "1 /c 10", "0 (nobody known) 5"]
        );
        assert_eq!(shown(&groups, 100).len(), 12);
        let brief = Destinations::of(&groups, "ext4", 4);
        assert_eq!((brief.total, brief.parts[0].processes), (100, 2));
        assert!(shown(&groups, 100).contains(&format!("0 {NOBODY} 5")));
    }

    #[test]
    fn a_program_may_have_a_colon_in_its_name() {
        let groups = groups(&[("kworker/0:1:77", "/a", "data", 1)]);
        assert_eq!(shown(&groups, 1), ["0 kworker/0:1 1"]);
    }
}
