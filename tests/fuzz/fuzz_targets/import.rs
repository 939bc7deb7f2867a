// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another tool's trace, of whatever kind it is taken for. What is imported is a bundle that can be read to its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mostrace_bundle::Writer;
use mostrace_bundle::temporary::TempFolder;
use mostrace_trace::blktrace::Completions;
use mostrace_trace::import::{Choice, import};
use mostrace_trace::recording::Recording;

fuzz_target!(|data: &[u8]| {
    // trace-cmd reads these.
    if data.starts_with(b"\x17\x08\x44tracing") {
        return;
    }
    let folder = TempFolder::new().expect("a folder");
    let text = folder.path().join("trace.txt");
    std::fs::write(&text, data).expect("a file");
    let bundle = folder.path().join("x.most");
    let writer = Writer::create(&bundle).expect("a bundle");
    let Ok(imported) = import(&[text], &Choice::default(), &writer) else {
        return;
    };
    let recordings = Recording::open_all(&[bundle], false).expect("a recording");
    let [recording] = &recordings[..] else {
        panic!("one recording");
    };
    let mut completions = Completions::new(recording.events().expect("events"));
    let mut completed = 0;
    while completions.next().expect("an event").is_some() {
        completed += 1;
    }
    assert!(completed <= imported.completed);
});
