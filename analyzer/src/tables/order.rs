// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequential and random requests.

use std::collections::HashMap;

use super::sizes::Share;
use super::{Table, Values, percent};
use crate::attribute::{Attributed, Op};

/// What the words mean, to stand beside the table.
pub const DEFINITION: &str = "a request is sequential if it begins at the sector where the request \
    of the same direction issued before it on the device ended; the first one is random";

/// Writes and reads, sequential and random, in the order of issue (of completion, where the issue
/// was not seen); the last row is the total.
pub fn table(attributed: &Attributed) -> Table {
    let writes = count(attributed, Op::Write);
    let reads = count(attributed, Op::Read);
    let mut table = Table {
        has_total: true,
        ..Table::default()
    };
    let names = ["sequential", "random", "total"];
    table.push(
        "order",
        Values::text(names.map(|name| Some(name.to_owned()))),
    );
    for (shares, columns) in [
        (writes, ["writes", "write_percent", "write_bytes"]),
        (reads, ["reads", "read_percent", "read_bytes"]),
    ] {
        let [_, _, total] = shares;
        let [requests, percents, bytes] = columns;
        table.push(
            requests,
            Values::Amount(shares.map(|s| Some(s.requests)).into()),
        );
        let of_total = |s: Share| percent(s.requests, total.requests);
        table.push(percents, Values::Real(shares.map(of_total).into()));
        table.push(bytes, Values::Amount(shares.map(|s| Some(s.bytes)).into()));
    }
    table
}

/// Sequential, random, and both.
fn count(attributed: &Attributed, op: Op) -> [Share; 3] {
    let mut issued: Vec<(u64, u32, u64, u32)> = attributed
        .by_request()
        .filter(|(_, o, _)| *o == op)
        .map(|(r, ..)| (r.d_ns.unwrap_or(r.time_ns), r.device, r.sector, r.bytes))
        .collect();
    // Steps of one request have one issue: they stay in the order of sectors.
    issued.sort_unstable();
    let mut ends: HashMap<u32, u64> = HashMap::new();
    let mut shares = [Share::default(); 3];
    for (_, device, sector, bytes) in issued {
        let end = sector.saturating_add(u64::from(bytes / 512));
        let follows = ends.insert(device, end) == Some(sector);
        shares[usize::from(!follows)].add(bytes);
        shares[2].add(bytes);
    }
    shares
}
