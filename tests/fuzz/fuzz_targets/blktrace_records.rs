// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads any bytes as the files of a trace, plain or compact. There must be no panic, at most one error, and every completion must be
//! covered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mostrace_bundle::blk_io_trace::compact::HEADER;
use mostrace_trace::blktrace::{Completions, Partial, Trace};
use std::io::{Cursor, Read};
use std::path::PathBuf;

fuzz_target!(|data: &[u8]| {
    let Some((&split, data)) = data.split_first() else {
        return;
    };
    let partial = if split & 1 == 0 {
        Partial::Allowed
    } else {
        Partial::Refused
    };
    let at = (usize::from(split) * 48).min(data.len());
    let head: &[u8] = if split & 2 == 0 { &[] } else { &HEADER };
    let sources = [&data[..at], &data[at..]].map(|bytes| {
        let source: Box<dyn Read + Send> = Box::new(Cursor::new([head, bytes].concat()));
        (PathBuf::from("fuzz"), source)
    });
    let mut completions = Completions::new(Trace::from_sources(sources.into(), partial));
    let mut errors = 0;
    loop {
        match completions.next() {
            Ok(Some(c)) => {
                let bytes: u64 = c.parts.iter().map(|p| u64::from(p.bytes)).sum();
                assert_eq!(bytes, u64::from(c.bytes));
            }
            Ok(None) => break,
            Err(_) => errors += 1,
        }
    }
    assert!(errors <= 1);
    completions
        .notices()
        .iter()
        .for_each(|notice| drop(notice.to_string()));
});
