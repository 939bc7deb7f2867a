// SPDX-License-Identifier: MIT OR Apache-2.0
//! gzip data: unpacked into a temporary file without a name, with holes where there are zeros.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::read::MultiGzDecoder;

use crate::fs::error::Result;
use crate::fs::image::Image;

const MAGIC: &[u8] = &[0x1f, 0x8b, 8];
/// Bytes that are unpacked at once; as many zeros become a hole.
const CHUNK: usize = 64 << 10;

/// Returns true if an image is gzip data.
pub fn is(image: &Image) -> bool {
    let magic = image.read(0, MAGIC.len(), "first blocks");
    magic.is_ok_and(|magic| magic == MAGIC)
}

/// Unpacks an image.
///
/// # Errors
/// Returns an error if it is damaged, or if there is no room for it.
pub fn unpack(image: &Image) -> Result<Image> {
    let unpacked = tempfile::tempfile().and_then(|mut file| {
        let packed = Sequential { image, at: 0 };
        let bytes = copy(MultiGzDecoder::new(packed), &mut file)?;
        Ok((file, bytes))
    });
    let (file, bytes) = unpacked.map_err(|source| image.io("gzip data", source))?;
    Ok(Image::new(image.path(), bytes, file))
}

/// Copies everything and leaves out zeros. Returns the length.
fn copy(mut from: impl Read, to: &mut File) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK];
    let mut at = 0u64;
    loop {
        let read = from.read(&mut chunk)?;
        if read == 0 {
            to.set_len(at)?;
            return Ok(at);
        }
        let bytes = chunk.get(..read).unwrap_or_default();
        if bytes.iter().any(|&byte| byte != 0) {
            to.seek(SeekFrom::Start(at))?;
            to.write_all(bytes)?;
        }
        at = at.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
    }
}

/// Reads an image from its beginning to its end.
struct Sequential<'a> {
    image: &'a Image,
    at: u64,
}

impl Read for Sequential<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.image.bytes().saturating_sub(self.at);
        let len = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let buf = buf.get_mut(..len).unwrap_or_default();
        self.image.read_exact_at(buf, self.at)?;
        self.at = self
            .at
            .saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
        Ok(len)
    }
}
