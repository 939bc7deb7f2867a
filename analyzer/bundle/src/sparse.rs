// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sparse device image, zstd-compressed: the metadata snapshot.
//!
//! Under zstd: `MOSTSPRS`, u64 size of the device in bytes, then runs of `u64 offset, u64 length, length bytes`,
//! ascending and disjoint, ended by `u64 MAX, u64 0`. Integers are little-endian. Ranges that no run covers were not
//! saved and read as zeros.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::allowance::Allowance;
use crate::error::{At, Error};
use crate::length::as_u64;

const MAGIC: &[u8; 8] = b"MOSTSPRS";
const END: u64 = u64::MAX;
/// The shortest stretch of zeros that ends a run, bytes: each run costs 16 bytes.
const GRAIN: usize = 1024;
/// The least space that a run takes on a disk, bytes.
const BLOCK: u64 = 4096;
/// The part of a run that is copied at a time, bytes.
const COPIED_AT_ONCE: usize = 256 << 10;

/// Writes an image run by run into `out`.
pub struct SparseWriter<W: Write> {
    out: zstd::Encoder<'static, W>,
    end: u64,
}

impl<W: Write> SparseWriter<W> {
    /// Begins the image of a device of `size` bytes.
    pub fn new(out: W, size: u64) -> io::Result<SparseWriter<W>> {
        let mut out = zstd::Encoder::new(out, 9)?;
        out.write_all(MAGIC)?;
        out.write_all(&size.to_le_bytes())?;
        Ok(SparseWriter { out, end: 0 })
    }

    /// Adds `data` at the byte offset `offset`, leaving out its zeros. Offsets must ascend.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written, if `offset` lies before the end of the last run, or if `data` ends
    /// past 2^64.
    pub fn push(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        if offset < self.end {
            return Err(invalid("runs must ascend"));
        }
        let end = offset
            .checked_add(as_u64(data.len()))
            .ok_or_else(|| invalid("past the largest device"))?;
        let mut from = 0;
        while let Some((start, run)) = next_run(data, from) {
            let at = offset.saturating_add(as_u64(start));
            self.out.write_all(&at.to_le_bytes())?;
            self.out.write_all(&as_u64(run.len()).to_le_bytes())?;
            self.out.write_all(run)?;
            from = start.saturating_add(run.len());
        }
        self.end = end;
        Ok(())
    }

    /// Ends the image.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&END.to_le_bytes())?;
        self.out.write_all(&0u64.to_le_bytes())?;
        self.out.finish()
    }
}

/// Returns the next run of grains that are not all zero, and the offset in `data` at which it begins.
fn next_run(data: &[u8], from: usize) -> Option<(usize, &[u8])> {
    let is_zero = |grain: &&[u8]| grain.iter().all(|&b| b == 0);
    let rest = data.get(from..)?;
    let zeros: usize = rest
        .chunks(GRAIN)
        .take_while(is_zero)
        .map(<[u8]>::len)
        .sum();
    let rest = rest.get(zeros..)?;
    let len: usize = rest
        .chunks(GRAIN)
        .take_while(|grain| !is_zero(grain))
        .map(<[u8]>::len)
        .sum();
    let run = rest.get(..len).filter(|run| !run.is_empty())?;
    Some((from.checked_add(zeros)?, run))
}

/// The limits on what a snapshot may unpack to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    device: u64,
    room: u64,
}

impl Limits {
    /// Sets the size of the largest allowed device, and the bytes that the snapshot takes packed, which bound its runs.
    pub fn new(device: u64, packed: u64) -> Limits {
        Limits {
            device,
            room: Allowance::SNAPSHOT.of(packed),
        }
    }
}

