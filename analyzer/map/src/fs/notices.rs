// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remarks on what could not be resolved while a map was built.

/// Remarks as lines of text; the first are kept, the rest only counted.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    lines: Vec<String>,
    more: usize,
}

impl Notices {
    const KEPT: usize = 100;

    /// Adds a line.
    pub fn push(&mut self, line: impl Into<String>) {
        if self.lines.len() < Self::KEPT {
            self.lines.push(line.into());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Adds the lines of `others`.
    pub fn append(&mut self, others: Notices) {
        let lines = others.into_lines();
        lines.into_iter().for_each(|line| self.push(line));
    }

    /// Returns true if there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the lines; the last one tells how many were left out, if any.
    pub fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("and {} more", self.more));
        }
        self.lines
    }
}
