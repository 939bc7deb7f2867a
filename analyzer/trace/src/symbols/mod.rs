// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of the places in programs' code that stacks consist of.
//!
//! A recording says in which file a place is: by the file's build id and, as far as it was known, its path. A file's functions
//! are used only if the file has that build id, so that no other version of a program is taken for it. A place without a
//! function is shown as `file+0xoffset`.
// A recording may come from anybody, and so may the files that it names: no number in them may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod demangle;
mod elf;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use mostrace_bundle::entry::stack::Place;
use rustix::fs::OFlags;

use crate::text::escape;
use demangle::demangle;
use elf::Functions;

/// The folder in which distributions put the symbols that they strip from their programs.
const SYSTEM: &str = "/usr/lib/debug";
/// Larger files are not read, bytes.
const MOST: u64 = 256 << 20;
/// The bytes that are read of all files together; after them, no function is looked up any more.
const MOST_OF_ALL: u64 = 4 << 30;

/// Finds functions.
pub struct Symbols {
    folders: Vec<PathBuf>,
    /// The functions of the files that were looked for, by build id.
    files: HashMap<Box<[u8]>, Functions>,
    left: u64,
}

impl Symbols {
    /// Looks for files in these folders, ahead of the places that the recording names.
    pub fn new(folders: &[PathBuf]) -> Symbols {
        Symbols {
            folders: folders.to_vec(),
            files: HashMap::new(),
            left: MOST_OF_ALL,
        }
    }

    /// Returns the text for a place: its function or, if that is not known, as much as is known of it.
    pub fn text(&mut self, place: &Place) -> String {
        self.function(place).unwrap_or_else(|| without(place))
    }

    fn function(&mut self, place: &Place) -> Option<String> {
        let (id, offset) = (place.build_id.as_ref()?, place.offset?);
        if !self.files.contains_key(id) {
            let functions = self.functions(id, &place.path);
            self.files.insert(id.clone(), functions);
        }
        // A call may be the last instruction of its function, and returns to what is behind it.
        let function = self.files.get(id)?.at(offset.checked_sub(1)?)?;
        let name = demangle(function);
        Some(escape(name.as_ref().map_or(function, String::as_bytes)))
    }

    /// Returns the functions of the file with this build id: of a file with all of its symbols, if there is one.
    fn functions(&mut self, id: &[u8], path: &[u8]) -> Functions {
        let mut functions = Functions::default();
        for path in self.places(id, path) {
            if functions.are_all() {
                break;
            }
            if let Some(file) = self.read(&path, id) {
                functions.add(&file);
            }
        }
        functions
    }

    /// Returns the paths at which the file may be.
    fn places(&self, id: &[u8], path: &[u8]) -> Vec<PathBuf> {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (folder, rest) = hex.split_at_checked(2).unwrap_or_default();
        let path = Some(Path::new(OsStr::from_bytes(path))).filter(|path| is_of_a_program(path));
        let system = PathBuf::from(SYSTEM);
        let debug = self.folders.iter().chain([&system]).map(|root| {
            let folder = root.join(".build-id").join(folder);
            folder.join(format!("{rest}.debug"))
        });
        let in_folders = self.folders.iter().flat_map(|root| {
            let name = path.and_then(Path::file_name).map(|name| root.join(name));
            let below = path.and_then(|path| path.strip_prefix("/").ok());
            name.into_iter().chain(below.map(|below| root.join(below)))
        });
        let mut places: Vec<PathBuf> = debug.chain(in_folders).collect();
        places.extend(path.map(Path::to_owned));
        places
    }

    /// Reads a file if it has this build id.
    fn read(&mut self, path: &Path, id: &[u8]) -> Option<Vec<u8>> {
        let mut file = regular(path, MOST.min(self.left))?;
        if !elf::has_id(&file, id) {
            return None;
        }
        file.seek(SeekFrom::Start(0)).ok()?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes).ok()?;
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(len);
        Some(bytes)
    }
}

/// Returns true if a program's file may be at a path that a recording names. The files of the kernel's own filesystems do more than
/// to be read.
fn is_of_a_program(path: &Path) -> bool {
    let is_the_kernels = ["/proc", "/sys", "/dev"]
        .iter()
        .any(|root| path.starts_with(root));
    let mut components = path.components();
    path.is_absolute() && !is_the_kernels && components.all(|part| part != Component::ParentDir)
}

/// Opens a regular file of at most `most` bytes; anything else is not even opened, because that may have an effect.
fn regular(path: &Path, most: u64) -> Option<File> {
    let fits = |meta: &fs::Metadata| meta.is_file() && (1..=most).contains(&meta.len());
    fs::metadata(path).ok().filter(fits)?;
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.ok()?;
    // Another file may be there by now.
    let meta = file.metadata().ok()?;
    fits(&meta).then_some(file)
}

/// Returns the text for a place whose function is not known.
fn without(place: &Place) -> String {
    let name = place.path.rsplit(|&byte| byte == b'/').next();
    let name = match (name.unwrap_or_default(), &place.build_id) {
        (b"", None) => return "[unknown]".to_owned(),
        (b"", Some(id)) => id
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        (name, _) => escape(name),
    };
    let offset = place.offset.map(|offset| format!("+{offset:#x}"));
    name + &offset.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, build_id: Option<&[u8]>, offset: Option<u64>) -> Place {
        Place {
            build_id: build_id.map(Into::into),
            offset,
            path: path.as_bytes().into(),
        }
    }

    #[test]
    fn a_place_without_a_function_says_what_is_known() {
        let id = Some(&[0xab, 0xcd, 1, 2, 3][..]);
        let mut symbols = Symbols::new(&[]);
        for (place, text) in [
            (place("/no/such/app", id, Some(0x1189)), "app+0x1189"),
            (place("", id, Some(16)), "abcd0102+0x10"),
            (place("[vdso]", None, None), "[vdso]"),
            (place("", None, None), "[unknown]"),
        ] {
            assert_eq!(symbols.text(&place), text);
        }
    }

    /// The recording says which file is read, so it must not be able to name a device, or a file that never ends.
    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        let file = dir.path().join("file");
        fs::write(&file, [0; 10]).unwrap();
        for path in [&fifo, dir.path(), Path::new("/dev/zero"), Path::new("/x/y")] {
            assert!(regular(path, MOST).is_none(), "{}", path.display());
        }
        assert!(regular(&file, 10).is_some() && regular(&file, 9).is_none());
    }

    #[test]
    fn a_recording_cannot_name_any_file() {
        for (path, may_be) in [
            ("/usr/bin/app", true),
            ("/a b/app (deleted)", true),
            ("app", false),
            ("[vdso]", false),
            ("", false),
            ("/usr/../proc/kmsg", false),
            ("/proc/kmsg", false),
            ("/sys/x", false),
            ("/dev/watchdog", false),
        ] {
            assert_eq!(is_of_a_program(Path::new(path)), may_be, "{path}");
        }
    }
}
