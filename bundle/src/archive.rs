// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bundle as one file: the same files in a `.tar.zst`.
//!
//! An archive may come from anybody, so unpacking writes regular files of known
//! names into a folder of its own, and no more than follows from the archive's size. One that was cut (a download that
//! broke off) is unpacked up to the cut.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use crate::allowance::{Allowance, Limited};
use crate::error::{At, Error};
use crate::folder::Folder;
use crate::layout;
use crate::length::as_u64;
use crate::temporary::TempFolder;
use crate::writer::Writer;

/// Bytes ahead of a member's contents: its header, and those that hold a long name or PAX records.
const HEADERS_LIMIT: u64 = 64 << 10;

/// Packs the folder `from` into `to`, which is not there yet.
///
/// # Errors
/// A file cannot be read, or `to` is there, or cannot be written: then nothing is left of it.
pub fn pack(from: &Path, to: &Path) -> Result<(), Error> {
    let bundle = Writer::within(Folder::open(from)?);
    let parent = Folder::open(to.parent().unwrap_or(Path::new("")))?;
    let name = to.file_name().unwrap_or_default();
    let packed = pack_telling(&bundle, &parent.create(name)?, to, |_| ());
    if packed.is_err() {
        parent.remove(name)?;
    }
    packed
}

/// Packs into an empty file, `shown` in messages, and tells how many bytes more have been read; their
/// sum comes to that of the files' sizes.
///
/// # Errors
/// As [`pack`].
pub fn pack_telling(
    from: &Writer,
    to: &File,
    shown: &Path,
    mut tell: impl FnMut(u64),
) -> Result<(), Error> {
    let out = zstd::Encoder::new(to, 10).at(shown)?;
    let mut tar = tar::Builder::new(out);
    let mut names = from.names()?;
    // The manifest first: it can be shown before the rest has arrived.
    names.sort_by_key(|n| (n != layout::MANIFEST, n.clone()));
    for name in names {
        let path = from.path(&name);
        let file = from.folder().read(&name)?;
        let mut header = tar::Header::new_gnu();
        header.set_metadata(&file.metadata().at(&path)?);
        let told = Telling {
            file,
            tell: &mut tell,
        };
        tar.append_data(&mut header, &name, told).at(shown)?;
    }
    tar.into_inner()
        .and_then(zstd::Encoder::finish)
        .and_then(File::sync_all)
        .at(shown)
}

struct Telling<'t, T> {
    file: File,
    tell: &'t mut T,
}

impl<T: FnMut(u64)> Read for Telling<'_, T> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buf)?;
        (self.tell)(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(read)
    }
}

/// An unpacked archive.
#[derive(Debug)]
pub struct Unpacked {
    /// The folder, which goes when this is dropped.
    pub dir: TempFolder,
    /// Where the archive ends too early, if it does.
    pub cut: Option<Cut>,
    /// Length of the archive, bytes.
    pub packed: u64,
}

/// Where an archive ends too early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Length of the archive, bytes.
    pub at: u64,
    /// The file of which only the beginning is there, if it is within one.
    pub within: Option<String>,
}

/// Unpacks an archive into a temporary folder.
///
/// # Errors
/// Not an archive, damaged, or larger inside than an archive of its size can be.
pub fn unpack(from: &Path) -> Result<Unpacked, Error> {
    let file = File::open(from).at(from)?;
    let packed = file.metadata().at(from)?.len();
    let state = Rc::new(State::default());
    let zstd = zstd::Decoder::new(file).at(from)?;
    let input = Input {
        unpacked: Limited::new(zstd, Allowance::ARCHIVE.of(packed)),
        state: Rc::clone(&state),
    };
    let mut tar = tar::Archive::new(input);
    let dir = TempFolder::new()?;
    let within = unpack_members(&mut tar, &state, dir.path(), from)?;
    let mut is_cut = state.is_at_end();
    if !is_cut {
        // What follows the archive's own end mark still belongs to the compressed stream.
        state.headers_left.set(None);
        io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(|e| damaged(from, &e))?;
        is_cut = state.ended.get() == Ended::Early;
    }
    let cut = is_cut.then_some(Cut { at: packed, within });
    Ok(Unpacked { dir, cut, packed })
}

