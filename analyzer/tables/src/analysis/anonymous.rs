// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hides the names in what an analysis reports beside its rows: the manifest, the readers' messages and the trace's file
//! name.
//!
//! A manifest's numbers stay, and so do words that are the kernel's or our own. Any other text is hashed, or left out if its
//! hash would be useless.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mostrace_bundle::manifest::{
    Command, Device, Filesystem, Kernel, Payload, Segment, Snapshot, Sources,
};
use mostrace_bundle::{Counters, Manifest};

use super::Analysis;
use crate::facts::{Key, hashed, path_of};
use mostrace_trace::transactions::Database;
use mostrace_trace::{about, reading};

/// Words of the kernel, of filesystems and of the recorder, which do not reveal whose recording it is.
const WORDS: &str = "\
    x86_64 i686 aarch64 armv7l armv8l riscv64 ppc64le s390x loongarch64 \
    none mq-deadline bfq kyber \
    ext2 ext3 ext4 f2fs vfat exfat xfs btrfs \
    blktrace ftrace bpf tracefs kernel temp all \
    e2image walk \
    file sql sqlite mobigen names mobibench \
    entries_ring events_ring submitters bios_cut pages_cut dirtiers causes_ring causes_tasks causes_misses entries_unknown probe_misses \
    events_tracer events_tracefs entries_tracefs extents_forgotten completions \
    reads read_bytes writes write_bytes discards discard_bytes flushes \
    events process handle dirtied call freed \
    process_entries file_entries dirtier_entries handle_entries dirtied_entries call_entries called_entries f2fs_entries \
    fork_entries served_entries freed_entries cgroup_entries comm_entries stack_entries operation_entries operations_ring operations_tasks operations_stores";
/// Known phrases of several words.
const PHRASES: [&str; 2] = ["write back", "write through"];

impl Analysis {
    /// Replaces all names by their keyed hash, as [`Facts::anonymize`](crate::facts::Facts::anonymize) does, and leaves out
    /// what may contain names: notes, notices, settings.
    pub fn anonymize(&mut self, key: &Key) {
        self.facts.anonymize(key);
        for database in &mut self.databases {
            hide(database, key);
        }
        self.facts.replace_manifests(|of| hidden_manifest(of, key));
        let manifest = self.manifest.as_ref();
        let left_out = self.notices.len() + manifest.map_or(0, |manifest| manifest.notes.len());
        let manifest = manifest.map(|manifest| Hidden { key }.manifest(manifest));
        let lacks = self.warnings.iter().any(|w| w.starts_with("INCOMPLETE"));
        self.warnings = manifest
            .as_ref()
            .map(reading::warnings_of)
            .unwrap_or_default();
        if lacks {
            let what = "INCOMPLETE: parts of the recording are missing (which ones is left out)";
            self.warnings.push(what.into());
        }
        let notice = format!("{left_out} notices are left out, as they may hold names");
        self.notices = (left_out > 0).then_some(notice).into_iter().collect();
        self.manifest = manifest;
    }
}

fn hide(database: &mut Database, key: &Key) {
    let hidden = Hidden { key };
    database.bundle = hidden.text(&database.bundle).into();
    database.path = database.path.as_deref().map(|path| path_of(key, path));
    if !database.comm.is_empty() {
        database.comm = hashed(key, &database.comm);
    }
}

/// Returns the name to show for a trace: its path, or with a key the hash of its file's name.
pub fn shown(path: &Path, key: Option<&Key>) -> PathBuf {
    match key {
        Some(key) => Hidden { key }.text(&about::name(path, None)).into(),
        None => path.to_owned(),
    }
}

/// Returns a manifest whose names are replaced by their keyed hash, without what may contain names: notes, settings.
pub fn hidden_manifest(of: &Manifest, key: &Key) -> Manifest {
    Hidden { key }.manifest(of)
}

/// Hides texts by hashing them with a key.
struct Hidden<'k> {
    key: &'k Key,
}

