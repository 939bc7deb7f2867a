// SPDX-License-Identifier: MIT OR Apache-2.0
//! The right words that are nearest to a wrong one.

/// The least likeness of words of which one may stand for the other.
const ALIKE: f64 = 0.7;
/// The most words that are named.
const MOST: usize = 3;

/// Returns the words that are nearest to a wrong one, as the end of a sentence; nothing if none is near.
pub fn nearest<'w>(wrong: &str, words: impl Iterator<Item = &'w str>) -> String {
    let lower = wrong.to_lowercase();
    let mut all: Vec<(f64, &str)> = words
        .map(|word| (strsim::jaro_winkler(&lower, &word.to_lowercase()), word))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near = all.iter().filter(|(likeness, _)| *likeness >= ALIKE);
    let near: Vec<&str> = near.take(MOST).map(|(_, word)| *word).collect();
    match near.is_empty() {
        false => format!("; the nearest: {}", near.join(", ")),
        true => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_words_come_first() {
        let words = ["wal", "shm", "rollback_journal", "db"];
        assert_eq!(nearest("wall", words.into_iter()), "; the nearest: wal");
        assert_eq!(nearest("WAL", words.into_iter()), "; the nearest: wal");
        assert_eq!(nearest("xyz", words.into_iter()), "");
        assert_eq!(nearest("xyz", [].into_iter()), "");
    }
}
