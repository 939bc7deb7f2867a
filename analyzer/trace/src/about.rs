// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines that describe a trace: what was traced, where and how.

use std::collections::BTreeSet;
use std::path::Path;

use mostrace_bundle::Manifest;

use crate::recording::Recording;
use crate::sums::Totals;
use crate::text::{escape, size as decimal};

/// Returns a trace's name: its label, or its file's name without the extension.
pub fn name(path: &Path, manifest: Option<&Manifest>) -> String {
    let label = manifest.and_then(|m| m.label.as_deref());
    let file = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let file = file.strip_suffix(".tar.zst").unwrap_or(&file);
    let file = file.strip_suffix(".most").unwrap_or(file);
    safe(label.unwrap_or(file))
}

/// Returns name and value of each line for several recordings with their manifests: a line for each recording, and the
/// totals of all.
pub fn lines_of_several<'m>(
    each: impl Iterator<Item = (&'m Path, Option<&'m Manifest>)>,
    duration_ns: u64,
    total: &Totals,
) -> Vec<(&'static str, String)> {
    let line = |(path, manifest): (&Path, Option<&Manifest>)| {
        let path = safe(&path.display().to_string());
        let Some(m) = manifest else {
            return ("trace", path);
        };
        let kind = m.filesystem.as_ref().map(|f| format!(", {}", f.kind));
        let (device, kernel) = (&m.device.name, &m.kernel.release);
        let of = safe(&format!("{device}{}, {kernel}", kind.unwrap_or_default()));
        ("trace", format!("{path} ({of})"))
    };
    let mut lines: Vec<_> = each.map(line).collect();
    lines.extend(totals(duration_ns, total));
    if let Some((_, duration)) = lines.iter_mut().find(|(name, _)| *name == "duration") {
        *duration += ", added up";
    }
    lines
}

/// Returns name and value of each line for one recording.
pub fn lines(
    path: &Path,
    manifest: Option<&Manifest>,
    duration_ns: u64,
    total: &Totals,
) -> Vec<(&'static str, String)> {
    let mut lines = vec![("trace", safe(&path.display().to_string()))];
    if let Some(manifest) = manifest {
        lines.extend(of_manifest(manifest));
    }
    lines.extend(totals(duration_ns, total));
    lines
}

fn totals(duration_ns: u64, total: &Totals) -> Vec<(&'static str, String)> {
    let (writes, sync, fua) = (total.writes, total.sync_writes, total.fua_writes);
    let (written, read) = (size(total.write_bytes), size(total.read_bytes));
    let (asked, done) = (total.flushes, total.device_flushes);
    let duration = seconds(duration_ns) + " from the first completion to the last";
    let written =
        format!("{written} in {writes} requests, of them {sync} synchronous, {fua} with FUA");
    let mut lines = vec![
        ("duration", duration),
        ("written", written),
        ("read", format!("{read} in {} requests", total.reads)),
        (
            "flushes",
            format!("{asked} asked for, {done} executed by the device"),
        ),
    ];
    let apart = [
        ("discarded", total.discards, total.discard_bytes),
        ("zeroed", total.write_zeroes, total.write_zeroes_bytes),
    ];
    for (name, requests, bytes) in apart.into_iter().filter(|(_, requests, _)| *requests > 0) {
        lines.push((name, format!("{} in {requests} requests", size(bytes))));
    }
    if total.others > 0 {
        let (others, bytes) = (total.others, size(total.other_bytes));
        let others = format!("{bytes} in {others} passthrough or zone requests");
        lines.push(("others", others));
    }
    if total.failed > 0 {
        let failed = format!("{} requests, counted like the others", total.failed);
        lines.push(("failed", failed));
    }
    lines
}

/// Returns a sentence that says that nothing is missing and how that is known; None if there are warnings.
pub fn whole(recordings: &[Recording], warnings: &[String]) -> Option<String> {
    if !warnings.is_empty() {
        return None;
    }
    if recordings.iter().any(|one| one.bundles().is_empty()) {
        return Some("A bare trace does not say what was lost.".into());
    }
    let bundles = || recordings.iter().flat_map(Recording::bundles);
    let told = bundles().map(|bundle| match &bundle.manifest().counters {
        Some(counters) => counters.to_string(),
        None => "there are no counters of the kernel to compare with".into(),
    });
    let told: BTreeSet<String> = told.collect();
    let told: Vec<String> = told.into_iter().collect();
    // A recorder counts its losses, if only to 0; what another tool traced need not tell them.
    let lost = match bundles().all(|bundle| !bundle.manifest().losses.is_empty()) {
        true => "Nothing was lost",
        false => "The trace does not say what was lost",
    };
    Some(safe(&format!("{lost}; {}.", told.join(", and of others "))))
}