/// Restores an image into the empty file `to` as a sparse file. Returns the device's size in bytes.
///
/// # Errors
/// Returns an error if the image is damaged, if it claims runs outside the device or more than `limits` allow, or if
/// `to` cannot be written. `path` is the image's name in messages.
pub fn restore(input: impl Read, path: &Path, to: &File, limits: Limits) -> Result<u64, Error> {
    let mut input = zstd::Decoder::new(input).at(path)?;
    let mut magic = [0; 8];
    read(&mut input, &mut magic, path, 0)?;
    if &magic != MAGIC {
        return Err(Error::corrupt(path, "not a snapshot (bad magic at byte 0)"));
    }
    let size = read_u64(&mut input, path, 0)?;
    if size > limits.device {
        return Err(Error::unsupported(
            path,
            format!("snapshot of a {size}-byte device"),
        ));
    }
    to.set_len(size).at(path)?;
    let (mut end, mut room) = (0, limits.room);
    // One buffer serves all runs: there are thousands, most of them one block long.
    let mut buf = vec![0; COPIED_AT_ONCE];
    loop {
        let offset = read_u64(&mut input, path, end)?;
        let len = read_u64(&mut input, path, end)?;
        if offset == END {
            return Ok(size);
        }
        let run_end = offset
            .checked_add(len)
            .filter(|&e| offset >= end && e <= size && len > 0);
        let Some(run_end) = run_end else {
            return Err(Error::corrupt(
                path,
                format!("run {offset}+{len} of a {size}-byte device"),
            ));
        };
        room = room.checked_sub(len.max(BLOCK)).ok_or_else(|| {
            let most = limits.room;
            let what = format!("its runs take more than {most} bytes, too many for its size");
            Error::corrupt(path, what)
        })?;
        let copied = copy((&mut input).take(len), to, offset, &mut buf);
        if copied.map_err(|e| damaged(e, path, offset))? < len {
            return Err(Error::corrupt(
                path,
                format!("cut short in the run at byte {offset}"),
            ));
        }
        end = run_end;
    }
}

/// Copies a whole run to the offset `at` by way of `buf`, leaving out zeros, which the file has already. Returns the
/// run's length.
fn copy(mut run: impl Read, to: &File, at: u64, buf: &mut [u8]) -> io::Result<u64> {
    let mut copied = 0u64;
    loop {
        let read = fill(&mut run, buf)?;
        let part = buf.get(..read).unwrap_or_default();
        let mut from = 0;
        while let Some((start, some)) = next_run(part, from) {
            let place = at.saturating_add(copied).saturating_add(as_u64(start));
            to.write_all_at(some, place)?;
            from = start.saturating_add(some.len());
        }
        copied = copied.saturating_add(as_u64(read));
        if read < buf.len() {
            return Ok(copied);
        }
    }
}

/// Reads until `buf` is full or the run ends. Returns the number of bytes read.
fn fill(run: &mut impl Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0usize;
    while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match run.read(rest)? {
            0 => break,
            read => filled = filled.saturating_add(read),
        }
    }
    Ok(filled)
}

fn read(input: &mut impl Read, buf: &mut [u8], path: &Path, after: u64) -> Result<(), Error> {
    input.read_exact(buf).map_err(|e| damaged(e, path, after))
}

fn read_u64(input: &mut impl Read, path: &Path, after: u64) -> Result<u64, Error> {
    let mut buf = [0; 8];
    read(input, &mut buf, path, after)?;
    Ok(u64::from_le_bytes(buf))
}

