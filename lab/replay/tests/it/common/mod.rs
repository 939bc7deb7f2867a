// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations made by hand, and folders to compare.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mostrace_replay::{
    Call, Contents, FileCall, FileId, Name, Opened, Operation, Outcome, Recorded, Settings, Timing,
    Unknown, replay,
};

pub const O_RDWR: u32 = 0o2;
pub const O_CREAT: u32 = 0o100;
pub const O_EXCL: u32 = 0o200;
pub const O_TRUNC: u32 = 0o1000;
pub const O_APPEND: u32 = 0o2000;
pub const O_DIRECT: u32 = 0o4_0000;
pub const O_DIRECTORY: u32 = 0o20_0000;
pub const O_SYNC: u32 = 0o401_0000;

pub fn name(path: &str) -> Name {
    Name::new(path.as_bytes()).unwrap()
}

/// One operation after the other, of one thread, each 1 µs long and 1 µs after the one before.
#[derive(Default)]
pub struct Script {
    pub operations: Vec<Operation>,
}

impl Script {
    pub fn call_of(&mut self, thread: u32, call: Call, result: i64) -> &mut Script {
        let begin_ns = 1_000_000 + 2000 * self.operations.len() as u64;
        self.operations.push(Operation {
            thread,
            process: 1,
            begin_ns,
            end_ns: begin_ns + 1000,
            call,
            result,
        });
        self
    }

    pub fn call(&mut self, call: Call, result: i64) -> &mut Script {
        self.call_of(1, call, result)
    }

    pub fn open(&mut self, file: u64, path: &str, flags: u32) -> &mut Script {
        self.call(Call::Open(opened(file, path, flags)), 0)
    }

    pub fn write(&mut self, file: u64, offset: u64, bytes: u64) -> &mut Script {
        let offset = Some(offset);
        let file = FileId(file);
        let call = Call::Of(file, FileCall::Write { offset, bytes });
        self.call(call, bytes as i64)
    }

    pub fn recorded(&self) -> Recorded {
        Recorded {
            operations: self.operations.clone(),
            left_out: BTreeMap::new(),
            unknown: Unknown::default(),
        }
    }

    pub fn replay(&self, root: &Path) -> Outcome {
        replay(&self.recorded(), &settings(root), |_| {}).unwrap()
    }
}

pub fn settings(root: &Path) -> Settings {
    Settings {
        root: root.to_owned(),
        timing: Timing::Fast,
        contents: Contents::Random,
    }
}

pub fn opened(file: u64, path: &str, flags: u32) -> Opened {
    Opened {
        file: Some(FileId(file)),
        path: Some(name(path)),
        flags,
        mode: 0o644,
        i_mode: 0,
        size: None,
        created: flags & O_CREAT != 0,
        inode: (0, 0),
    }
}

/// Asserts that all calls returned what they returned in the recording.
pub fn assert_same(outcome: &Outcome) {
    let (made, same) = outcome.made_and_same();
    assert!(
        made > 0 && made == same && outcome.left_out.is_empty(),
        "{outcome}"
    );
}

/// A file as far as replays make it again: mode, size unless it is a folder, number of names, and target of a link.
pub type Look = (u32, u64, u64, Vec<u8>);

/// Returns everything below a folder, by path.
pub fn tree(root: &Path) -> BTreeMap<Vec<u8>, Look> {
    let mut tree = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let look = path.symlink_metadata().unwrap();
            let (mut size, mut names, mut target) = (look.len(), look.nlink(), Vec::new());
            if look.is_dir() {
                folders.push(path.clone());
                (size, names) = (0, 0);
            }
            if look.is_symlink() {
                target = std::fs::read_link(&path)
                    .unwrap()
                    .as_os_str()
                    .as_bytes()
                    .to_vec();
            }
            let name = path
                .strip_prefix(root)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec();
            tree.insert(name, (look.mode(), size, names, target));
        }
    }
    tree
}

/// A folder for the replay, with another one beside it that must not change.
pub struct Watched {
    pub base: tempfile::TempDir,
    before: BTreeMap<Vec<u8>, (Look, i64, i64)>,
}

impl Watched {
    pub fn new() -> Watched {
        let base = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::create_dir(base.path().join("root")).unwrap();
        fs::create_dir_all(base.path().join("beside/folder")).unwrap();
        fs::write(base.path().join("beside/file"), "what was there").unwrap();
        let before = changes(&base.path().join("beside"));
        Watched { base, before }
    }

    pub fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    pub fn beside(&self) -> PathBuf {
        self.base.path().join("beside")
    }

    /// Returns true if nothing outside has changed.
    pub fn is_untouched(&self) -> bool {
        changes(&self.beside()) == self.before
    }

    /// Replays, and returns the outcome if nothing outside has changed.
    pub fn replay(&self, script: &Script) -> Outcome {
        let outcome = script.replay(&self.root());
        assert!(self.is_untouched(), "{outcome}");
        let content = fs::read(self.beside().join("file")).unwrap();
        assert_eq!(content, b"what was there", "{outcome}");
        outcome
    }
}

/// Returns everything below a folder with its ctime, which any change of a file or its attributes sets.
fn changes(root: &Path) -> BTreeMap<Vec<u8>, (Look, i64, i64)> {
    let changed = |(path, look): (Vec<u8>, Look)| {
        let at = root.join(std::ffi::OsStr::from_bytes(&path));
        let now = at.symlink_metadata().unwrap();
        (path, (look, now.ctime(), now.ctime_nsec()))
    };
    tree(root).into_iter().map(changed).collect()
}