fn of_manifest(m: &Manifest) -> Vec<(&'static str, String)> {
    let d = &m.device;
    let mut lines = Vec::new();
    let mut place = format!(
        "{} ({}), {}",
        d.name,
        d.dev,
        size(d.sectors.saturating_mul(512))
    );
    if d.start_sector > 0 {
        place += &format!(", sector {} of {}", d.start_sector, d.disk);
    }
    if let Some(file) = &d.backing_file {
        place += &format!(", in {file}");
    }
    lines.push(("device", place));
    let disk = if d.rotational {
        "rotational"
    } else {
        "not rotational"
    };
    let fua = if d.fua { "FUA" } else { "no FUA" };
    let queue = format!(
        "scheduler {}, write cache {}, {fua}, {disk}",
        d.scheduler, d.write_cache
    );
    lines.push(("queue", queue));
    if let Some(fs) = &m.filesystem {
        let mount = fs
            .mount_point
            .as_deref()
            .map(|m| format!(" on {m}"))
            .unwrap_or_default();
        let options = fs
            .mount_options
            .as_deref()
            .map(|o| format!(" ({o})"))
            .unwrap_or_default();
        lines.push(("filesystem", format!("{}{mount}{options}", fs.kind)));
    }
    lines.push((
        "kernel",
        format!("{} {}", m.kernel.release, m.kernel.machine),
    ));
    let s = &m.sources;
    let sources = format!(
        "events by {}, entries by {}, files: {}",
        s.events, s.entries, s.files
    );
    lines.push(("captured", sources));
    if let Some(counters) = m
        .counters
        .as_ref()
        .filter(|c| c.differences().next().is_none())
    {
        lines.push(("checked", counters.to_string()));
    }
    if let Some(health) = &m.health
        && let Some(words) = health.words()
    {
        let (disk, source) = (&health.disk, &health.source);
        lines.push(("drive", format!("{disk} itself ({source}): {words}")));
    }
    if let Some(command) = &m.command {
        let status = match command.exit_status {
            Some(0) | None => String::new(),
            Some(status) => format!(" (exit status {status})"),
        };
        lines.push(("command", format!("{}{status}", command.argv.join(" "))));
    }
    lines
        .into_iter()
        .map(|(name, value)| (name, safe(&value)))
        .collect()
}

/// Escapes text of a manifest, which may come from a stranger.
fn safe(text: &str) -> String {
    escape(text.as_bytes())
}

fn seconds(ns: u64) -> String {
    format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}

/// Formats bytes with a unit, followed by the exact number.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        _ => format!("{} ({bytes} bytes)", decimal(bytes as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_bundle::manifest::Filesystem;

    #[test]
    fn several_recordings_have_a_line_each_and_added_up_totals() {
        let mut bare = Manifest::default();
        bare.device.name = "vda".into();
        bare.kernel.release = "6.12\x1b".into();
        let with_filesystem = Manifest {
            filesystem: Some(Filesystem {
                kind: "ext4".into(),
                ..Filesystem::default()
            }),
            ..bare.clone()
        };
        let total = Totals {
            writes: 3,
            write_bytes: 4096,
            sync_writes: 2,
            fua_writes: 1,
            reads: 5,
            read_bytes: 999,
            flushes: 7,
            device_flushes: 6,
            ..Totals::default()
        };
        let each = [
            (Path::new("a.most"), Some(&with_filesystem)),
            (Path::new("b"), Some(&bare)),
            (Path::new("c\x07"), None),
        ];
        let expected = |lines: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            lines
                .iter()
                .map(|&(name, value)| (name, value.to_owned()))
                .collect()
        };
        let all = [
            ("trace", r"a.most (vda, ext4, 6.12\x1b)"),
            ("trace", r"b (vda, 6.12\x1b)"),
            ("trace", r"c\x07"),
            (
                "duration",
                "61.002 s from the first completion to the last, added up",
            ),
            (
                "written",
                "4.1 kB (4096 bytes) in 3 requests, of them 2 synchronous, 1 with FUA",
            ),
            ("read", "999 bytes in 5 requests"),
            ("flushes", "7 asked for, 6 executed by the device"),
        ];
        let lines = lines_of_several(each.into_iter(), 61_002_999_999, &total);
        assert_eq!(lines, expected(&all));
        // What is rare has a line only if there was any.
        let rare = Totals {
            discards: 1,
            discard_bytes: 1000,
            write_zeroes: 2,
            write_zeroes_bytes: 512,
            others: 3,
            other_bytes: 64,
            failed: 4,
            ..total
        };
        let lines = lines_of_several(each.into_iter(), 61_002_999_999, &rare);
        let rest = [
            ("discarded", "1.0 kB (1000 bytes) in 1 requests"),
            ("zeroed", "512 bytes in 2 requests"),
            ("others", "64 bytes in 3 passthrough or zone requests"),
            ("failed", "4 requests, counted like the others"),
        ];
        assert_eq!(lines, expected(&[&all[..], &rest].concat()));
    }
}
