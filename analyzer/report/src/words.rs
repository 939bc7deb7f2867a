// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that the page's columns refer to by number: processes, files, layers, operations.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use mostrace_map::class::Kind;
use serde::Serialize;

use super::colour::Colour;
use mostrace_tables::facts::row;
use mostrace_trace::attribute::{Op, SUBMITTER};
use mostrace_trace::sums::Label;
use mostrace_trace::sums::layer::Layer;
use mostrace_trace::tally::Tally;

/// Stands for a code that has no number yet.
const NEW: u32 = u32::MAX;

/// Different words in the order in which they were first seen; None is the unknown one.
#[derive(Debug, Default)]
pub(super) struct Words {
    list: Vec<Option<String>>,
    by: HashMap<Option<String>, u32, RandomState>,
}

impl Words {
    /// Returns the number of a word.
    pub fn number(&mut self, word: Option<&str>) -> u32 {
        let word = word.map(str::to_owned);
        if let Some(number) = self.by.get(&word) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(word.clone());
        self.by.insert(word, number);
        number
    }

    pub fn list(&self) -> &[Option<String>] {
        &self.list
    }
}

/// The codes of a column of text, and the number of each among the page's words.
pub(super) struct Codes {
    words: row::Words,
    numbers: Vec<u32>,
}

impl Codes {
    pub fn new(words: row::Words) -> Codes {
        Codes {
            numbers: vec![NEW; words.len()],
            words,
        }
    }

    /// Returns the word of a code.
    pub fn word(&self, code: u32) -> Option<&str> {
        self.words.get(code as usize).and_then(Option::as_deref)
    }

    /// Returns the number of a code's word.
    pub fn number(&mut self, code: u32, words: &mut Words) -> u32 {
        let known = self.numbers.get(code as usize).copied().unwrap_or(NEW);
        if known != NEW {
            return known;
        }
        let number = words.number(self.word(code));
        if let Some(place) = self.numbers.get_mut(code as usize) {
            *place = number;
        }
        number
    }
}

/// A process and its program.
#[derive(Debug, Serialize)]
pub(super) struct Who {
    /// `name:tgid`, or a submitter, marked as such; None if nobody is known.
    name: Option<String>,
    /// The command, or on Android the package.
    group: Option<String>,
}

impl Who {
    /// Takes a label as the column `cause_or_submitter` has it.
    pub fn new(label: Option<&str>, package: Option<&str>) -> Who {
        let bare = label.map(|label| label.strip_suffix(SUBMITTER).unwrap_or(label));
        let comm = bare.map(|bare| bare.rsplit_once(':').map_or(bare, |(comm, _)| comm));
        Who {
            name: label.map(str::to_owned),
            group: package.or(comm).map(str::to_owned),
        }
    }
}

/// What the blocks are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct LayerWord {
    name: String,
    part: Option<String>,
    colour: usize,
    /// The values of the columns with these names, which select the rows of the layer.
    class: Option<&'static str>,
    kind: Option<&'static str>,
    role: Option<String>,
    home_kind: Option<&'static str>,
    /// The operation of requests without data.
    op: Option<&'static str>,
}

impl LayerWord {
    /// Returns the layer of a row with data.
    pub fn of(
        kind: Option<Kind>,
        role: Option<&str>,
        home: Option<Kind>,
        filesystem: &str,
    ) -> LayerWord {
        let class = kind.map(|kind| kind.class().as_str());
        let text =
            |word: Option<&str>| word.map_or(Label::Empty, |word| Label::Text(word.to_owned()));
        let labels = [
            text(class),
            text(kind.map(Kind::as_str)),
            text(role),
            text(home.map(Kind::as_str)),
        ];
        let layer = Layer::of(&labels);
        let name = match &layer {
            // Of the tables' names for layers, this one would be read as "the rest" beside files one by one.
            Some(Layer::File(role)) if role == "other" => "file contents".into(),
            Some(layer) => layer.name(filesystem),
            None => "blocks of no known owner".into(),
        };
        LayerWord {
            name,
            part: layer.and_then(|layer| layer.part()),
            colour: Colour::of_class(class, role) as usize,
            class,
            kind: kind.map(Kind::as_str),
            role: role.map(str::to_owned),
            home_kind: home.map(Kind::as_str),
            op: None,
        }
    }

    /// Returns the layer of a row without data.
    pub fn without_data(op: Op) -> LayerWord {
        let name = match op {
            Op::Flush => "flushes asked for",
            Op::DeviceFlush => "flushes by the device",
            Op::Discard => "discards",
            Op::WriteZeroes => "zeroed ranges",
            op if op.is_of_zones() => "zones managed",
            _ => "other requests",
        };
        let colour = match op {
            Op::Discard | Op::WriteZeroes => Colour::Discard,
            _ => Colour::Flush,
        };
        LayerWord {
            name: name.into(),
            part: None,
            colour: colour as usize,
            class: None,
            kind: None,
            role: None,
            home_kind: None,
            op: Some(op.as_str()),
        }
    }
}

/// Layers by what determines them.
#[derive(Default)]
pub(super) struct Layers {
    list: Vec<LayerWord>,
    by: HashMap<(Op, u64, u64, u32), u32, RandomState>,
    by_word: HashMap<LayerWord, u32, RandomState>,
}

impl Layers {
    /// Returns the number of a layer; `make` is called if the key is new.
    pub fn number(&mut self, key: (Op, u64, u64, u32), make: impl FnOnce() -> LayerWord) -> u32 {
        let Layers { list, by, by_word } = self;
        *by.entry(key).or_insert_with(|| {
            let word = make();
            *by_word.entry(word.clone()).or_insert_with(|| {
                list.push(word);
                (list.len() as u32).saturating_sub(1)
            })
        })
    }

    pub fn list(&self) -> &[LayerWord] {
        &self.list
    }
}

/// Bytes by number.
#[derive(Default)]
pub(super) struct Weights(Vec<u64>);

impl Weights {
    pub fn add(&mut self, number: u32, weight: u64) {
        let at = number as usize;
        if at >= self.0.len() {
            self.0.resize(at.saturating_add(1), 0);
        }
        self.0[at].tally(weight);
    }

    /// Returns whether each number is among the `most` heaviest.
    pub fn heaviest(&self, most: usize) -> Vec<bool> {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(self.0[at]));
        let mut is = vec![false; self.0.len()];
        order.into_iter().take(most).for_each(|at| is[at] = true);
        is
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_belongs_to_its_program() {
        let group = |label| Who::new(Some(label), None).group.unwrap();
        assert_eq!(group("python3:17"), "python3");
        assert_eq!(group("a:b:17 (submitter)"), "a:b");
        assert_eq!(group("loop0 (submitter)"), "loop0");
        let who = Who::new(Some("app:3"), Some("com.example"));
        assert_eq!(who.group.as_deref(), Some("com.example"));
        assert!(Who::new(None, None).group.is_none());
    }

    #[test]
    fn the_heaviest_are_kept() {
        let mut weights = Weights::default();
        [(2, 5), (0, 9), (2, 5), (1, 1)]
            .iter()
            .for_each(|&(number, weight)| weights.add(number, weight));
        assert_eq!(weights.heaviest(2), [true, false, true]);
    }
}
