// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bundle as one file: the same files in a `.tar.zst`.
//!
//! An archive may come from anybody, so unpacking writes regular files of known
//! names into a folder of its own, and no more than a bound. One that was cut (a download that
//! broke off) is unpacked up to the cut.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use crate::error::{At, Error};
use crate::folder::Folder;
use crate::layout;
use crate::temporary::TempFolder;
use crate::writer::Writer;

/// The most that an archive may unpack to, bytes.
pub const UNPACK_LIMIT: u64 = 64 << 30;

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
/// Not an archive, damaged, or larger than [`UNPACK_LIMIT`].
pub fn unpack(from: &Path) -> Result<Unpacked, Error> {
    let file = File::open(from).at(from)?;
    let at = file.metadata().at(from)?.len();
    let ended = Rc::new(Cell::new(Ended::No));
    let input = Input {
        zstd: zstd::Decoder::new(file).at(from)?,
        left: UNPACK_LIMIT,
        ended: Rc::clone(&ended),
    };
    let mut tar = tar::Archive::new(input);
    let dir = TempFolder::new()?;
    let within = unpack_members(&mut tar, &ended, dir.path(), from)?;
    let mut is_cut = ended.get() != Ended::No;
    if !is_cut {
        // What follows the archive's own end mark still belongs to the compressed stream.
        io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(|e| damaged(from, &e))?;
        is_cut = ended.get() == Ended::Early;
    }
    let cut = is_cut.then_some(Cut { at, within });
    Ok(Unpacked { dir, cut })
}

/// Unpacks all that is there. Returns the name of the file in which the input ended, if it did so
/// before the archive's own end mark, and within a file.
fn unpack_members(
    tar: &mut tar::Archive<Input>,
    ended: &Cell<Ended>,
    dir: &Path,
    from: &Path,
) -> Result<Option<String>, Error> {
    for member in tar.entries().map_err(|e| damaged(from, &e))? {
        let mut member = match member {
            Ok(member) => member,
            Err(_) if ended.get() != Ended::No => break,
            Err(e) => return Err(damaged(from, &e)),
        };
        let Some(name) = known_name(&member) else {
            continue;
        };
        let path = dir.join(&name);
        let mut out = File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .at(&path)?;
        io::copy(&mut member, &mut out).map_err(|e| damaged(from, &e))?;
        if ended.get() != Ended::No {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// How the compressed stream came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Not yet.
    No,
    /// In order.
    Whole,
    /// In the middle.
    Early,
}

/// The unpacked stream: a cut reads as its end, and is remembered.
struct Input {
    zstd: zstd::Decoder<'static, BufReader<File>>,
    left: u64,
    ended: Rc<Cell<Ended>>,
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() || self.ended.get() != Ended::No {
            return Ok(0);
        }
        let ended = match self.zstd.read(buf) {
            Ok(0) => Ended::Whole,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ended::Early,
            Err(e) => return Err(e),
            Ok(read) => {
                let left = u64::try_from(read)
                    .ok()
                    .and_then(|n| self.left.checked_sub(n));
                self.left = left.ok_or_else(|| {
                    io::Error::other(format!("it unpacks to more than {UNPACK_LIMIT} bytes"))
                })?;
                return Ok(read);
            }
        };
        self.ended.set(ended);
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
