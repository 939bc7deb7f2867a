// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events with few sectors, few threads and any actions, so that bios meet in every way. Each C of a request
//! must give a completion whose parts follow one another and add up to its bytes; so must each C of a bio, until a request was issued.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mostrace_trace::blktrace::{Event, LifeCycles};

fuzz_target!(|data: &[u8]| {
    let mut cycles = LifeCycles::new();
    let mut has_requests = false;
    for (time_ns, step) in (0..).zip(data.chunks_exact(5)) {
        let &[what, sector, length, cut, of_request] = step else {
            return;
        };
        let at = u64::from(cut & 0x7f).to_be_bytes();
        let event = Event {
            time_ns: time_ns * if cut & 0x80 == 0 { 1 } else { 1 << 35 },
            // Bits 5 to 7: write, flush, FUA.
            action: u64::from(what & 0x1f)
                | u64::from(what >> 5 & 1) << 17
                | u64::from(what >> 6 & 1) << 18
                | u64::from(what >> 7) << 31
                | u64::from(of_request & 1) << 24,
            sector: u64::from(sector & 0x3f),
            bytes: u32::from(length) * 256,
            pid: u32::from(sector >> 6),
            pdu: &at,
            ..Event::default()
        };
        let completion = cycles.push(&event);
        has_requests |= event.act() == 7 && of_request & 1 == 1;
        let may_be_second = has_requests && of_request & 1 == 0 && event.bytes > 0;
        assert!(
            completion.is_some() == (event.act() == 8) || (completion.is_none() && may_be_second)
        );
        let Some(c) = completion else { continue };
        let mut bytes = 0;
        for part in c.parts {
            assert_eq!(part.sector, c.sector + u64::from(bytes / 512));
            bytes += part.bytes;
        }
        assert_eq!(bytes, c.bytes);
    }
});
