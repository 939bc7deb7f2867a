// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace flash`: what a model of a drive writes to its flash if a recording is repeated on it.

use std::path::PathBuf;

use mostrace_bundle::Manifest;
use mostrace_bundle::health::{DATA_UNIT, DATA_UNITS_WRITTEN, MEDIA_BYTES_WRITTEN};
use mostrace_trace::answer::size;
use mostrace_trace::causes::in_proportion;
use mostrace_trace::flash::{Drive, Level, Load, Model, Owner, Part, Taking, free, share, sums};
use mostrace_trace::output::Output;
use mostrace_trace::reading::Reading;
use mostrace_trace::text::grouped;
use mostrace_trace::transactions::Transactions;
use serde_json::json;

use crate::paint;
use crate::source::SourceArgs;
use crate::usage::{UsageError, usage};

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
        drive.shape().map_err(UsageError)?;
        let mut taking = Taking::new(drive.unit);
        let reading = self.source.read(&mut taking)?;
        let [recording] = &reading.recordings[..] else {
            usage!("several recordings have no device in common: name one, or the segments of one");
        };
        let path = recording.path().display();
        let free = match drive.needs_free() {
            true => free(recording)?,
            false => Some(Vec::new()),
        };
        let Some(free) = free else {
            anyhow::bail!(
                "{path}: it has no snapshot that says what is free, which --discard always and --fstrim-every need"
            );
        };
        let manifest = reading.manifest.as_ref();
        let load = taking.load(&reading.origins, manifest, &free);
        if load.writes == 0 {
            anyhow::bail!("{path}: nothing was written");
        }
        let model = Model::of(drive, &load);
        let model = model.map_err(|what| anyhow::anyhow!("{path}: {what}"))?;
        let (headline, measured) = (headline(&model, &reading), measured(manifest));
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
            let (ratio, [given, written]) = (written / given, [given, written].map(size));
            format!("The drive itself counted {ratio:.2} ×: {written} to its media for {given} that it was given.")
        });
        let lines = [
            reading.warnings,
            vec![drive.words(), headline],
            repeated(&model, &load),
            measured.into_iter().collect(),
            parts(&model.at.parts),
            curve(&model),
            states(&model, drive),
        ];
        Ok(paint::put(&mut out, &(lines.concat().join("\n") + "\n"))?)
    }
}

fn times(ratio: f64) -> String {
    let digits = [10.0, 100.0].iter().filter(|least| ratio < **least);
    format!("{ratio:.*}", digits.count())
}

/// Returns stored → device → flash, for each transaction if their number is known; each ratio has its base.
fn headline(model: &Model, reading: &Reading) -> String {
    let told = Transactions::new(reading.manifest.as_ref(), &reading.databases);
    let stored = told.payload_bytes.map(|bytes| bytes as f64);
    let each = told.count.divisor().filter(|_| stored.is_some());
    let size = |bytes: f64| size(bytes / each.unwrap_or(1) as f64);
    let (device, ratio) = (model.device_bytes as f64, model.at.ratio);
    let ahead = each.map_or("", |_| "Per transaction: ");
    let from = stored.map(|bytes| format!("{} stored → ", size(bytes)));
    let base = stored.map(|bytes| format!(" ({} × stored)", times(device / bytes)));
    let [from, base] = [from, base].map(Option::unwrap_or_default);
    let (device, flash, ratio) = (size(device), size(device * ratio), times(ratio));
    format!(
        "{ahead}{from}{device} at the device{base} → {flash} on flash ({ratio} × the device's)."
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
    let copies = match load.device_bytes.map(|bytes| size(bytes as f64)) {
        Some(device) if model.copies > 1 => {
            let copies = grouped(model.copies.into());
            format!("{copies} copies take turns, as on so many devices of {device}")
        }
        _ => "1 copy".into(),
    };
    let (repetitions, own) = (grouped(at.repetitions), share(model.own_share));
    let [least, greatest] = [at.least, at.greatest].map(times);
    let discards = share(load.discards as f64 / load.writes as f64);
    let lines = [
        Some(format!("Of these, for each byte of the device's: {made}.")),
        Some(format!(
            "Repeated {repetitions} times {until}: {least} to {greatest} × in the last laps. {copies}; they write {own} of the capacity."
        )),
        (load.discards > 0)
            .then(|| format!("The recording discards {discards} of the units that it writes.")),
        (model.own_share > at.fill - 1e-9)
            .then(|| format!("What it writes alone fills {own}: lower levels cannot be.")),
    ];
    lines.into_iter().flatten().collect()
}

/// Returns the bytes that the drive was given and wrote, by its own counters.
fn measured(manifest: Option<&Manifest>) -> Option<(f64, f64)> {
    let health = manifest?.health.as_ref()?;
    // The host's counter has units of 512,000 bytes.
    let units = health.grown(DATA_UNITS_WRITTEN).filter(|n| *n >= 100)?;
    let given = units.checked_mul(DATA_UNIT)?;
    Some((given as f64, health.grown(MEDIA_BYTES_WRITTEN)? as f64))
}

fn whose(owner: &Owner) -> (&str, &str) {
    (&owner.layer, &owner.program)
}

/// Returns the table of what is moved, by layer and program; its shares sum to 100 %.
fn parts(parts: &[Part]) -> Vec<String> {
    let sums = sums(parts.iter().map(|part| (whose(&part.owner), part.share)));
    let name = |(layer, program): (&str, &str)| {
        let its = parts.iter().map(|part| &part.owner);
        let its: Vec<&Owner> = its.filter(|o| whose(o) == (layer, program)).collect();
        match (program, &its[..]) {
            ("", _) => layer.to_owned(),
            (_, [one]) => format!("{layer}: {program} → {}", one.file),
            (_, several) => format!("{layer}: {program} → {} files", several.len()),
        }
    };
    let large = sums.iter().take_while(|(_, share)| *share >= LEAST);
    let (large, rest) = sums.split_at(large.count().min(MOST));
    let rest = rest.iter().map(|(_, share)| *share).reduce(|a, b| a + b);
    let rest = rest.map(|share| (share, "others".into()));
    let rows = large.iter().map(|(whose, share)| (*share, name(*whose)));
    let rows = rows.chain(rest);
    let rows = rows.map(|(share, name)| ((share * 1e12) as u64, name));
    let (weights, names): (Vec<u64>, Vec<String>) = rows.unzip();
    if names.is_empty() {
        return vec![String::new(), "Nothing is moved.".into()];
    }
    let rows = in_proportion(100, &weights).into_iter().zip(names);
    let rows = rows.filter(|(percent, _)| *percent > 0);
    let rows = rows.map(|(percent, name)| format!(" {percent:>3} %  {name}"));
    let title = [String::new(), " moved  layer: program → file".into()];
    title.into_iter().chain(rows).collect()
}

/// Returns the curve over levels of fill.
fn curve(model: &Model) -> Vec<String> {
    let levels = model.curve.iter();
    let most = levels.clone().map(|level| level.ratio).fold(1.0, f64::max);
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
    title.into_iter().chain(levels.map(line)).collect()
}

/// Returns the states of a drive's life.
fn states(model: &Model, drive: &Drive) -> Vec<String> {
    let (fill, new) = (share(model.at.fill), times(model.new));
    let levels = [&model.at, &model.full, &model.after_fstrim];
    let [at, full, after] = levels.map(|level| times(level.ratio));
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
