// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace flash`: what a model of a drive writes to its flash if a recording is repeated on it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use mostrace_bundle::health::{DATA_UNIT, DATA_UNITS_WRITTEN, Health, MEDIA_BYTES_WRITTEN};
use mostrace_bundle::{Manifest, units};
use mostrace_trace::answer::size;
use mostrace_trace::flash::{Collector, Discards, Drive, Level, Load, Model, Part, Taking, free};
use mostrace_trace::output::Output;
use mostrace_trace::reading::Reading;
use mostrace_trace::text::{escape, grouped};
use mostrace_trace::transactions::Transactions;
use serde_json::{Value, json};

use crate::source::SourceArgs;
use crate::usage::usage;

/// Number of owners that are shown, and the least share of each.
const MOST: usize = 8;
const LEAST: f64 = 0.01;
/// The width of the longest bar.
const BAR: f64 = 40.0;

/// Estimate what the flash writes, and whose data it moves
///
/// A model of a page-mapped drive repeats the recording until what the flash is written for each byte is steady. See
/// docs/FLASH.md for what it leaves out. Sizes of blocks, pages and units have K and M as powers of 1024.
///
/// Examples:
///   mostrace flash run.most
///   mostrace flash run.most --capacity 64GB --fill 90%
///   mostrace flash run.most --discard none                 (what trim saves is the difference)
///   mostrace flash run.most --fstrim-every 1d
///   mostrace flash run.most --page 16K                     (each flush programs a whole page)
///   mostrace flash run.most --json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Flash {
    #[command(flatten)]
    source: SourceArgs,
    /// The drive's capacity
    #[arg(long, value_name = "SIZE", default_value = "32GB", value_parser = units::amount)]
    capacity: u64,
    /// The share of it that has data
    #[arg(long, value_name = "PERCENT", default_value = "80%", value_parser = percent)]
    fill: f64,
    /// Flash beyond the capacity, as a share of it
    #[arg(long, value_name = "PERCENT", default_value = "7%", value_parser = percent)]
    spare: f64,
    /// What is programmed at once. If it is more than a unit, a flush leaves the rest of a page empty, as drives do that would
    /// otherwise lose it with the power [default: a unit]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    page: Option<u64>,
    /// What is erased at once
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = units::size)]
    block: u64,
    /// What is mapped at once
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = units::size)]
    unit: u64,
    /// How the next block to be erased is chosen
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    collector: Collector,
    /// Blocks that are written at one time: with 2, what is moved has its own; with more, what was moved again, too
    #[arg(long, value_name = "N", default_value_t = 1)]
    streams: u32,
    /// Which discards reach the drive
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    discard: Discards,
    /// Discard so often all that the snapshot says is free, such as 1h, 1d
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    fstrim_every: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The file to write to; - is the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Parses `80%` or `80` as 0.8.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    let number = number.ok().filter(|number| number.is_finite());
    number
        .map(|number| number / 100.0)
        .ok_or_else(|| format!("`{text}` is not a percentage; examples: 80%, 7, 12.5%"))
}

impl Flash {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns an error if the recording cannot be read, or if the drive cannot be.
    pub fn run(self) -> anyhow::Result<()> {
        let drive = Drive {
            capacity: self.capacity,
            spare: self.spare,
            page: self.page.unwrap_or(self.unit),
            block: self.block,
            unit: self.unit,
            collector: self.collector,
            streams: self.streams,
            fill: self.fill,
            discards: self.discard,
            fstrim_every: self.fstrim_every,
        };
        if let Err(what) = drive.shape() {
            usage!("{what}");
        }
        let mut taking = Taking::new(drive.unit);
        let reading = self.source.read(&mut taking)?;
        let [recording] = &reading.recordings[..] else {
            usage!("several recordings have no device in common: name one, or the segments of one");
        };
        let path = recording.path().display();
        let free: Vec<Range<u64>> = match self.discard == Discards::Always
            || self.fstrim_every.is_some()
        {
            false => Vec::new(),
            true => match free(recording)? {
                Some(free) => free,
                None => usage!(
                    "{path}: it has no snapshot that says what is free, which --discard always and --fstrim-every need"
                ),
            },
        };
        let manifest = reading.manifest.as_ref();
        let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
        let filesystem = filesystem.map_or("the filesystem".into(), |f| escape(f.kind.as_bytes()));
        let load = taking.load(&reading.origins, &filesystem, &free);
        if load.writes == 0 {
            anyhow::bail!("{path}: nothing was written");
        }
        let recorded = manifest.map(|m| m.device.sectors.saturating_mul(512));
        let model = match Model::of(&drive, &load, recorded) {
            Ok(model) => model,
            Err(what) => usage!("{path}: {what}"),
        };
        let mut out = Output::create(self.output.as_deref())?;
        let headline = headline(&model, &reading);
        let measured = manifest.and_then(|m| m.health.as_ref()).and_then(measured);
        if self.json {
            let json = json!({
                "trace": path.to_string(),
                "warnings": reading.warnings,
                "drive": value(&drive),
                "headline": headline,
                "model": model,
                "measured": measured.map(|(ratio, ..)| ratio),
            });
            return Ok(out.json(&json)?);
        }
        let mut lines = reading.warnings.clone();
        lines.extend([first(&drive), headline]);
        lines.extend(repeated(&model, &load, manifest));
        lines.extend(measured.map(|(ratio, given, written)| {
            format!(
                "The drive itself counted {ratio:.2} ×: {} to its media for {} that it was given.",
                size(written),
                size(given)
            )
        }));
        lines.extend(parts(&model.parts));
        lines.extend(curve(&model));
        lines.extend(states(&model, &drive));
        Ok(out.text(
            &lines
                .into_iter()
                .map(|line| line + "\n")
                .collect::<String>(),
        )?)
    }
}

