// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quotes words for a shell.

/// Quotes one word.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes one word for people: only if a shell needs it.
pub fn plain(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match word.is_empty() || !word.chars().all(is_plain) {
        true => quoted(word),
        false => word.to_owned(),
    }
}

/// Quotes words for a shell and joins them with spaces.
#[cfg(target_os = "linux")]
pub fn line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let quoted = words.into_iter().map(|word| quoted(word.as_ref()));
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_the_word_again() {
        for word in [
            "a b",
            "it's",
            "",
            "$x `y` \"z\" \\",
            "'",
            "~/x",
            "*",
            "run-1.most",
        ] {
            for written in [quoted(word), plain(word)] {
                let script = format!("printf %s {written}");
                let output = Command::new("sh").args(["-c", &script]).output().unwrap();
                assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
            }
        }
        assert_eq!(plain("/tmp/run-1.most"), "/tmp/run-1.most");
    }
}
