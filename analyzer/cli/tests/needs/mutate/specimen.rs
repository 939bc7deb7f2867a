// SPDX-License-Identifier: MIT OR Apache-2.0
//! The samples, and changed copies of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mostrace_bundle::{archive, layout};

use super::random::Random;
use super::records::{Records, Shape};
use super::{archive as changed_archive, bytes, family, manifest, snapshot};
use crate::run;

/// An unchanged bundle.
pub struct Specimen {
    pub folder: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

impl Specimen {
    /// Unpacks all samples into folders of `scratch`.
    pub fn all(scratch: &Path) -> Vec<Specimen> {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
        let archives = fs::read_dir(samples)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut archives: Vec<PathBuf> = archives
            .filter(|path| path.extension().is_some_and(|e| e == "zst"))
            .collect();
        // The order of a folder's entries differs between machines.
        archives.sort();
        let unpacked = |(nth, path): (usize, &PathBuf)| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = name.split('.').next().unwrap();
            let mut files = unpack(path);
            if nth % 2 == 1 {
                files = with_compact_events(files);
            }
            Specimen::new(scratch.join(format!("{name}.most")), files)
        };
        archives.iter().enumerate().map(unpacked).collect()
    }

    fn new(folder: PathBuf, mut files: BTreeMap<String, Vec<u8>>) -> Specimen {
        family::add(&mut files);
        fs::create_dir(&folder).unwrap();
        for (name, bytes) in &files {
            fs::write(folder.join(name), bytes).unwrap();
        }
        Specimen { folder, files }
    }
}

fn unpack(archive: &Path) -> BTreeMap<String, Vec<u8>> {
    let unpacked = archive::unpack(archive).unwrap();
    let entries = fs::read_dir(unpacked.dir.path())
        .unwrap()
        .map(Result::unwrap);
    entries
        .map(|e| {
            (
                e.file_name().into_string().unwrap(),
                fs::read(e.path()).unwrap(),
            )
        })
        .collect()
}

/// Puts the events into the compact form.
fn with_compact_events(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let compact = |(name, bytes): (String, Vec<u8>)| match layout::cpu_of(&name) {
        Some(cpu) => (layout::events_of_cpu(cpu), run::compact(&bytes)),
        None => (name, bytes),
    };
    files.into_iter().map(compact).collect()
}

fn shape(name: &str) -> Option<Shape> {
    match layout::cpu_of(name) {
        // Compact records have no places of their own.
        Some(_) if layout::is_compact(name) => None,
        Some(_) => Some(Shape::Events),
        None => name.ends_with(".entries").then_some(Shape::Entries),
    }
}

/// Makes a changed bundle within `scratch`; returns its path.
pub fn changed(random: &mut Random, specimens: &[Specimen], scratch: &Path) -> PathBuf {
    let pick = |random: &mut Random| &specimens[random.below(specimens.len() as u64) as usize];
    let of = pick(random);
    let folder = scratch.join("changed.most");
    fs::create_dir(&folder).unwrap();
    let names: Vec<&String> = of.files.keys().collect();
    let mut files = BTreeMap::new();
    for _ in 0..=random.below(3) {
        let name = names[random.below(names.len() as u64) as usize].as_str();
        let other = match random.below(25) {
            0 => pick(random).files.get(name).cloned().unwrap_or_default(),
            1 => of.files[names[random.below(names.len() as u64) as usize]].clone(),
            _ => of.files[name].clone(),
        };
        let file = files.entry(name).or_insert(Some(other));
        if random.one_in(40) {
            *file = None;
        }
        if let Some(file) = file {
            change(random, name, file);
        }
    }
    for name in names {
        match files.remove(name.as_str()) {
            Some(Some(bytes)) => fs::write(folder.join(name), bytes).unwrap(),
            Some(None) => {}
            None => fs::hard_link(of.folder.join(name), folder.join(name)).unwrap(),
        }
    }
    if !random.one_in(8) {
        return folder;
    }
    let archive = scratch.join("changed.most.tar.zst");
    changed_archive::pack(random, &folder, &archive);
    archive
}

fn change(random: &mut Random, name: &str, file: &mut Vec<u8>) {
    match shape(name) {
        _ if random.one_in(20) => bytes::change(random, file),
        Some(shape) => {
            let mut records = Records::of(shape, file);
            for _ in 0..=random.below(4) {
                records.change(random);
            }
            *file = records.bytes();
        }
        None if name == layout::MANIFEST => {
            for _ in 0..=random.below(3) {
                manifest::change(random, file);
            }
        }
        None if name == layout::SNAPSHOT => snapshot::change(random, file),
        None => bytes::change(random, file),
    }
}
