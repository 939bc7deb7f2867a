// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bundle as one file: the bundle's files in a `.tar.zst`. An archive is known by its bytes, and may also be a bare tar.
//!
//! An archive may come from anybody, so unpacking writes only regular files with names that a bundle can have, into a
//! folder of its own, and bounds their size by the archive's. An archive that was cut (an interrupted download) is
//! unpacked up to the cut.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;
use std::rc::Rc;

use crate::allowance::{Allowance, Limited};
use crate::error::{At, Error};
use crate::folder::Folder;
use crate::layout;
use crate::length::as_u64;
use crate::temporary::TempFolder;
use crate::writer::Writer;

/// The most bytes ahead of a member's contents: its header, and those headers that hold a long name or PAX records.
const HEADERS_LIMIT: u64 = 64 << 10;

/// Packs the bundle in the folder `from` into the file `to`, which must not exist.
///
/// # Errors
/// Returns an error if a file cannot be read, or if `to` exists or cannot be written. The partly written `to` is
/// removed.
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

/// Packs a bundle into the empty file `to`. `shown` is its name in messages. `tell` is called after each read with the
/// number of bytes read; these numbers add up to the sum of the files' sizes.
///
/// # Errors
/// Returns an error if a file cannot be read or `to` cannot be written. `to` is not removed.
pub fn pack_telling(
    from: &Writer,
    to: &File,
    shown: &Path,
    mut tell: impl FnMut(u64),
) -> Result<(), Error> {
    let out = zstd::Encoder::new(to, 10).at(shown)?;
    let mut tar = tar::Builder::new(out);
    let mut names = from.names()?;
    // The manifest goes first, so that it can be shown before the rest has arrived.
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
    /// The folder with the unpacked files; dropping this removes it.
    pub dir: TempFolder,
    /// The place at which the archive ends too early; None if it is whole.
    pub cut: Option<Cut>,
    /// Length of the archive file, bytes.
    pub packed: u64,
}

/// The place at which an archive ends too early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Length of the archive file, bytes.
    pub at: u64,
    /// The file of which only the beginning was unpacked; None if the cut lies between two files.
    pub within: Option<String>,
}

/// The first bytes of what zstd packed.
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// The mark in each header of tar, and its place.
const TAR: (usize, &[u8]) = (257, b"ustar");
/// The length of a header of tar.
const HEADER: usize = 512;
/// The length of a name in it.
const NAME: usize = 100;

/// How the files of an archive are packed, whatever the archive is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Zstd,
    Tar,
}

impl Form {
    /// Returns the form by an archive's first bytes; None if it is something else.
    fn of(head: &[u8]) -> Option<Form> {
        let (at, mark) = TAR;
        if head.starts_with(ZSTD) {
            return Some(Form::Zstd);
        }
        let is_tar = head.get(at..).is_some_and(|head| head.starts_with(mark));
        is_tar.then_some(Form::Tar)
    }

    /// Returns the unpacked bytes of a file.
    fn unpacked(self, file: File) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Form::Zstd => Box::new(zstd::Decoder::new(file)?),
            Form::Tar => Box::new(BufReader::new(file)),
        })
    }
}

/// Returns the form of an archive, by its bytes.
fn form(file: &mut File) -> io::Result<Option<Form>> {
    let mut head = Vec::new();
    file.take(as_u64(HEADER)).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(Form::of(&head))
}

/// Returns true if a file begins as an archive does, whatever it is called.
pub fn is_archive(path: &Path) -> bool {
    let found = File::open(path).and_then(|mut file| form(&mut file));
    found.is_ok_and(|form| form.is_some())
}

/// Returns the name of the first file in an archive, without its folder; None if the file is no archive.
pub(crate) fn first_name(mut file: File) -> Option<String> {
    let form = form(&mut file).ok()??;
    let mut head = [0; HEADER];
    form.unpacked(file).ok()?.read_exact(&mut head).ok()?;
    Form::of(&head).filter(|&form| form == Form::Tar)?;
    let name = head[..NAME].split(|&byte| byte == 0).next()?;
    let name = std::str::from_utf8(name).ok()?;
    name.rsplit('/').next().map(str::to_owned)
}

/// Unpacks an archive into a temporary folder.
///
/// # Errors
/// Returns an error if the file is not an archive, is damaged, or unpacks to more than an archive of its size can hold.
pub fn unpack(from: &Path) -> Result<Unpacked, Error> {
    let mut file = File::open(from).at(from)?;
    let packed = file.metadata().at(from)?.len();
    let state = Rc::new(State::default());
    let form = form(&mut file).at(from)?.unwrap_or(Form::Zstd);
    let unpacked = form.unpacked(file).at(from)?;
    let input = Input {
        unpacked: Limited::new(unpacked, Allowance::ARCHIVE.of(packed)),
        state: Rc::clone(&state),
    };
    let mut tar = tar::Archive::new(input);
    let dir = TempFolder::new()?;
    let within = unpack_members(&mut tar, &state, dir.path(), from)?;
    let mut is_cut = state.is_at_end();
    if !is_cut {
        // Bytes behind tar's end mark still belong to the compressed stream; a cut among them counts.
        state.headers_left.set(None);
        io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(|e| damaged(from, &e))?;
        is_cut = state.ended.get() == Ended::Early;
    }
    let cut = is_cut.then_some(Cut { at: packed, within });
    Ok(Unpacked { dir, cut, packed })
}

/// Unpacks all members that are there. Returns the name of the file within which the input ended before tar's end mark;
/// None if it ended between files or is whole.
fn unpack_members(
    tar: &mut tar::Archive<Input>,
    state: &State,
    dir: &Path,
    from: &Path,
) -> Result<Option<String>, Error> {
    let mut members = tar.entries().map_err(|e| damaged(from, &e))?;
    loop {
        // The tar crate keeps long names and PAX records in memory, however long they are.
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

/// Reads a member to its end, into the file `name` of `dir`; with no name the bytes are discarded.
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
                    return Err(Error::corrupt(from, format!("it contains {name} twice")));
                }
                out => out.at(&path)?,
            };
            io::copy(member, &mut out)
        }
    };
    copied.map(drop).map_err(|e| damaged(from, &e))
}

/// The way in which the compressed stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ended {
    /// It has not ended yet.
    #[default]
    No,
    /// It ended where its format says.
    Whole,
    /// It ended in the middle of a frame.
    Early,
}

/// State that the stream and its reader share.
#[derive(Debug, Default)]
struct State {
    ended: Cell<Ended>,
    /// Bytes that headers may still take; None while contents are read.
    headers_left: Cell<Option<u64>>,
}

impl State {
    fn is_at_end(&self) -> bool {
        self.ended.get() != Ended::No
    }

    /// Deducts bytes that were read from what headers may take.
    fn take(&self, read: usize) -> io::Result<()> {
        let Some(left) = self.headers_left.get() else {
            return Ok(());
        };
        let what = || format!("more than {HEADERS_LIMIT} bytes of headers before one file");
        let left = left.checked_sub(as_u64(read));
        let left = left.ok_or_else(|| io::Error::other(what()))?;
        self.headers_left.set(Some(left));
        Ok(())
    }
}

/// The unpacked stream. A cut reads as end of file and is recorded in `state`.
struct Input {
    unpacked: Limited<Box<dyn Read>>,
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

/// Returns the last component of a regular member's path if a bundle can have a file of that name.
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