fn damaged(e: io::Error, path: &Path, after: u64) -> Error {
    Error::corrupt(
        path,
        format!("damaged after byte {after} of the device: {e}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Cursor, Seek, SeekFrom};

    const LIMITS: Limits = Limits {
        device: 1 << 30,
        room: 1 << 30,
    };

    fn round_trip(image: &[u8]) -> Vec<u8> {
        let mut w = SparseWriter::new(Vec::new(), image.len() as u64).unwrap();
        for (i, chunk) in image.chunks(5000).enumerate() {
            w.push(i as u64 * 5000, chunk).unwrap();
        }
        let packed = w.finish().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        restore(Cursor::new(packed), Path::new("x"), &file, LIMITS).unwrap();
        let mut back = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut back).unwrap();
        back
    }

    proptest! {
        #[test]
        fn comes_back_as_it_was(runs in prop::collection::vec((any::<u8>(), 0usize..4000), 0..20)) {
            let image: Vec<u8> =
                runs.iter().flat_map(|&(b, n)| std::iter::repeat_n(if b % 2 == 0 { 0 } else { b }, n)).collect();
            prop_assert_eq!(round_trip(&image), image);
        }

        #[test]
        fn damage_is_an_error_or_an_image(at in 0usize..200, flip in 1u8..) {
            let mut w = SparseWriter::new(Vec::new(), 20_000).unwrap();
            w.push(4096, &[7; 3000]).unwrap();
            let mut packed = w.finish().unwrap();
            let at = at % packed.len();
            packed[at] ^= flip;
            let file = tempfile::tempfile().unwrap();
            let _ = restore(Cursor::new(packed), Path::new("x"), &file, LIMITS);
            prop_assert!(file.metadata().unwrap().len() <= 1 << 30);
        }
    }

    #[test]
    fn a_cut_image_says_where() {
        let mut w = SparseWriter::new(Vec::new(), 9000).unwrap();
        w.push(0, &[1; 9000]).unwrap();
        let packed = w.finish().unwrap();
        let file = tempfile::tempfile().unwrap();
        let cut = Cursor::new(&packed[..packed.len() - 6]);
        let e = restore(cut, Path::new("snap"), &file, LIMITS).unwrap_err();
        assert!(e.to_string().starts_with("snap: "), "{e}");
    }

    /// Builds a snapshot of a device with runs of this byte, each at an offset and of a length; the writer itself never makes a run
    /// of zeros.
    fn runs(device: u64, runs: &[(u64, u64)], byte: u8) -> Vec<u8> {
        let mut out = zstd::Encoder::new(Vec::new(), 3).unwrap();
        let mut put = |number: u64, len| {
            out.write_all(&number.to_le_bytes()).unwrap();
            io::copy(&mut io::repeat(byte).take(len), &mut out).unwrap();
        };
        put(u64::from_le_bytes(*MAGIC), 0);
        put(device, 0);
        for &(offset, len) in runs {
            put(offset, 0);
            put(len, len);
        }
        put(END, 0);
        put(0, 0);
        out.finish().unwrap()
    }

    fn one_run(byte: u8, len: u64) -> Vec<u8> {
        runs(len, &[(0, len)], byte)
    }

    #[test]
    fn runs_lie_one_behind_the_other_on_the_device() {
        for (of, says) in [
            (&[(0, 4), (4, 4)][..], None),
            (&[(0, 4), (3, 1)], Some("run 3+1 of a 8-byte device")),
            (&[(0, 9)], Some("run 0+9 of a 8-byte device")),
            (&[(4, 0)], Some("run 4+0 of a 8-byte device")),
        ] {
            let file = tempfile::tempfile().unwrap();
            let restored = restore(Cursor::new(runs(8, of, 1)), Path::new("x"), &file, LIMITS);
            let said = restored.err().map(|e| e.to_string());
            assert_eq!(said, says.map(|what| format!("x: {what}")));
        }
    }

    #[test]
    fn zeros_take_no_room() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::tempfile().unwrap();
        let packed = one_run(0, 32 << 20);
        restore(Cursor::new(packed), Path::new("x"), &file, LIMITS).unwrap();
        let meta = file.metadata().unwrap();
        assert_eq!((meta.len(), meta.blocks()), (32 << 20, 0));
    }

    #[test]
    fn more_than_a_snapshot_of_its_size_can_hold_is_an_error() {
        let limits = Limits {
            device: 1 << 40,
            room: 1 << 20,
        };
        let mut w = SparseWriter::new(Vec::new(), 1 << 40).unwrap();
        // Each of these runs takes a block of the disk.
        for nth in 0..300 {
            w.push(nth << 16, &[1]).unwrap();
        }
        for packed in [one_run(1, 2 << 20), w.finish().unwrap()] {
            let file = tempfile::tempfile().unwrap();
            let e = restore(Cursor::new(packed), Path::new("snap"), &file, limits).unwrap_err();
            let line = "snap: its runs take more than 1048576 bytes, too many for its size";
            assert_eq!(e.to_string(), line);
        }
    }
}
