// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace flash`: what a model of a drive writes to its flash if a recording is repeated on it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mostrace_bundle::Manifest;
use mostrace_bundle::health::{DATA_UNIT, DATA_UNITS_WRITTEN, MEDIA_BYTES_WRITTEN};
use mostrace_trace::answer::size;
use mostrace_trace::causes::in_proportion;
use mostrace_trace::flash::{Drive, Level, Load, Model, Part, Taking, free, share};
use mostrace_trace::output::Output;
use mostrace_trace::reading::Reading;
use mostrace_trace::text::grouped;
use mostrace_trace::transactions::Transactions;
use serde_json::json;

use crate::paint;
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
    #[command(flatten)]
    drive: Drive,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The file to write to; - is the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Flash {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns an error if the recording cannot be read, or if the drive cannot be.
    pub fn run(mut self) -> anyhow::Result<()> {
        self.drive.page.get_or_insert(self.drive.unit);
        let drive = &self.drive;
        if let Err(what) = drive.shape() {
            usage!("{what}");
        }
        let mut taking = Taking::new(drive.unit);
        let reading = self.source.read(&mut taking)?;
        let [recording] = &reading.recordings[..] else {
            usage!("several recordings have no device in common: name one, or the segments of one");
        };
        let path = recording.path().display();
        let free = drive.needs_free().then(|| free(recording)).transpose()?;
        if free == Some(None) {
            usage!(
                "{path}: it has no snapshot that says what is free, which --discard always and --fstrim-every need"
            );
        }
        let manifest = reading.manifest.as_ref();
        let load = taking.load(
            &reading.origins,
            manifest,
            &free.flatten().unwrap_or_default(),
        );
        if load.writes == 0 {
            anyhow::bail!("{path}: nothing was written");
        }
        let model = match Model::of(drive, &load) {
            Ok(model) => model,
            Err(what) => usage!("{path}: {what}"),
        };
        let headline = headline(&model, &reading);
        let measured = measured(manifest);
        let mut out = Output::create(self.output.as_deref())?;
        if self.json {
            return Ok(out.json(&json!({
                "trace": path.to_string(),
                "warnings": reading.warnings,
                "about": drive.words(),
                "drive": drive,
                "headline": headline,
                "model": model,
                "measured": measured.map(|(given, written)| written / given),
            }))?);
        }
        let measured = measured.map(|(given, written)| {
            let ratio = written / given;
            let (written, given) = (size(written), size(given));
            format!("The drive itself counted {ratio:.2} ×: {written} to its media for {given} that it was given.")
        });
        let lines = [drive.words(), headline];
        let lines = lines.into_iter().chain(repeated(&model, &load));
        let lines = reading.warnings.into_iter().chain(lines).chain(measured);
        let lines = lines.chain(parts(&model.at.parts)).chain(curve(&model));
        let lines = lines.chain(states(&model, drive));
        let text: String = lines.map(|line| line + "\n").collect();
        Ok(paint::put(&mut out, &text)?)
    }
}

fn times(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 100.0 => format!("{ratio:.0}"),
        _ if ratio >= 10.0 => format!("{ratio:.1}"),
        _ => format!("{ratio:.2}"),
    }
}

/// Returns stored → device → flash, for each transaction if their number is known; each ratio has its base.
fn headline(model: &Model, reading: &Reading) -> String {
    let told = Transactions::new(reading.manifest.as_ref(), &reading.databases);
    let stored = told.payload_bytes.map(|bytes| bytes as f64);
    let each = told.count.divisor().filter(|_| stored.is_some());
    let size = |bytes: f64| size(bytes / each.unwrap_or(1) as f64);
    let device = model.device_bytes as f64;
    let ahead = each.map_or("", |_| "Per transaction: ");
    let from = stored.map_or(String::new(), |bytes| format!("{} stored → ", size(bytes)));
    let base = stored.map_or(String::new(), |bytes| {
        format!(" ({} × stored)", times(device / bytes))
    });
    format!(
        "{ahead}{from}{} at the device{base} → {} on flash ({} × the device's).",
        size(device),
        size(device * model.at.ratio),
        times(model.at.ratio)
    )
}

