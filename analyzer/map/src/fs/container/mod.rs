// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images as people have them: packed, in another program's format, or of a whole disk with partitions.
//!
//! ```text
//! file ──→ gzip, Android sparse, qcow2 … ──→ disk ──→ partition ──→ filesystem
//! ```

use std::path::Path;

use crate::fs::error::{Error, Result};
use crate::fs::image::Image;
use crate::fs::recognise::recognise;

mod android_sparse;
mod gpt;
mod gzip;
mod mbr;
mod partition;
#[cfg(target_os = "linux")]
mod qemu;

use partition::Partition;

/// The part of an image that is to be mapped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The number of the partition on a whole disk.
    pub partition: Option<u32>,
    /// The first sector of the filesystem on its disk. On a whole disk, the partition that begins there is taken.
    pub start_sector: Option<u64>,
}

/// An opened image of a filesystem.
pub struct Opened {
    /// The filesystem's bytes.
    pub image: Image,
    /// The first sector of the filesystem on its disk.
    pub start_sector: u64,
    /// What was unpacked or chosen, one line each.
    pub notices: Vec<String>,
}

/// How often what was unpacked may be packed itself.
const LAYERS: usize = 4;

/// Opens an image file or a block device, unpacks it if it is packed, and finds the filesystem that is wanted.
///
/// # Errors
/// Returns an error if the image cannot be read or unpacked, or if it is a disk with several partitions and none is wanted.
pub fn open(path: &Path, wanted: Wanted) -> Result<Opened> {
    let mut image = Image::open(path)?;
    let mut notices = Vec::new();
    for _ in 0..LAYERS {
        let Some((unpacked, format)) = unpack(&image)? else {
            break;
        };
        notices.push(format!("the image is {format}, which was unpacked"));
        image = unpacked;
    }
    choose(image, wanted, notices)
}

/// Unpacks an image and says what it was; None if it is not packed.
fn unpack(image: &Image) -> Result<Option<(Image, &'static str)>> {
    if gzip::is(image) {
        return Ok(Some((gzip::unpack(image)?, "gzip data")));
    }
    if android_sparse::is(image) {
        return Ok(Some((
            android_sparse::unpack(image)?,
            "an Android sparse image",
        )));
    }
    #[cfg(target_os = "linux")]
    if let Some(format) = qemu::format(image) {
        return Ok(Some((qemu::unpack(image, format)?, format.name)));
    }
    Ok(None)
}

fn choose(image: Image, wanted: Wanted, mut notices: Vec<String>) -> Result<Opened> {
    let whole = |image, notices| Opened {
        image,
        start_sector: wanted.start_sector.unwrap_or(0),
        notices,
    };
    if wanted.partition.is_none() && recognise(&image)?.is_some() {
        return Ok(whole(image, notices));
    }
    let partitions = partitions_of(&image);
    let chosen = match (wanted.partition, &partitions[..]) {
        (None, []) => return Ok(whole(image, notices)),
        (Some(number), []) => {
            let what = format!("no partition {number}: there is no table of partitions");
            return Err(image.corrupt("first blocks", what));
        }
        (Some(number), all) => all.iter().find(|one| one.number == number),
        (None, all) => {
            let begins = |one: &&Partition| Some(one.start_sector) == wanted.start_sector;
            let only = all.first().filter(|_| all.len() == 1);
            all.iter().find(begins).or(only)
        }
    };
    let Some(chosen) = chosen else {
        return Err(Error::Partitioned {
            path: image.path().to_owned(),
            list: partition::list(&image, &partitions),
        });
    };
    if wanted.partition.is_none() {
        let Partition {
            number,
            start_sector,
            ..
        } = chosen;
        notices.push(format!(
            "the image is a disk: partition {number}, from sector {start_sector} on, was taken"
        ));
    }
    Ok(Opened {
        image: chosen.of(&image),
        start_sector: wanted.start_sector.unwrap_or(chosen.start_sector),
        notices,
    })
}

/// Reads the table of partitions; empty if there is none.
fn partitions_of(disk: &Image) -> Vec<Partition> {
    match gpt::read(disk) {
        found if !found.is_empty() => found,
        _ => mbr::read(disk),
    }
}
