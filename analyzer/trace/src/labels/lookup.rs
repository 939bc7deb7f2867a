// SPDX-License-Identifier: MIT OR Apache-2.0
//! A word for each row, by some of its numbers.

use std::sync::Arc;

use crate::attribute::HashMap;

/// Words, each once, and which of them a row has.
pub struct Lookup<F> {
    words: Arc<[Option<String>]>,
    codes: Vec<u32>,
    number: F,
}

impl<F> Lookup<F> {
    /// A row has the word `words[number(row)]`; numbers with equal words get one code. None is the empty word.
    pub fn new(words: impl IntoIterator<Item = Option<String>>, number: F) -> Lookup<F> {
        let mut known: HashMap<Option<String>, u32> = HashMap::default();
        let mut distinct = Vec::new();
        let mut numbered = |word: Option<String>| {
            *known.entry(word).or_insert_with_key(|word| {
                let code = u32::try_from(distinct.len()).unwrap_or(u32::MAX);
                distinct.push(word.clone());
                code
            })
        };
        let codes = words.into_iter().map(&mut numbered).collect();
        Lookup {
            words: distinct.into(),
            codes,
            number,
        }
    }

    /// Returns the index of a row's word.
    pub fn code<const N: usize>(&self, row: [u64; N]) -> u32
    where
        F: Fn([u64; N]) -> u64,
    {
        let at = usize::try_from((self.number)(row)).unwrap_or(usize::MAX);
        self.codes.get(at).copied().unwrap_or(0)
    }

    /// Returns the word at an index; None for the empty word.
    pub fn word(&self, code: u32) -> Option<&str> {
        self.words.get(code as usize)?.as_deref()
    }

    /// Returns the words by index.
    pub fn words(&self) -> Arc<[Option<String>]> {
        self.words.clone()
    }
}
