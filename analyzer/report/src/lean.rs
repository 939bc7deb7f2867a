// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scripts without what only their readers need: comments, indentation, and spaces beside punctuation. A page has them in full
//! otherwise, so that an error names the source's own words.

use std::iter::Peekable;
use std::str::Chars;

/// Characters behind which a `/` begins a regular expression, and does not divide.
const BEFORE_REGEX: &str = "(,=:[!&|?{};>";
/// Characters behind which a line may end without ending a statement.
const GOES_ON: &str = "{(,;[";

/// Returns a script that does the same in fewer bytes. Line ends stay where they may end a statement.
pub(super) fn lean(script: &str) -> String {
    let mut lean = Lean {
        rest: script.chars().peekable(),
        out: String::with_capacity(script.len()),
        templates: Vec::new(),
    };
    while lean.step() {}
    lean.out
}

struct Lean<'s> {
    rest: Peekable<Chars<'s>>,
    out: String,
    /// For each template that is open, the braces that are open in its `${…}`.
    templates: Vec<usize>,
}

impl Lean<'_> {
    /// Takes the next token or character; false at the end.
    fn step(&mut self) -> bool {
        let Some(next) = self.rest.next() else {
            return false;
        };
        match next {
            '"' | '\'' => self.text(next),
            '`' => {
                self.out.push(next);
                self.template();
            }
            '/' => self.slash(),
            '{' => self.open(),
            '}' => self.close(),
            c if c.is_whitespace() => self.space(c),
            c => self.out.push(c),
        }
        true
    }

    /// Copies up to an end that no backslash precedes.
    fn text(&mut self, end: char) {
        self.out.push(end);
        while let Some(c) = self.rest.next() {
            self.out.push(c);
            match c {
                '\\' => self.out.extend(self.rest.next()),
                c if c == end => return,
                _ => {}
            }
        }
    }

    /// Copies the text of a template up to its end, or to an expression.
    fn template(&mut self) {
        while let Some(c) = self.rest.next() {
            self.out.push(c);
            match c {
                '\\' => self.out.extend(self.rest.next()),
                '`' => return,
                '$' if self.rest.peek() == Some(&'{') => {
                    self.out.extend(self.rest.next());
                    self.templates.push(0);
                    return;
                }
                _ => {}
            }
        }
    }

    fn open(&mut self) {
        if let Some(braces) = self.templates.last_mut() {
            *braces = braces.saturating_add(1);
        }
        self.out.push('{');
    }

    fn close(&mut self) {
        self.out.push('}');
        match self.templates.last_mut() {
            Some(0) => {
                self.templates.pop();
                self.template();
            }
            Some(braces) => *braces = braces.saturating_sub(1),
            None => {}
        }
    }

    /// Leaves out a comment, or copies a regular expression or a division.
    fn slash(&mut self) {
        match self.rest.peek().copied() {
            Some('/') => while self.rest.next_if(|c| *c != '\n').is_some() {},
            Some('*') => {
                let mut last = ' ';
                // The first `*` cannot be the end's.
                self.rest.next();
                for c in self.rest.by_ref() {
                    if (last, c) == ('*', '/') {
                        return;
                    }
                    last = c;
                }
            }
            _ if self.is_regex() => self.regex(),
            _ => self.out.push('/'),
        }
    }

    fn is_regex(&self) -> bool {
        let before = self.out.trim_end();
        before.ends_with("return") || before.ends_with(|c| BEFORE_REGEX.contains(c))
    }

    fn regex(&mut self) {
        self.out.push('/');
        let mut in_class = false;
        while let Some(c) = self.rest.next() {
            self.out.push(c);
            match c {
                '\\' => self.out.extend(self.rest.next()),
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => return,
                _ => {}
            }
        }
    }

    fn space(&mut self, first: char) {
        let mut is_line = first == '\n';
        while let Some(c) = self.rest.next_if(|c| c.is_whitespace()) {
            is_line |= c == '\n';
        }
        let before = self.out.chars().next_back().unwrap_or('\n');
        let after = self.rest.peek().copied().unwrap_or('\n');
        if is_line {
            if before != '\n' && !GOES_ON.contains(before) {
                self.out.push('\n');
            }
        } else if before != '\n' && are_kept_apart(before, after) {
            self.out.push(' ');
        }
    }
}

/// Returns true if two characters would be one word or one operator without a space.
fn are_kept_apart(before: char, after: char) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    let is_sign = |c: char| matches!(c, '+' | '-');
    is_word(before) && is_word(after) || is_sign(before) && is_sign(after)
}

#[cfg(test)]
mod tests {
    use super::lean;

    #[test]
    fn what_only_readers_need_is_left_out() {
        let script = "// A comment.\n/** Another:\n * `one`. */\nconst a = (b, c) => {\n  return b / c; // last\n};\n";
        assert_eq!(lean(script), "const a=(b,c)=>{return b/c;};");
    }

    #[test]
    fn texts_stay_as_they_are() {
        for kept in [
            "\" // no  comment \"",
            "'it\\'s  '",
            "`a  ${b} // ${{c:`  ${d}`}.c}  `",
            "a=/[/ ]  \\//g",
            "return/  \"/.test(a)",
        ] {
            assert_eq!(lean(kept), kept);
        }
        assert_eq!(lean("`${ a + b }  x`"), "`${a+b}  x`");
    }

    #[test]
    fn words_and_signs_do_not_grow_together() {
        assert_eq!(lean("a + +b - -c in d"), "a+ +b- -c in d");
        // A line may end a statement.
        assert_eq!(lean("a\n  (b)\n\n  c"), "a\n(b)\nc");
    }
}
