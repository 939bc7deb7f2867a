// SPDX-License-Identifier: MIT OR Apache-2.0
//! Android's sparse images (system/core/libsparse/sparse_format.h), read in place.
//!
//! ```text
//! │ magic u32 │ version u16, u16 │ header lengths u16, u16 │ block bytes u32 │ blocks u32 │ chunks u32 │ CRC u32 │ chunk │ …
//! chunk: │ type u16 │ u16 │ blocks u32 │ bytes with this header u32 │ data
//! ```

use std::io;

use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le::{u16_at, u32_at};
use crate::fs::read_at::ReadAt;

const SPARSE_HEADER_MAGIC: u32 = 0xed26_ff3a;
const HEADER_LEN: usize = 28;
const CHUNK_HEADER_LEN: usize = 12;
const RAW: u16 = 0xcac1;
const FILL: u16 = 0xcac2;
const DONT_CARE: u16 = 0xcac3;
const CRC32: u16 = 0xcac4;

/// Returns true if an image is in this format.
pub fn is(image: &Image) -> bool {
    let magic = image.read(0, 4, "first blocks");
    magic.is_ok_and(|magic| u32_at(&magic, 0) == Some(SPARSE_HEADER_MAGIC))
}

/// What the bytes of a chunk are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// They begin at this byte of the file.
    Raw(u64),
    /// Four bytes, again and again.
    Fill([u8; 4]),
}

/// Some bytes of the image that are not left out.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    start: u64,
    bytes: u64,
    contents: Contents,
}

/// The unpacked image.
struct Unpacked {
    packed: Image,
    /// By their place.
    chunks: Vec<Chunk>,
}

/// Opens an image in this format. What is left out reads as zeros.
///
/// # Errors
/// Returns an error if the image is damaged.
pub fn unpack(image: &Image) -> Result<Image> {
    let header = image.read(0, HEADER_LEN, "sparse header")?;
    let field = |at| u32_at(&header, at).map_or(0, u64::from);
    let length = |at| u16_at(&header, at).map_or(0, u64::from);
    let (block, blocks, count) = (field(12), field(16), field(20));
    let mut unpacked = Unpacked {
        packed: image.part(0, u64::MAX),
        chunks: Vec::new(),
    };
    let (mut at, mut to) = (length(8), 0u64);
    for nth in 0..count {
        let place = || format!("sparse chunk {nth}");
        let header = image.read(at, CHUNK_HEADER_LEN, place())?;
        let size = |at| u32_at(&header, at).map_or(0, u64::from);
        // At most 2^64 - 2^33 + 1.
        let bytes = size(4).saturating_mul(block);
        let data = at.saturating_add(length(10));
        let contents = match u16_at(&header, 0) {
            Some(RAW) => Some(Contents::Raw(data)),
            Some(FILL) => {
                let fill = image.read(data, 4, place())?;
                let fill = fill.first_chunk().copied().unwrap_or_default();
                Some(Contents::Fill(fill)).filter(|_| fill != [0; 4])
            }
            Some(DONT_CARE) => None,
            Some(CRC32) => None,
            _ => return Err(image.corrupt(place(), "a type that is not known")),
        };
        if size(8) < length(10) {
            return Err(image.corrupt(place(), format!("its length is {}", size(8))));
        }
        if let Some(contents) = contents {
            unpacked.chunks.push(Chunk {
                start: to,
                bytes,
                contents,
            });
        }
        at = at.saturating_add(size(8));
        to = to.saturating_add(bytes);
    }
    let bytes = blocks.saturating_mul(block);
    if to > bytes || block == 0 {
        let what = format!("chunks of {to} bytes in an image of {bytes}");
        return Err(image.corrupt("sparse header", what));
    }
    Ok(Image::new(image.path(), bytes, unpacked))
}

impl Unpacked {
    /// Returns the index of the first chunk that ends behind a byte.
    fn index(&self, offset: u64) -> usize {
        let ends = |chunk: &Chunk| chunk.start.saturating_add(chunk.bytes) <= offset;
        self.chunks.partition_point(ends)
    }
}

impl ReadAt for Unpacked {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        buf.fill(0);
        let end = offset.saturating_add(u64::try_from(buf.len()).unwrap_or(u64::MAX));
        let chunks = self.chunks.get(self.index(offset)..).unwrap_or_default();
        for chunk in chunks.iter().take_while(|chunk| chunk.start < end) {
            let from = chunk.start.max(offset);
            let to = chunk.start.saturating_add(chunk.bytes).min(end);
            let index = |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
            let Some(part) = buf.get_mut(index(from)..index(to)) else {
                continue;
            };
            let within = from.saturating_sub(chunk.start);
            match chunk.contents {
                Contents::Raw(at) => {
                    self.packed.read_exact_at(part, at.saturating_add(within))?;
                }
                Contents::Fill(fill) => {
                    let skip = usize::try_from(within % 4).unwrap_or(0);
                    let bytes = fill.iter().cycle().skip(skip);
                    part.iter_mut()
                        .zip(bytes)
                        .for_each(|(to, from)| *to = *from);
                }
            }
        }
        Ok(())
    }

    fn next_data(&self, offset: u64) -> u64 {
        let next = self.chunks.get(self.index(offset));
        next.map_or(u64::MAX, |chunk| chunk.start.max(offset))
    }
}
