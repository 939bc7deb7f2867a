// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folders of this crate's sources use each other downwards alone: `record` uses the sources, these the sink, and all of them the
//! machine. The arrows are drawn from the paths that begin with `crate` or `super`; `--nocapture` shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files of `src`, from the top floor to the lowest. A folder may use those of lower floors, and what lies in it.
const FLOORS: [&[&str]; 5] = [
    &["record", "doctor", "workplace"],
    &["source"],
    &["sink", "snapshot", "trees"],
    &["machine"],
    &["choice", "error"],
];

/// Who uses whom, and in which files.
type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// The folders below `src`, and the modules that are files beside them, as paths of modules.
struct Sources {
    folders: BTreeSet<Vec<String>>,
    /// The text of each file, by the path of its module.
    files: BTreeMap<Vec<String>, String>,
}

impl Sources {
    fn read(root: &Path) -> Sources {
        let mut sources = Sources {
            folders: BTreeSet::new(),
            files: BTreeMap::new(),
        };
        sources.add(root, &[]);
        sources
    }

    fn add(&mut self, folder: &Path, module: &[String]) {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let inner = [module, std::slice::from_ref(&name)].concat();
            if path.is_dir() {
                self.folders.insert(inner.clone());
                self.add(&path, &inner);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let is_own = name == "mod" || name == "lib";
                let module = if is_own { module.to_vec() } else { inner };
                let text = fs::read_to_string(&path).unwrap();
                self.files.insert(module, text);
            }
        }
    }

    /// The folder that a path leads to; a module that is a file in `src` stands for itself.
    fn folder_of(&self, path: &[String]) -> Option<String> {
        let deepest = (1..=path.len()).rev().map(|len| &path[..len]);
        let mut known = deepest.filter(|path| self.folders.contains(*path));
        let file = || path.get(..1).filter(|path| self.files.contains_key(*path));
        Some(known.next().or_else(file)?.join("/"))
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (module, text) in self.files.iter().filter(|(module, _)| !module.is_empty()) {
            let from = self.folder_of(module).unwrap();
            for path in paths(module, text) {
                let place = path.join("::");
                let to = self.folder_of(&path);
                // What lies in the crate's root is what other crates use.
                let to = to.unwrap_or_else(|| panic!("{module:?} uses crate::{place}"));
                if from != to {
                    let files = arrows.entry((from.clone(), to)).or_default();
                    files.insert(module.join("/"));
                }
            }
        }
        arrows
    }
}

/// The paths of a file that begin with `crate` or `super`, from the crate's root on.
fn paths(module: &[String], text: &str) -> Vec<Vec<String>> {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    let text = lines.collect::<Vec<_>>().join("\n");
    // `super` of a file's own tests is the file.
    let tests = text.find("mod tests {").unwrap_or(text.len());
    let starts = text
        .match_indices("crate::")
        .chain(text.match_indices("super::"));
    let mut all = Vec::new();
    for (at, word) in starts {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
            continue;
        }
        let mut rest = &text[at + word.len()..];
        let mut base = match word {
            "crate::" => Vec::new(),
            _ if at > tests => module.to_vec(),
            _ => module[..module.len() - 1].to_vec(),
        };
        while let Some(more) = rest.strip_prefix("super::") {
            base.pop();
            rest = more;
        }
        all.extend(
            expand(rest)
                .0
                .into_iter()
                .map(|path| [&base[..], &path].concat()),
        );
    }
    all
}

/// The paths of a tree of imports, and what follows it.
fn expand(tree: &str) -> (Vec<Vec<String>>, &str) {
    let tree = tree.trim_start();
    if let Some(mut rest) = tree.strip_prefix('{') {
        let mut all = Vec::new();
        loop {
            let (paths, behind) = expand(rest);
            all.extend(paths);
            rest = behind.trim_start();
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                Some(more) => return (all, more.trim_start().trim_start_matches('}')),
                None => return (all, rest.trim_start_matches('}')),
            }
        }
    }
    let end = tree.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, rest) = tree.split_at(end.unwrap_or(tree.len()));
    let names: Vec<String> = (!name.is_empty() && name != "self")
        .then(|| name.to_owned())
        .into_iter()
        .collect();
    let Some(behind) = rest.strip_prefix("::") else {
        return (vec![names], rest);
    };
    let (paths, rest) = expand(behind);
    let paths = paths.into_iter().map(|path| [&names[..], &path].concat());
    (paths.collect(), rest)
}

/// A folder that leads to itself over others, if there is one.
fn circle(arrows: &BTreeSet<(&str, &str)>) -> Option<String> {
    let mut left = arrows.clone();
    loop {
        // What uses nobody any more is in no circle.
        let users: BTreeSet<_> = left.iter().map(|(from, _)| *from).collect();
        let before = left.len();
        left.retain(|(_, to)| users.contains(to));
        match (left.first(), left.len() == before) {
            (None, _) => return None,
            (Some(_), false) => {}
            (Some(_), true) => return Some(format!("{left:?}")),
        }
    }
}

fn floor_of(folder: &str) -> usize {
    let top = folder.split('/').next().unwrap();
    let floor = FLOORS.iter().position(|floor| floor.contains(&top));
    floor.unwrap_or_else(|| panic!("{folder} has no floor"))
}

fn is_downwards(from: &str, to: &str) -> bool {
    let top = |folder: &str| folder.split('/').next().map(str::to_owned);
    top(from) == top(to) || floor_of(from) < floor_of(to)
}

#[test]
fn folders_use_each_other_downwards() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let arrows = Sources::read(&root).arrows();
    for ((from, to), files) in &arrows {
        println!("{from} → {to}");
        assert!(is_downwards(from, to), "{from} uses {to}, in {files:?}");
    }
    let known = |from: &str, to: &str| arrows.contains_key(&(from.into(), to.into()));
    assert!(known("record", "source/bpf") && known("source/bpf", "sink"));
    let arrows = arrows.keys().map(|(from, to)| (&from[..], &to[..]));
    assert_eq!(circle(&arrows.collect()), None);
}

#[test]
fn paths_are_found_in_imports_and_in_code() {
    let module = ["a", "b"].map(str::to_owned);
    let text = "use crate::c::{self, d::{E, F}, g::H,};\nuse super::i; // use crate::no;\n\
                fn f() { super::super::j::k(); $crate::no(); }\nmod tests {\n    use super::l;\n}";
    let found = paths(&module, text);
    let found: BTreeSet<_> = found.iter().map(|path| path.join("::")).collect();
    let expected = [
        "c", "c::d::E", "c::d::F", "c::g::H", "a::i", "j::k", "a::b::l",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
}

#[test]
fn circles_and_arrows_upwards_are_seen() {
    assert!(!is_downwards("sink", "source/bpf") && !is_downwards("sink", "snapshot"));
    assert!(is_downwards("source", "source/bpf") && is_downwards("record/command", "error"));
    let straight = BTreeSet::from([("a", "b"), ("b", "c"), ("a", "c")]);
    assert_eq!(circle(&straight), None);
    let round = BTreeSet::from([("a", "b"), ("b", "c"), ("c", "b")]);
    assert!(circle(&round).is_some());
}
