// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes of completed requests.

use super::{Table, Values, percent};
use crate::attribute::{Attributed, Op};

/// The size that the paper singles out.
const PAGE: u32 = 4096;

/// How many requests of a kind, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Share {
    /// Adds one request.
    pub fn add(&mut self, bytes: u32) {
        self.requests += 1;
        self.bytes += u64::from(bytes);
    }
}

/// One row of the histogram: sizes from `from` to `to`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    from: u32,
    to: u32,
    writes: Share,
    reads: Share,
}

/// Counts of writes and reads by size: below 4 KiB, exactly 4 KiB, then in doubling steps. The
/// columns end with `write_percent` and `read_percent` of the requests; the last row is the total.
pub fn table(attributed: &Attributed) -> Table {
    let mut buckets: Vec<Bucket> = Vec::new();
    let (mut writes, mut reads) = (Share::default(), Share::default());
    for (request, op, _) in attributed
        .by_request()
        .filter(|(_, op, _)| op.carries_data())
    {
        let (from, to) = range(request.bytes);
        let at = buckets
            .iter()
            .position(|b| b.from == from)
            .unwrap_or_else(|| {
                let (writes, reads) = (Share::default(), Share::default());
                buckets.push(Bucket {
                    from,
                    to,
                    writes,
                    reads,
                });
                buckets.len() - 1
            });
        let (share, total) = match op {
            Op::Write => (&mut buckets[at].writes, &mut writes),
            _ => (&mut buckets[at].reads, &mut reads),
        };
        share.add(request.bytes);
        total.add(request.bytes);
    }
    buckets.sort_by_key(|b| b.from);
    lay_out(&buckets, writes, reads)
}

/// The bucket of a size.
fn range(bytes: u32) -> (u32, u32) {
    match bytes {
        0..PAGE => (1, PAGE - 1),
        PAGE => (PAGE, PAGE),
        _ => {
            let to = bytes.checked_next_power_of_two().unwrap_or(u32::MAX);
            (to / 2 + 1, to)
        }
    }
}

fn lay_out(buckets: &[Bucket], writes: Share, reads: Share) -> Table {
    let all: Vec<(Option<&Bucket>, Share, Share)> = buckets
        .iter()
        .map(|b| (Some(b), b.writes, b.reads))
        .chain([(None, writes, reads)])
        .collect();
    let amount = |f: fn(&Share, &Share) -> u64| {
        Values::Amount(all.iter().map(|(_, w, r)| Some(f(w, r))).collect())
    };
    let edge = |f: fn(&Bucket) -> u32| {
        Values::Amount(all.iter().map(|(b, ..)| b.map(|b| f(b).into())).collect())
    };
    let mut table = Table {
        has_total: true,
        ..Table::default()
    };
    table.push(
        "size",
        Values::text(
            all.iter()
                .map(|(b, ..)| Some(b.map_or("total".into(), name))),
        ),
    );
    table.push("from_bytes", edge(|b| b.from));
    table.push("to_bytes", edge(|b| b.to));
    table.push("writes", amount(|w, _| w.requests));
    let of = |part: u64, whole: u64| percent(part, whole);
    table.push(
        "write_percent",
        Values::Real(
            all.iter()
                .map(|(_, w, _)| of(w.requests, writes.requests))
                .collect(),
        ),
    );
    table.push("write_bytes", amount(|w, _| w.bytes));
    table.push("reads", amount(|_, r| r.requests));
    table.push(
        "read_percent",
        Values::Real(
            all.iter()
                .map(|(.., r)| of(r.requests, reads.requests))
                .collect(),
        ),
    );
    table.push("read_bytes", amount(|_, r| r.bytes));
    table
}

fn name(bucket: &Bucket) -> String {
    match bucket {
        Bucket { to, .. } if *to < PAGE => "under 4 KiB".into(),
        Bucket { from, to, .. } if from == to => "4 KiB".into(),
        Bucket { from, to, .. } => format!(
            "over {} to {} KiB",
            from / 1024,
            u64::from(*to).div_ceil(1024)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn sizes_fall_into_their_ranges() {
        for (bytes, expected) in [
            (512, (1, 4095)),
            (4095, (1, 4095)),
            (4096, (4096, 4096)),
            (4608, (4097, 8192)),
            (8192, (4097, 8192)),
            (8704, (8193, 16384)),
            (u32::MAX, (0x8000_0000, u32::MAX)),
        ] {
            assert_eq!(range(bytes), expected, "{bytes}");
        }
    }
}
