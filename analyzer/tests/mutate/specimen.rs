// SPDX-License-Identifier: MIT OR Apache-2.0
//! The samples, whole and shortened, and bundles that are one of them but for some changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mostrace_bundle::{archive, layout};
use serde_json::{Value, json};

use super::random::Random;
use super::records::{Records, Shape};
use super::{archive as changed_archive, bytes, manifest, snapshot};

/// What is left of a shortened one.
const SHORT_PERCENT: usize = 3;

/// A bundle that nobody has changed.
pub struct Specimen {
    pub folder: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

impl Specimen {
    /// All samples, in folders of `scratch`: each whole, and each shortened.
    pub fn all(scratch: &Path) -> Vec<Specimen> {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-traces");
        let archives = fs::read_dir(samples)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut archives: Vec<PathBuf> = archives
            .filter(|path| path.extension().is_some_and(|e| e == "zst"))
            .collect();
        // The order of a folder is not the same everywhere.
        archives.sort();
        let both = |path: &PathBuf| {
            let files = unpack(path);
            let name = path
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .split('.')
                .next()
                .unwrap();
            let whole = Specimen::new(scratch.join(format!("{name}.most")), files.clone());
            let short = Specimen::new(scratch.join(format!("{name}-short.most")), shortened(files));
            [whole, short]
        };
        archives.iter().flat_map(both).collect()
    }

    fn new(folder: PathBuf, files: BTreeMap<String, Vec<u8>>) -> Specimen {
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

/// The beginning of each file. What the manifest says of sizes is left out, as if the recorder were of before.
fn shortened(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    for (name, file) in &mut files {
        if let Some(shape) = shape(name) {
            let mut records = Records::of(shape, file);
            records.shorten(SHORT_PERCENT);
            *file = records.bytes();
        }
    }
    if let Some(text) = files.get_mut(layout::MANIFEST) {
        let mut value: Value = serde_json::from_slice(text).unwrap();
        value["files"] = json!({});
        value["counts"] = json!({});
        *text = value.to_string().into_bytes();
    }
    files
}

fn shape(name: &str) -> Option<Shape> {
    match layout::cpu_of(name) {
        Some(_) => Some(Shape::Events),
        None => name.ends_with(".entries").then_some(Shape::Entries),
    }
}

/// Makes a changed bundle within `scratch`; its path.
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
