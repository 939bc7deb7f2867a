// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that follow one another, read as one.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

/// The files that are not read to their end yet; a clone is the same chain. Reading 0 bytes means that there is nothing more
/// for now.
#[derive(Clone, Default)]
pub(super) struct Chain(Rc<RefCell<VecDeque<Box<dyn Read>>>>);

impl Chain {
    /// Adds a file, to be read from its current position.
    pub fn push(&self, file: impl Read + 'static) {
        self.0.borrow_mut().push_back(Box::new(file));
    }
}

impl Read for Chain {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut files = self.0.borrow_mut();
        while let Some(file) = files.front_mut() {
            match file.read(buf)? {
                0 if !buf.is_empty() => drop(files.pop_front()),
                n => return Ok(n),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Seek, Write};

    use super::*;

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn goes_on_where_a_file_is_added() {
        let chain = Chain::default();
        let mut reader = chain.clone();
        let mut read = || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read(), "");
        chain.push(file("one "));
        chain.push(file(""));
        chain.push(file("two"));
        assert_eq!(read(), "one two");
        chain.push(file("three"));
        assert_eq!(read(), "three");
    }
}
