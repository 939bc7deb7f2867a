// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names that files have in the end, after they were renamed.
//!
//! A rename's call tells which file got a name and which file lost it, but not what the name is. Files that replace one another
//! have the same name in turn. The name is known from one of them: the last one, by the map at the end, or one that was never
//! renamed.

use std::collections::HashSet;

use mostrace_bundle::entry::{CallKind, RawCall, call_flags};
use mostrace_map::Map;
use mostrace_map::class::Provenance;

use super::{File, HashMap};

/// An inode and its generation.
type Id = (u64, u32);

/// The names of files over time.
#[derive(Default)]
pub struct Renames {
    /// The number of the name that each file has now.
    now: HashMap<Id, usize>,
    renamed: HashSet<Id>,
    /// The number of names.
    names: usize,
    /// The file of the last rename, with its thread and time.
    last: Option<(Id, (u32, u64))>,
    /// True if every rename is seen: without that, a file that is gone may have been renamed.
    is_whole: bool,
}

impl Renames {
    /// Begins before the first call. `is_whole` says that the calls tell every rename.
    pub fn new(is_whole: bool) -> Renames {
        Renames {
            is_whole,
            ..Renames::default()
        }
    }

    /// Takes the next call.
    pub fn see(&mut self, raw: &RawCall) {
        let id = (raw.ino.get(), raw.generation.get());
        let call = (raw.pid.get(), raw.head.time_ns.get());
        if raw.result.get() != 0 || id.0 == 0 {
            return;
        }
        let is_replaced = raw.head.flags.has(call_flags::REPLACED);
        match (CallKind::of(raw.kind.get()), self.last) {
            (CallKind::Rename, _) => {
                let name = self.new_name();
                self.now.insert(id, name);
                self.renamed.insert(id);
                self.last = Some((id, call));
            }
            // The file that was renamed has the name of the one that it replaced.
            (CallKind::Unlink, Some((mover, by))) if is_replaced && by == call => {
                let name = self.name_of(id);
                self.now.insert(mover, name);
            }
            _ => {}
        }
    }

    fn new_name(&mut self) -> usize {
        let name = self.names;
        self.names = name.saturating_add(1);
        name
    }

    fn name_of(&mut self, id: Id) -> usize {
        let (new, next) = (self.names, self.names.saturating_add(1));
        let name = *self.now.entry(id).or_insert(new);
        if name == new {
            self.names = next;
        }
        name
    }

    /// Fills in the final path of each file, as far as it is known.
    pub fn fill_in(&self, files: &mut [File], map: Option<&Map>) {
        let paths = self.paths(files, map);
        for file in files {
            let id = file.inode.zip(file.generation);
            let is_renamed = id.is_some_and(|id| self.renamed.contains(&id));
            let of_name = || paths.get(self.now.get(&id?)?).cloned();
            file.final_path = match is_renamed {
                true => of_name(),
                false => at_the_end(file, map).or_else(|| {
                    file.path
                        .clone()
                        .filter(|_| self.is_whole || is_of_the_end(file))
                }),
            };
        }
    }

    /// Returns the paths that names are known by.
    fn paths(&self, files: &[File], map: Option<&Map>) -> HashMap<usize, Box<[u8]>> {
        let mut paths = HashMap::default();
        for file in files {
            let Some((id, name)) = file
                .inode
                .zip(file.generation)
                .and_then(|id| Some((id, *self.now.get(&id)?)))
            else {
                continue;
            };
            if let Some(path) = at_the_end(file, map) {
                paths.insert(name, path);
            } else if let Some(path) = file.path.as_ref().filter(|_| !self.renamed.contains(&id)) {
                paths.entry(name).or_insert_with(|| path.clone());
            }
        }
        paths
    }
}

/// Returns true if the file's path is that of the map at the end.
fn is_of_the_end(file: &File) -> bool {
    matches!(
        file.provenance,
        Provenance::Snapshot | Provenance::Encrypted
    )
}

