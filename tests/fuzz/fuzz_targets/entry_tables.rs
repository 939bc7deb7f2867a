// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads any bytes as a table of entries. There must be no panic and at most one error, which names the file and the
//! place; and each entry must be a whole record of its kind.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mostrace_bundle::entry::EntryRef;
use mostrace_bundle::table::{TableReader, header};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let header: &[u8] = if choice & 1 == 0 { &header() } else { &[] };
    let table = [header, data].concat();
    let path = Path::new("fuzz");
    let mut reader = match TableReader::new(&table[..], path, choice & 2 == 0) {
        Ok(reader) => reader,
        Err(error) => return assert!(error.to_string().starts_with("fuzz: ")),
    };
    let mut read = 0;
    loop {
        match reader.next_if(|_| true) {
            Ok(Some(entry)) => {
                read += usize::from(entry.head().size.get());
                match entry {
                    EntryRef::File(file) => {
                        assert!(file.name.len() < usize::from(entry.head().size.get()));
                    }
                    EntryRef::Stack(stack) => {
                        let (kernel, user) = (stack.raw.kernel.get(), stack.raw.user.get());
                        let frames = usize::from(kernel) + usize::from(user);
                        assert_eq!(stack.frames().count(), frames);
                    }
                    _ => {}
                }
            }
            Ok(None) => break,
            Err(error) => {
                assert!(error.to_string().starts_with("fuzz: entry at byte "));
                assert!(matches!(reader.next_if(|_| true), Ok(None)));
                break;
            }
        }
    }
    assert!(read <= table.len());
});