/// Unpacks all that is there. Returns the name of the file in which the input ended, if it did so
/// before the archive's own end mark, and within a file.
fn unpack_members(
    tar: &mut tar::Archive<Input>,
    state: &State,
    dir: &Path,
    from: &Path,
) -> Result<Option<String>, Error> {
    let mut members = tar.entries().map_err(|e| damaged(from, &e))?;
    loop {
        // The tar crate keeps long names and PAX records in memory, of whatever length.
        state.headers_left.set(Some(HEADERS_LIMIT));
        let mut member = match members.next() {
            None => return Ok(None),
            Some(Ok(member)) => member,
            Some(Err(_)) if state.is_at_end() => return Ok(None),
            Some(Err(e)) => return Err(damaged(from, &e)),
        };
        state.headers_left.set(None);
        let name = known_name(&member);
        unpack_member(&mut member, name.as_deref(), dir, from)?;
        if state.is_at_end() {
            return Ok(name);
        }
    }
}

/// Reads a member to its end, into a file if it is to have one.
fn unpack_member(
    member: &mut impl Read,
    name: Option<&str>,
    dir: &Path,
    from: &Path,
) -> Result<(), Error> {
    let copied = match name {
        None => io::copy(member, &mut io::sink()),
        Some(name) => {
            let path = dir.join(name);
            let mut options = File::options();
            let out = options.write(true).create_new(true).open(&path);
            let mut out = match out {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(Error::corrupt(from, format!("{name} is in it twice")));
                }
                out => out.at(&path)?,
            };
            io::copy(member, &mut out)
        }
    };
    copied.map(drop).map_err(|e| damaged(from, &e))
}

/// How the compressed stream came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ended {
    /// Not yet.
    #[default]
    No,
    /// In order.
    Whole,
    /// In the middle.
    Early,
}

/// What the stream and who reads it tell each other.
#[derive(Debug, Default)]
struct State {
    ended: Cell<Ended>,
    /// Bytes that may be read, while headers are.
    headers_left: Cell<Option<u64>>,
}

impl State {
    fn is_at_end(&self) -> bool {
        self.ended.get() != Ended::No
    }

    /// Takes bytes from those that headers may have.
    fn take(&self, read: usize) -> io::Result<()> {
        let Some(left) = self.headers_left.get() else {
            return Ok(());
        };
        let what = || format!("headers of more than {HEADERS_LIMIT} bytes ahead of one file");
        let left = left.checked_sub(as_u64(read));
        let left = left.ok_or_else(|| io::Error::other(what()))?;
        self.headers_left.set(Some(left));
        Ok(())
    }
}

/// The unpacked stream: a cut reads as its end, and is remembered.
struct Input {
    unpacked: Limited<zstd::Decoder<'static, BufReader<File>>>,
    state: Rc<State>,
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() || self.state.is_at_end() {
            return Ok(0);
        }
        let ended = match self.unpacked.read(buf) {
            Ok(0) => Ended::Whole,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ended::Early,
            Err(e) => return Err(e),
            Ok(read) => return self.state.take(read).map(|()| read),
        };
        self.state.ended.set(ended);
        Ok(0)
    }
}

/// The last component of a regular member's path, if it is a bundle's.
fn known_name<R: Read>(member: &tar::Entry<'_, R>) -> Option<String> {
    if !member.header().entry_type().is_file() {
        return None;
    }
    let path = member.path().ok()?;
    let name = path.file_name()?.to_str()?;
    layout::is_known(name).then(|| name.to_owned())
}

fn damaged(path: &Path, e: &io::Error) -> Error {
    Error::corrupt(path, format!("damaged archive: {e}"))
}