/// Returns the path that the map has for a file; the file's own if that is one of its names there.
fn at_the_end(file: &File, map: Option<&Map>) -> Option<Box<[u8]>> {
    let (map, inode) = (map?, file.inode?);
    let now = map.inode(inode)?;
    if file.generation.is_none() || now.generation != file.generation {
        return None;
    }
    // A folder above it may have another name by now, so that the last component alone says nothing.
    let own = file.path.as_ref().filter(|path| {
        let mut paths = map.paths(inode).into_iter();
        paths.any(|of_map| of_map[..] == path[..])
    });
    match own {
        Some(path) => Some(path.clone()),
        None => map.path(inode).map(Vec::into_boxed_slice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_bundle::entry::RawHead;

    fn call(kind: CallKind, ino: u64, time_ns: u64, replaced: bool) -> RawCall {
        RawCall {
            head: RawHead {
                time_ns: time_ns.into(),
                flags: if replaced {
                    call_flags::REPLACED
                } else {
                    Default::default()
                },
                ..RawHead::default()
            },
            ino: ino.into(),
            generation: 1.into(),
            pid: 7.into(),
            kind: (kind as u16).into(),
            ..RawCall::default()
        }
    }

    fn file(inode: u64, path: &str) -> File {
        File {
            inode: Some(inode),
            generation: Some(1),
            path: Some(path.as_bytes().into()),
            ..File::unknown()
        }
    }

    fn finals(renames: &Renames, files: &[(u64, &str)]) -> Vec<Option<String>> {
        let mut files: Vec<File> = files
            .iter()
            .map(|(inode, path)| file(*inode, path))
            .collect();
        renames.fill_in(&mut files, None);
        let text = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
        files
            .iter()
            .map(|file| file.final_path.as_deref().map(text))
            .collect()
    }

    /// Each file that replaces another one has its name, and the first of them tells it.
    #[test]
    fn replaced_files_tell_the_name() {
        let mut renames = Renames::new(true);
        for (time, (mover, replaced)) in [(12, 11), (13, 12), (14, 13)].into_iter().enumerate() {
            renames.see(&call(CallKind::Rename, mover, time as u64, false));
            renames.see(&call(CallKind::Unlink, replaced, time as u64, true));
        }
        let files = [
            (11, "/data"),
            (12, "/a"),
            (13, "/b"),
            (14, "/c"),
            (15, "/d"),
        ];
        let data = Some("/data".to_owned());
        let expected = [
            data.clone(),
            data.clone(),
            data.clone(),
            data,
            Some("/d".into()),
        ];
        assert_eq!(finals(&renames, &files), expected);
    }

    /// A rename that failed changes nothing, and a name that nobody tells is unknown.
    #[test]
    fn what_is_not_told_is_unknown() {
        let mut renames = Renames::new(true);
        let mut failed = call(CallKind::Rename, 12, 1, false);
        failed.result = (-2).into();
        renames.see(&failed);
        assert_eq!(finals(&renames, &[(12, "/a")]), [Some("/a".to_owned())]);
        renames.see(&call(CallKind::Rename, 12, 2, false));
        // An unlink of another call replaces nothing.
        renames.see(&call(CallKind::Unlink, 11, 3, true));
        assert_eq!(
            finals(&renames, &[(12, "/a"), (11, "/x")]),
            [None, Some("/x".into())]
        );
        // Where renames are not told, nothing is known of a file that is gone.
        assert_eq!(finals(&Renames::new(false), &[(11, "/x")]), [None]);
    }

    /// Where renames are not told, the path of a file that is gone counts if it is the map's own.
    #[test]
    fn a_path_from_the_snapshot_is_the_final_one() {
        let path = |provenance| {
            let mut files = [File {
                provenance,
                ..file(12, "/a")
            }];
            Renames::new(false).fill_in(&mut files, None);
            files[0].final_path.as_deref() == Some(b"/a")
        };
        use Provenance::{Encrypted, Layout, Live, Snapshot, Tree, Unknown};
        assert_eq!([Snapshot, Encrypted].map(path), [true; 2]);
        assert_eq!([Live, Layout, Tree, Unknown].map(path), [false; 4]);
    }
}