fn word(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns the parameters for JSON.
fn value(drive: &Drive) -> Value {
    json!({
        "capacity": drive.capacity,
        "spare": drive.spare,
        "page": drive.page,
        "block": drive.block,
        "unit": drive.unit,
        "collector": word(&drive.collector),
        "streams": drive.streams,
        "fill": drive.fill,
        "discard": word(&drive.discards),
        "fstrim_every_s": drive.fstrim_every.map(|every| every.as_secs_f64()),
    })
}

/// Returns the line that says that it is a model, and of what.
fn first(drive: &Drive) -> String {
    let Drive {
        capacity,
        fill,
        spare,
        block,
        unit,
        page,
        streams,
        ..
    } = *drive;
    let page = if page == unit {
        String::new()
    } else {
        format!(", pages of {}", binary(page))
    };
    let streams = if streams == 1 {
        String::new()
    } else {
        format!(", {streams} streams")
    };
    format!(
        "A model, not measured: {}, {} full, spare {}, blocks of {}{page}, units of {}, {}{streams}.",
        size(capacity as f64),
        share(fill),
        share(spare),
        binary(block),
        binary(unit),
        word(&drive.collector),
    )
}

/// Formats the size of a block or a page, which is a power of two.
fn binary(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

fn share(of: f64) -> String {
    let percent = (of * 1000.0).round() / 10.0;
    format!("{percent} %")
}

/// Returns stored → device → flash, for each transaction if their number is known; each ratio has its base.
fn headline(model: &Model, reading: &Reading) -> String {
    let transactions = Transactions::new(reading.manifest.as_ref(), &reading.databases);
    let each = transactions
        .count
        .divisor()
        .filter(|_| transactions.payload_bytes.is_some());
    let by = each.unwrap_or(1) as f64;
    let device = model.device_bytes as f64;
    let stored = transactions
        .payload_bytes
        .filter(|bytes| *bytes > 0)
        .map(|bytes| bytes as f64);
    let ahead = each.map_or("", |_| "Per transaction: ");
    let from = stored.map_or(String::new(), |bytes| {
        format!("{} stored → ", size(bytes / by))
    });
    let base = stored.map_or(String::new(), |bytes| {
        format!(" ({} × stored)", times(device / bytes))
    });
    format!(
        "{ahead}{from}{} at the device{base} → {} on flash ({} × the device's).",
        size(device / by),
        size(device * model.at.ratio / by),
        times(model.at.ratio)
    )
}

fn times(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 100.0 => format!("{ratio:.0}"),
        _ if ratio >= 10.0 => format!("{ratio:.1}"),
        _ => format!("{ratio:.2}"),
    }
}

/// Returns what the ratio is made of, and how it was found.
fn repeated(model: &Model, load: &Load, manifest: Option<&Manifest>) -> Vec<String> {
    let Level {
        moved,
        padded,
        least,
        greatest,
        repetitions,
        is_steady,
        fill,
        ..
    } = model.at;
    let mut made = vec![format!("{} moved by the collector", times(moved))];
    if model.rounded > 1.005 {
        made.push(format!(
            "{} to write whole units",
            times(model.rounded - 1.0)
        ));
    }
    if padded > 0.0 {
        made.push(format!("{} left empty by flushes", times(padded)));
    }
    let until = if is_steady {
        "until steady"
    } else {
        "and NOT steady"
    };
    let of = match manifest {
        Some(m) if model.copies > 1 => format!(
            "{} copies take turns, as on so many devices of {}",
            grouped(model.copies.into()),
            size(m.device.sectors.saturating_mul(512) as f64)
        ),
        _ => "1 copy".into(),
    };
    let mut lines = vec![
        format!(
            "Of these, for each byte of the device's: {}.",
            made.join(", ")
        ),
        format!(
            "Repeated {} times {until}: {} to {} × in the last laps. {of}; they write {} of the capacity.",
            grouped(repetitions),
            times(least),
            times(greatest),
            share(model.own_share)
        ),
    ];
    if load.discards > 0 {
        lines.push(format!(
            "The recording discards {} of the units that it writes.",
            share(load.discards as f64 / load.writes as f64)
        ));
    }
    if model.own_share > fill - 1e-9 {
        lines.push(format!(
            "What it writes alone fills {}: lower levels cannot be.",
            share(model.own_share)
        ));
    }
    lines
}

/// Returns the ratio that the drive's own counters tell, and the bytes that it was given and wrote.
fn measured(health: &Health) -> Option<(f64, f64, f64)> {
    let given = health.grown(DATA_UNITS_WRITTEN)?.checked_mul(DATA_UNIT)? as f64;
    let written = health.grown(MEDIA_BYTES_WRITTEN)? as f64;
    // The host's counter has units of 512,000 bytes.
    (given >= 100.0 * DATA_UNIT as f64).then(|| (written / given, given, written))
}

/// Returns the table of what is moved; its shares sum to 100 %.
fn parts(parts: &[Part]) -> Vec<String> {
    let mut rows = by_program(parts);
    let large = rows.iter().take_while(|(share, _)| *share >= LEAST).count();
    let rest = rows.split_off(large.min(MOST));
    if let Some(others) = rest.iter().map(|(share, _)| *share).reduce(|a, b| a + b) {
        rows.push((others, "others".into()));
    }
    if rows.is_empty() {
        return vec![String::new(), "Nothing is moved.".into()];
    }
    let shares: Vec<f64> = rows.iter().map(|(share, _)| *share).collect();
    let shown = rounded(&shares).into_iter().zip(rows);
    let shown = shown.filter(|(percent, _)| *percent > 0);
    let ahead = [String::new(), " moved  layer: program → file".into()];
    let lines = shown.map(|(percent, (_, name))| format!(" {percent:>3} %  {name}"));
    ahead.into_iter().chain(lines).collect()
}

/// Sums what each program caused in a layer; returns the shares and the names, the largest first.
fn by_program(parts: &[Part]) -> Vec<(f64, String)> {
    let mut sums: BTreeMap<[&str; 2], (f64, Vec<&str>)> = BTreeMap::new();
    for Part { owner, share, .. } in parts {
        let sum = sums.entry([&owner.layer, &owner.program]).or_default();
        sum.0 += share;
        sum.1.push(&owner.file);
    }
    let named = sums.into_iter().map(|([layer, program], (share, files))| {
        let name = match (program, &files[..]) {
            ("", _) => layer.to_owned(),
            (_, [file]) => format!("{layer}: {program} → {file}"),
            (_, several) => format!("{layer}: {program} → {} files", several.len()),
        };
        (share, name)
    });
    let mut rows: Vec<(f64, String)> = named.collect();
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    rows
}

/// Rounds shares to per cent so that they sum to 100: those with the largest remainders are rounded up.
fn rounded(shares: &[f64]) -> Vec<u64> {
    let mut percents: Vec<u64> = shares.iter().map(|share| (share * 100.0) as u64).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    let remainder = |at: &usize| (shares[*at] * 100.0).fract();
    order.sort_by(|a, b| remainder(b).total_cmp(&remainder(a)));
    let left = 100_u64.saturating_sub(percents.iter().sum());
    for at in order
        .into_iter()
        .cycle()
        .take(usize::try_from(left).unwrap_or(0))
    {
        percents[at] += 1;
    }
    percents
}

/// Returns the curve over levels of fill.
fn curve(model: &Model) -> Vec<String> {
    let most = model
        .curve
        .iter()
        .map(|level| level.ratio)
        .fold(1.0, f64::max);
    let mut lines = vec![String::new(), "   full  flash × the device's".into()];
    for level in &model.curve {
        let bar = "█".repeat(((level.ratio / most * BAR) as usize).max(1));
        let mark = match (level.fill == model.at.fill, level.is_steady) {
            (_, false) => " not steady",
            (true, _) => " ←",
            _ => "",
        };
        lines.push(format!(
            "{:>7}  {:>5} × {bar}{mark}",
            share(level.fill),
            times(level.ratio)
        ));
    }
    lines
}

/// Returns the states of a drive's life.
fn states(model: &Model, drive: &Drive) -> Vec<String> {
    let fill = share(model.at.fill);
    let mut lines = vec![
        String::new(),
        format!(
            "New {} ×, {fill} full {} ×, all once written and nothing discarded {} ×, {fill} again by fstrim {} ×.",
            times(model.new),
            times(model.at.ratio),
            times(model.full.ratio),
            times(model.after_fstrim.ratio)
        ),
    ];
    if let (Some(saw), Some(every)) = (model.saw, drive.fstrim_every) {
        lines.push(format!(
            "With fstrim every {every:?}: {} × after one, {} × before the next; each frees {}.",
            times(saw.after),
            times(saw.before),
            size((saw.units * drive.unit) as f64)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_shares_sum_to_a_hundred() {
        assert_eq!(rounded(&[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]), [34, 33, 33]);
        assert_eq!(rounded(&[0.996, 0.002, 0.002]), [100, 0, 0]);
        assert_eq!(rounded(&[0.555, 0.445]), [56, 44]);
    }

    #[test]
    fn percentages_may_have_a_sign() {
        assert_eq!(
            ["80%", "80", "12.5%"].map(|text| percent(text).unwrap()),
            [0.8, 0.8, 0.125]
        );
        assert!(
            ["", "%", "x", "inf", "8 %"]
                .iter()
                .all(|text| percent(text).is_err())
        );
    }
}