impl Hidden<'_> {
    /// Hashes a text; an empty one stays empty.
    fn text(&self, text: &str) -> String {
        match text {
            "" => String::new(),
            _ => String::from_utf8_lossy(&hashed(self.key, text.as_bytes())).into_owned(),
        }
    }

    fn some(&self, text: Option<&String>) -> Option<String> {
        text.map(|text| self.text(text))
    }

    /// Keeps a known word and hashes any other.
    fn word(&self, word: &str) -> String {
        let is_known = WORDS.split_whitespace().chain(PHRASES).any(|w| w == word);
        match is_known {
            true => word.to_owned(),
            false => self.text(word),
        }
    }

    /// Keeps a device number (major:minor) and hashes any other text.
    fn number(&self, dev: &str) -> String {
        let is_number = dev.bytes().all(|b| b.is_ascii_digit() || b == b':');
        match is_number {
            true => dev.to_owned(),
            false => self.text(dev),
        }
    }

    fn counts(&self, counts: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let counts = counts.iter();
        counts.map(|(name, n)| (self.word(name), *n)).collect()
    }

    fn manifest(&self, of: &Manifest) -> Manifest {
        Manifest {
            schema: of.schema,
            label: self.some(of.label.as_ref()),
            state: of.state,
            kernel: kernel(&of.kernel, self),
            device: self.device(&of.device),
            filesystem: of.filesystem.as_ref().map(|of| self.filesystem(of)),
            segment: of.segment.as_ref().map(segment),
            clock: of.clock,
            sources: self.sources(&of.sources),
            losses: self.counts(&of.losses),
            counts: self.counts(&of.counts),
            interference: match of.interference.len() {
                0 => Vec::new(),
                lines => vec![format!("{lines} lines, which are left out")],
            },
            counters: of.counters.as_ref().map(|of| self.counters(of)),
            causes: of.causes,
            command: of.command.as_ref().map(|of| self.command(of)),
            payload: of.payload.as_ref().map(|of| self.payload(of)),
            snapshot: of.snapshot.as_ref().map(|of| Snapshot {
                method: self.word(&of.method),
                ..*of
            }),
            ..Manifest::default()
        }
    }

    fn device(&self, of: &Device) -> Device {
        Device {
            path: self.text(&of.path),
            name: self.text(&of.name),
            dev: self.number(&of.dev),
            disk: self.text(&of.disk),
            disk_dev: self.number(&of.disk_dev),
            scheduler: self.word(&of.scheduler),
            write_cache: self.word(&of.write_cache),
            backing_file: self.some(of.backing_file.as_ref()),
            ..*of
        }
    }

    fn filesystem(&self, of: &Filesystem) -> Filesystem {
        Filesystem {
            kind: self.word(&of.kind),
            mount_point: self.some(of.mount_point.as_ref()),
            device: self.some(of.device.as_ref()),
            dev: of.dev.as_ref().map(|dev| self.number(dev)),
            ..Filesystem::default()
        }
    }

    fn sources(&self, of: &Sources) -> Sources {
        Sources {
            events: self.word(&of.events),
            entries: self.word(&of.entries),
            files: self.word(&of.files),
            causes: self.word(&of.causes),
        }
    }

    fn counters(&self, of: &Counters) -> Counters {
        match of {
            Counters::Compared(of) => {
                let of = of.iter();
                Counters::Compared(of.map(|(name, of)| (self.word(name), *of)).collect())
            }
            Counters::NotCompared(_) => Counters::NotCompared("the reason is left out".into()),
        }
    }

    fn command(&self, of: &Command) -> Command {
        Command {
            argv: vec![self.text(&of.argv.join("\0"))],
            ..*of
        }
    }

    fn payload(&self, of: &Payload) -> Payload {
        Payload {
            workload: self.word(&of.workload),
            settings: BTreeMap::new(),
            ..*of
        }
    }
}

/// Keeps only the numbers of the kernel's release.
fn kernel(of: &Kernel, hidden: &Hidden<'_>) -> Kernel {
    let is_number = |c: &char| c.is_ascii_digit() || *c == '.';
    Kernel {
        release: of.release.chars().take_while(is_number).collect(),
        version: String::new(),
        machine: hidden.word(&of.machine),
        ..*of
    }
}

fn segment(of: &Segment) -> Segment {
    Segment {
        own_from: BTreeMap::new(),
        ..*of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ours_stay_and_others_go() {
        let hidden = Hidden { key: &[7; 32] };
        let of = Manifest {
            device: Device {
                name: "vg-secret".into(),
                dev: "253:1".into(),
                scheduler: "mq-deadline".into(),
                write_cache: "write back".into(),
                ..Device::default()
            },
            kernel: Kernel {
                release: "6.12.1-secret".into(),
                ..Kernel::default()
            },
            ..Manifest::default()
        };
        let shown = hidden.manifest(&of);
        assert!(!format!("{shown:?}").contains("secret"), "{shown:?}");
        assert_eq!(shown.kernel.release, "6.12.1");
        let device = shown.device;
        assert_eq!(device.dev, "253:1");
        assert_eq!(
            [device.scheduler, device.write_cache],
            ["mq-deadline", "write back"]
        );
    }
}
