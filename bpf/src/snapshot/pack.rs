// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores the saved parts of a device in the bundle's own format.

use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use mostrace_bundle::sparse::SparseWriter;
use mostrace_bundle::{Folder, layout};
use mostrace_map::fs::Image;
use rustix::fs::{SeekFrom, seek};

use crate::error::{At, Result};

const CHUNK: u64 = 1 << 20;

/// Packs the data between the holes of a sparse file as the snapshot of the bundle in `folder`.
pub fn pack(raw: &File, size: u64, folder: &Folder) -> Result<()> {
    let to = folder.path().join(layout::SNAPSHOT);
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Ok(start) = seek(raw, SeekFrom::Data(at)) {
        at = seek(raw, SeekFrom::Hole(start)).at(&to)?;
        ranges.push(start..at);
    }
    write(size, &ranges, folder, |buf, at| {
        FileExt::read_exact_at(raw, buf, at).at(&to)
    })
}

/// Packs these byte ranges of an image, which are ascending and disjoint, as the snapshot of the bundle in `folder`.
pub fn pack_ranges(image: &Image, ranges: &[Range<u64>], folder: &Folder) -> Result<()> {
    write(image.bytes(), ranges, folder, |buf, at| {
        Ok(image.read_into(buf, at, "metadata")?)
    })
}

fn write(
    size: u64,
    ranges: &[Range<u64>],
    folder: &Folder,
    read: impl Fn(&mut [u8], u64) -> Result<()>,
) -> Result<()> {
    let to = &folder.path().join(layout::SNAPSHOT);
    let out = BufWriter::new(folder.create(layout::SNAPSHOT)?);
    let mut sparse = SparseWriter::new(out, size).at(to)?;
    let mut buf = vec![0; CHUNK as usize];
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let want = (range.end - at).min(CHUNK) as usize;
            read(&mut buf[..want], at)?;
            sparse.push(at, &buf[..want]).at(to)?;
            at += want as u64;
        }
    }
    let file = sparse
        .finish()
        .at(to)?
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .at(to)?;
    file.sync_all().at(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_sparse_file_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let raw = tempfile::tempfile().unwrap();
        raw.set_len(10 << 20).unwrap();
        raw.write_all_at(b"head", 0).unwrap();
        raw.write_all_at(&[5; 3 << 20], 4 << 20).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        pack(&raw, 10 << 20, &folder).unwrap();
        let to = dir.path().join(layout::SNAPSHOT);
        let mut back = tempfile::NamedTempFile::new().unwrap();
        mostrace_bundle::sparse::restore(
            File::open(&to).unwrap(),
            &to,
            back.as_file_mut(),
            mostrace_bundle::sparse::Limits::new(1 << 30, to.metadata().unwrap().len()),
        )
        .unwrap();
        let (mut a, mut b) = (vec![0; 10 << 20], Vec::new());
        raw.read_exact_at(&mut a, 0).unwrap();
        back.reopen().unwrap().read_to_end(&mut b).unwrap();
        assert!(a == b);
    }
}