/// Returns what the ratio is made of, and how it was found.
fn repeated(model: &Model, load: &Load) -> Vec<String> {
    let at = &model.at;
    let mut made = format!("{} moved by the collector", times(at.moved));
    if model.rounded > 1.005 {
        made += &format!(", {} to write whole units", times(model.rounded - 1.0));
    }
    if at.padded > 0.0 {
        made += &format!(", {} left empty by flushes", times(at.padded));
    }
    let until = match at.is_steady {
        true => "until steady",
        false => "and NOT steady",
    };
    let copies = match load.device_bytes {
        Some(device) if model.copies > 1 => format!(
            "{} copies take turns, as on so many devices of {}",
            grouped(model.copies.into()),
            size(device as f64)
        ),
        _ => "1 copy".into(),
    };
    let own = share(model.own_share);
    let mut lines = vec![
        format!("Of these, for each byte of the device's: {made}."),
        format!(
            "Repeated {} times {until}: {} to {} × in the last laps. {copies}; they write {own} of the capacity.",
            grouped(at.repetitions),
            times(at.least),
            times(at.greatest),
        ),
    ];
    if load.discards > 0 {
        let discards = share(load.discards as f64 / load.writes as f64);
        lines.push(format!(
            "The recording discards {discards} of the units that it writes."
        ));
    }
    if model.own_share > at.fill - 1e-9 {
        lines.push(format!(
            "What it writes alone fills {own}: lower levels cannot be."
        ));
    }
    lines
}

/// Returns the bytes that the drive was given and wrote, by its own counters.
fn measured(manifest: Option<&Manifest>) -> Option<(f64, f64)> {
    let health = manifest?.health.as_ref()?;
    // The host's counter has units of 512,000 bytes.
    let units = health.grown(DATA_UNITS_WRITTEN).filter(|n| *n >= 100)?;
    let given = units.checked_mul(DATA_UNIT)?;
    Some((given as f64, health.grown(MEDIA_BYTES_WRITTEN)? as f64))
}

/// Returns the table of what is moved, by layer and program; its shares sum to 100 %.
fn parts(parts: &[Part]) -> Vec<String> {
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
    let large = rows.iter().take_while(|(share, _)| *share >= LEAST).count();
    let rest = rows.split_off(large.min(MOST)).into_iter();
    let rest = rest.map(|(share, _)| share).reduce(|a, b| a + b);
    rows.extend(rest.map(|share| (share, "others".into())));
    if rows.is_empty() {
        return vec![String::new(), "Nothing is moved.".into()];
    }
    let weights: Vec<u64> = rows
        .iter()
        .map(|(share, _)| (share * 1e12) as u64)
        .collect();
    let rows = in_proportion(100, &weights).into_iter().zip(rows);
    let rows = rows.filter(|(percent, _)| *percent > 0);
    let rows = rows.map(|(percent, (_, name))| format!(" {percent:>3} %  {name}"));
    let title = [String::new(), " moved  layer: program → file".into()];
    title.into_iter().chain(rows).collect()
}

/// Returns the curve over levels of fill.
fn curve(model: &Model) -> Vec<String> {
    let most = model
        .curve
        .iter()
        .map(|level| level.ratio)
        .fold(1.0, f64::max);
    let line = |level: &Level| {
        let bar = "█".repeat(((level.ratio / most * BAR) as usize).max(1));
        let mark = match level.is_steady {
            false => " not steady",
            true if level.fill == model.at.fill => " ←",
            true => "",
        };
        let (fill, ratio) = (share(level.fill), times(level.ratio));
        format!("{fill:>7}  {ratio:>5} × {bar}{mark}")
    };
    let title = [String::new(), "   full  flash × the device's".into()];
    title
        .into_iter()
        .chain(model.curve.iter().map(line))
        .collect()
}

/// Returns the states of a drive's life.
fn states(model: &Model, drive: &Drive) -> Vec<String> {
    let fill = share(model.at.fill);
    let [new, at, full, after] = [
        model.new,
        model.at.ratio,
        model.full.ratio,
        model.after_fstrim.ratio,
    ]
    .map(times);
    let life = format!(
        "New {new} ×, {fill} full {at} ×, all once written and nothing discarded {full} ×, {fill} again by fstrim {after} ×."
    );
    let saw = model.saw.zip(drive.fstrim_every).map(|(saw, every)| {
        let [after, before] = [saw.after, saw.before].map(times);
        let freed = size((saw.units * drive.unit) as f64);
        format!("With fstrim every {every:?}: {after} × after one, {before} × before the next; each frees {freed}.")
    });
    [String::new(), life].into_iter().chain(saw).collect()
}
