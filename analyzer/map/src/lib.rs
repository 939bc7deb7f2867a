// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps of filesystems: for each sector of a disk, the kind of block, the file that owns it, and the offset in that file.
//!
//! A map is built from a disk, a partition, or a saved copy of the filesystem's metadata. The filesystem need not be
//! mounted. ext2, ext3, ext4, f2fs and FAT12 to FAT32 are supported. These are the main types, in the order in which one
//! meets them:
//!
//! - [`fs::Image`] is what a filesystem is read from: a file, a block device, or anything that implements
//!   [`fs::ReadAt`].
//! - [`fs::build`] recognises the filesystem on an image and returns its [`Map`], or an [`fs::Error`] that names the
//!   image and the place. [`fs::build_with`] also reports progress.
//! - [`Map::pieces`] splits a range of sectors into [`Extent`]s with one owner each. Sectors have 512 bytes and count from
//!   the start of the whole disk.
//! - [`class::Kind`] is the kind of block (`inode_table`, `directory`), and [`class::Class`] the coarser class to which a
//!   kind belongs. [`class::Role`] is the purpose of a regular file in SQLite or in one of the [`stores`].
//! - [`Map::path`], [`Map::paths`] and [`Map::inode`] look up the owner. Paths are raw bytes.
//! - [`Map::notices`] lists what could not be resolved in a damaged filesystem. Such blocks are
//!   [`class::Kind::Unmapped`]: owners are never guessed.
//! - [`Map::through`] translates the map of a filesystem on a mapped device (dm), or on several devices, to sectors of one disk.
//! - [`fs::parts`] tells which devices a filesystem lies on, and [`fs::Joined`] reads them as one image.
//! - [`fs::jbd2::Journal`] reads the log of ext4's journal, with the home of each copy in it.
//!
//! ```
//! use std::path::Path;
//!
//! use mostrace_map::class::{Class, Kind};
//! use mostrace_map::fs::{Image, build};
//!
//! // A FAT12 of 16 sectors: boot record, FAT, root directory, and a file in sector 3.
//! let mut disk = vec![0; 16 * 512];
//! let mut put = |at: usize, bytes: &[u8]| disk[at..at + bytes.len()].copy_from_slice(bytes);
//! put(0, &[0xeb, 0x3c, 0x90]);
//! // From byte 11: 512 bytes in a sector, 1 sector in a cluster, 1 reserved sector, 1 FAT, 16 entries in the root
//! // directory, 16 sectors, the medium, 1 sector in a FAT.
//! put(11, &[0, 2, 1, 1, 0, 1, 16, 0, 16, 0, 0xf8, 1, 0]);
//! put(510, &[0x55, 0xaa]);
//! put(512, &[0xf8, 0xff, 0xff, 0xff, 0x0f]);
//! put(1024, b"HELLO   TXT");
//! put(1024 + 26, &[2, 0, 5, 0, 0, 0]);
//! put(1536, b"hello");
//!
//! // The filesystem begins at sector 2048 of its disk.
//! let image = Image::new(Path::new("example"), 16 * 512, disk);
//! let map = build(&image, 2048)?;
//! assert!(map.notices().is_empty());
//!
//! // Two sectors from the file's on: its only block, and a free one.
//! let pieces: Vec<_> = map.pieces(2048 + 3, 2).collect();
//! assert_eq!(pieces[0].kind, Kind::Regular);
//! assert_eq!(pieces[0].kind.class(), Class::Data);
//! assert_eq!(pieces[0].file_offset, Some(0));
//! assert_eq!(map.path(pieces[0].inode).as_deref(), Some(&b"/HELLO.TXT"[..]));
//! assert_eq!(pieces[1].kind, Kind::Free);
//! # Ok::<(), mostrace_map::fs::Error>(())
//! ```
#![deny(unsafe_code)]
// Images may come from anybody: values in them are checked before use.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

pub mod class;
mod extent;
pub mod fs;
mod map;
pub mod stores;
mod through;

pub use extent::Extent;
pub use map::{Inode, Map, Name};
pub use through::{ELSEWHERE, Piece};
