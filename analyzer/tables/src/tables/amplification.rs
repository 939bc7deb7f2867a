// SPDX-License-Identifier: MIT OR Apache-2.0
//! Amplification: how many bytes reached the device for each byte that the application stored.

use mostrace_bundle::Manifest;
use mostrace_bundle::health::MEDIA_BYTES_WRITTEN;
use mostrace_bundle::manifest::Payload;

use super::groups::labels_of;
use super::{Result, Table, numbers, percent, ratio, reals, texts};
use mostrace_trace::sums::{Groups, Totals};
use mostrace_trace::transactions::Count;

/// Returns the bytes at each level, their ratios, and the bytes per transaction. If the number of transactions is a lower
/// bound, the latter are upper bounds. `media` is what the drive says to have written to its media; a drive that does not
/// say it has no such level.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn levels(
    payload: &Payload,
    transactions: Count,
    total: &Totals,
    media: Option<u64>,
) -> Result<Table> {
    let levels = [
        ("payload", payload.payload_bytes),
        ("file", payload.file_bytes),
        ("block", total.write_bytes),
    ];
    let levels = levels
        .into_iter()
        .chain(media.map(|bytes| ("media", bytes)));
    let levels: Vec<_> = levels.collect();
    let levels = || levels.iter().copied();
    let times = |name, whole: u64| reals(name, levels().map(|(_, bytes)| ratio(bytes, whole)));
    Table::new(vec![
        texts("level", levels().map(|(name, _)| Some(name.to_owned()))),
        numbers("bytes", levels().map(|(_, bytes)| Some(bytes))),
        times("times_payload", payload.payload_bytes),
        times("times_file", payload.file_bytes),
        times("bytes_per_transaction", transactions.least),
    ])
}

/// Returns what each group contributes to the writes; the shares sum to the whole.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn shares(payload: &Payload, transactions: Count, groups: &Groups) -> Result<Table> {
    let whole = groups.total.write_bytes;
    let real = |name, f: fn(&Totals) -> u64, whole: u64| {
        reals(name, groups.sums().map(move |t| ratio(f(t), whole)))
    };
    let transactions = transactions.least;
    let mut columns = labels_of(groups);
    columns.extend([
        numbers("write_bytes", groups.sums().map(|t| Some(t.write_bytes))),
        reals(
            "write_percent",
            groups.sums().map(|t| percent(t.write_bytes, whole)),
        ),
        real("times_payload", |t| t.write_bytes, payload.payload_bytes),
        real("bytes_per_transaction", |t| t.write_bytes, transactions),
        real("writes_per_transaction", |t| t.writes, transactions),
        real("flushes_per_transaction", |t| t.flushes, transactions),
        real(
            "device_flushes_per_transaction",
            |t| t.device_flushes,
            transactions,
        ),
    ]);
    Table::with_total(columns)
}

/// Returns the bytes that the drive reports as written to its media during a recording; None if it reports none, or if the
/// recording is of another disk that lies on the drive (a loop device).
pub fn media(manifest: &Manifest) -> Option<u64> {
    let health = manifest.health.as_ref()?;
    let is_traced = health.disk == manifest.device.disk;
    health.grown(MEDIA_BYTES_WRITTEN).filter(|_| is_traced)
}

/// Says what the level `media` counts.
pub const MEDIA: &str = "media: what the drive itself counted from before tracing began until after it ended, for all who use the drive";

#[cfg(test)]
mod tests {
    use mostrace_bundle::Health;
    use mostrace_bundle::health::Gauges;

    use super::*;

    #[test]
    fn a_drive_that_tells_its_media_bytes_has_a_fourth_level() {
        let of = |bytes: u64| Gauges::from([(MEDIA_BYTES_WRITTEN.to_owned(), bytes)]);
        let mut manifest = Manifest {
            health: Some(Health {
                disk: "nvme0n1".into(),
                before: of(5_000),
                after: Some(of(9_000)),
                ..Health::default()
            }),
            ..Manifest::default()
        };
        // Nothing is said about a loop device on the drive.
        assert_eq!(media(&manifest), None);
        manifest.device.disk = "nvme0n1".into();
        assert_eq!(media(&manifest), Some(4_000));
        let payload = Payload {
            payload_bytes: 1_000,
            file_bytes: 2_000,
            ..Payload::default()
        };
        let total = Totals {
            write_bytes: 3_000,
            ..Totals::default()
        };
        let last = |media| {
            let table = levels(&payload, Count::default(), &total, media).unwrap();
            let at = table.len() - 1;
            let frame = &table.frame;
            let level = frame.column("level").unwrap().str().unwrap().get(at);
            let times = frame.column("times_file").unwrap().f64().unwrap().get(at);
            (level.unwrap().to_owned(), times.unwrap())
        };
        assert_eq!(last(Some(4_000)), ("media".to_owned(), 2.0));
        assert_eq!(last(None), ("block".to_owned(), 1.5));
    }
}
