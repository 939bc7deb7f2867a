// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the modules of each crate against the floors in docs/ARCHITECTURE.md: every module stands on one, and uses only
//! modules on lower ones, so that no modules use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules, each with its floor; the higher one may use the lower one.
type Floors = BTreeMap<String, u32>;

#[test]
fn modules_use_only_what_is_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    let pictures = pictures(&page);
    let crates: Vec<&str> = pictures.keys().map(String::as_str).collect();
    assert_eq!(
        crates,
        [
            "analyzer/bundle/src",
            "analyzer/map/src",
            "analyzer/tables/src",
            "analyzer/trace/src",
            "bpf/src",
            "lab/replay/src",
            "lab/workload/src"
        ]
    );
    let mut wrong = Vec::new();
    for (folder, floors) in &pictures {
        let arrows = arrows(&root.join(folder), floors, &mut wrong);
        println!(
            "{folder}: {} modules, {} arrows",
            floors.len(),
            arrows.len()
        );
        for (from, to) in &arrows {
            if floors[from] <= floors[to] {
                wrong.push(format!("{folder}: {from} uses {to}, which is not below it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_files_of_a_crate_use_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut circles = Vec::new();
    let mut all = 0;
    for folder in [
        "analyzer/bundle/src",
        "analyzer/map/src",
        "analyzer/report/src",
        "analyzer/tables/src",
        "analyzer/trace/src",
        "bpf/src",
        "lab/replay/src",
        "lab/workload/src",
    ] {
        let arrows = arrows_of_files(&root.join(folder));
        all += arrows.len();
        for (from, to) in circles_of(&arrows) {
            circles.push(format!("{folder}: {from} and {to}"));
        }
    }
    assert!(all > 1000, "{all} arrows");
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn a_circle_is_found_however_long_it_is() {
    let arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")];
    let arrows = arrows.map(|(from, to)| (from.to_owned(), to.to_owned()));
    let found = circles_of(&BTreeSet::from(arrows));
    let found: Vec<_> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
    assert_eq!(found, [("a", "b"), ("a", "c"), ("b", "c")]);
}

/// Returns the pairs that lead to each other.
fn circles_of(arrows: &BTreeSet<(String, String)>) -> Vec<(String, String)> {
    let mut to: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, used) in arrows {
        to.entry(from).or_default().push(used);
    }
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for from in to.keys().copied() {
        let met = reach.entry(from).or_default();
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            let used = to.get(at).into_iter().flatten().copied();
            next.extend(used.filter(|used| met.insert(used)));
        }
    }
    let mut circles = Vec::new();
    for (a, all) in &reach {
        for b in all.iter().filter(|b| a < *b) {
            if reach.get(b).is_some_and(|back| back.contains(a)) {
                circles.push(((*a).to_owned(), (*b).to_owned()));
            }
        }
    }
    circles
}

/// The text of each file of a crate, by its module.
type Files = BTreeMap<Vec<String>, String>;

/// Which file of a crate uses which. What a file names of the modules that it lies in does not count, unless these pass it on from
/// another file.
fn arrows_of_files(src: &Path) -> BTreeSet<(String, String)> {
    let read = |file: PathBuf| {
        let mut path = module_of(file.strip_prefix(src).unwrap());
        path.retain(|word| word != "lib");
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        (path, text.to_owned())
    };
    let files: Files = sources(src).into_iter().map(read).collect();
    let passed: BTreeMap<&[String], Vec<Vec<String>>> = files
        .iter()
        .map(|(path, text)| {
            let uses = text.split("use ").skip(1);
            let uses = uses.filter_map(|text| text.split(';').next());
            let uses = uses.flat_map(|text| named(text, path, &files));
            (&path[..], uses.collect())
        })
        .collect();
    let mut arrows = BTreeSet::new();
    for (path, text) in &files {
        for used in named(text, path, &files) {
            let to = origin(used, &passed);
            if !path.starts_with(&to) {
                arrows.insert((path.join("/"), to.join("/")));
            }
        }
    }
    arrows
}

/// Everything that a file names of its crate, as paths from the crate's root on.
fn named(text: &str, path: &[String], files: &Files) -> Vec<Vec<String>> {
    let mut named = targets(text, path);
    let children = files.keys().filter_map(|file| match file.split_last() {
        Some((name, parent)) if parent == path => Some(name),
        _ => None,
    });
    for child in children {
        let used = used(text, &[child]).into_iter();
        named.extend(used.map(|used| [path, std::slice::from_ref(child), &used].concat()));
    }
    named
}

/// Returns the file that has an item, however many others pass it on.
fn origin(mut path: Vec<String>, passed: &BTreeMap<&[String], Vec<Vec<String>>>) -> Vec<String> {
    for _ in 0..8 {
        let lengths = (0..=path.len()).rev();
        let file = lengths
            .map(|length| &path[..length])
            .find(|begin| passed.contains_key(begin))
            .unwrap();
        let Some(item) = path.get(file.len()) else {
            break;
        };
        let mut from = passed[file].iter();
        let Some(from) = from.find(|from| from.last() == Some(item) && **from != path) else {
            path.truncate(file.len());
            break;
        };
        path = [from, &path[file.len() + 1..]].concat();
    }
    path
}

#[test]
fn paths_are_found_however_they_are_written() {
    let text = "use crate::a::{b::C, d};\nlet x = crate::e::f();\nuse super::g;\nuse std::h;";
    let found = used(text, &["crate", "super"]);
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a::b::C", "a::d", "e::f", "g"]);
}

/// The page's pictures of floors, by the crate's folder, which is a picture's first line.
fn pictures(page: &str) -> BTreeMap<String, Floors> {
    let blocks = page.split("```").skip(1).step_by(2);
    let pictures = blocks.filter_map(|block| {
        let mut lines = block.strip_prefix("text\n")?.lines();
        let folder = lines.next().filter(|line| line.ends_with("/src"))?;
        Some((folder.to_owned(), lines.flat_map(floor).collect()))
    });
    pictures.collect()
}

/// A line such as `2  attribute  recording`.
fn floor(line: &str) -> Vec<(String, u32)> {
    let mut words = line.split_whitespace();
    let Some(floor) = words.next().and_then(|word| word.parse().ok()) else {
        return Vec::new();
    };
    words.map(|word| (word.to_owned(), floor)).collect()
}

/// Which module uses which. Adds to `wrong` what is on no floor, and what stands on one but does not exist.
fn arrows(src: &Path, floors: &Floors, wrong: &mut Vec<String>) -> BTreeSet<(String, String)> {
    let exports = exports(src);
    let mut arrows = BTreeSet::new();
    let mut met = BTreeSet::new();
    for file in sources(src) {
        let path = module_of(file.strip_prefix(src).unwrap());
        let Some(from) = module(&path, floors) else {
            wrong.push(format!("{}: on no floor", file.display()));
            continue;
        };
        met.insert(from.clone());
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let own = path.len().min(from.split('/').count());
        for used in targets(text, &path) {
            let used = exports.get(&used[0]).unwrap_or(&used);
            let to =
                module(used, floors).filter(|to| *to != from && !used.starts_with(&path[..own]));
            arrows.extend(to.map(|to| (from.clone(), to)));
        }
    }
    let absent = floors.keys().filter(|module| !met.contains(*module));
    wrong.extend(absent.map(|module| format!("{}: there is no {module}", src.display())));
    arrows
}

/// Returns the items that the crate's root exports: for each name its path.
fn exports(src: &Path) -> BTreeMap<String, Vec<String>> {
    let root = fs::read_to_string(src.join("lib.rs")).unwrap();
    let mut paths = Vec::new();
    for (at, head) in root.match_indices("pub use ") {
        tree(&root[at + head.len()..], &[], &mut paths);
    }
    let named = paths
        .into_iter()
        .map(|path| (path.last().unwrap().clone(), path));
    named.collect()
}

/// The modules and items that a file of the module `path` names, from the crate's root on.
fn targets(text: &str, path: &[String]) -> Vec<Vec<String>> {
    let mut targets = used(text, &["crate"]);
    let parent = path.len().saturating_sub(1);
    let above = used(text, &["super"]).into_iter().map(|used| {
        let ups = used.iter().take_while(|word| *word == "super").count();
        let from = parent.saturating_sub(ups);
        [&path[..from], &used[ups..]].concat()
    });
    targets.extend(above);
    targets
}

/// Everything that the text names behind one of these words, as paths.
fn used(text: &str, heads: &[&str]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    for head in heads {
        let head = format!("{head}::");
        for (at, _) in code.match_indices(&head) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if !before.is_alphanumeric() && !"_:".contains(before) {
                tree(&code[at + head.len()..], &[], &mut found);
            }
        }
    }
    found
}

/// Parses `a::{b, c::d}`; returns what follows.
fn tree<'t>(text: &'t str, prefix: &[String], found: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = tree(rest, prefix, found).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                more => return more.unwrap_or(rest).trim_start().trim_start_matches('}'),
            }
        }
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let path = [prefix, &[text[..end].to_owned()]].concat();
    match text[end..].strip_prefix("::") {
        Some(rest) if rest.starts_with(|c| is_word(c) || c == '{') => tree(rest, &path, found),
        _ => {
            found.push(path);
            &text[end..]
        }
    }
}

/// The longest module on a floor that the path begins with.
fn module(path: &[String], floors: &Floors) -> Option<String> {
    let lengths = (1..=path.len()).rev();
    lengths
        .map(|length| path[..length].join("/"))
        .find(|name| floors.contains_key(name))
}

/// The modules that lead to a file.
fn module_of(file: &Path) -> Vec<String> {
    let words = file.with_extension("");
    let mut words: Vec<String> = words
        .iter()
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    words.retain(|word| word != "mod");
    words
}

/// The files of a crate, without those that are tests alone.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        let name = entry.file_stem().unwrap().to_str().unwrap();
        match entry.extension() {
            _ if name == "tests" => {}
            None if entry.is_dir() => all.extend(sources(&entry)),
            Some(kind) if kind == "rs" => all.push(entry),
            _ => {}
        }
    }
    all
}
