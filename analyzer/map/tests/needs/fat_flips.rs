// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random damage of FAT volumes gives one clear error or a map that covers all, never a panic or a hang.

use crate::fat::images;
use crate::fat::volume;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mostrace_map::class::Kind;
use mostrace_map::fs::{self, Image, ReadAt};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use test_support::{Need, Suite, at_once, property, tests};
use volume::{FAT12, FAT16, FAT32, NAME, Volume};

pub fn suite() -> Suite {
    at_once(tests![
        flipped_bytes_of_fat12 needs images::TOOLS,
        flipped_bytes_of_fat16 needs images::TOOLS,
        flipped_bytes_of_fat32 needs images::TOOLS,
        ten_thousand_times needs [&images::TOOLS[..], &[Need::Minutes]].concat(),
    ])
}

/// An image with some bytes flipped.
struct Flipped {
    bytes: Arc<Vec<u8>>,
    masks: BTreeMap<usize, u8>,
    /// Number of bytes that were read from it.
    read: Arc<AtomicUsize>,
}

impl ReadAt for Flipped {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read.fetch_add(buf.len(), Ordering::Relaxed);
        self.bytes.read_exact_at(buf, offset)?;
        let from = offset as usize;
        for (at, mask) in self.masks.range(from..from + buf.len()) {
            buf[at - from] ^= mask;
        }
        Ok(())
    }
}

/// Returns the places of metadata: boot records, the beginnings of the FATs, directories.
fn places(volume: &Volume) -> Vec<Range<usize>> {
    let map = volume.build().expect("map");
    let bytes = |kind: Kind, most: usize| {
        let extents = map
            .extents()
            .iter()
            .filter(move |extent| extent.kind == kind);
        extents.map(move |extent| {
            let from = extent.sector as usize * 512;
            from..from + most.min(extent.sectors as usize * 512)
        })
    };
    let mut places = vec![0..90, 0..90];
    if volume.bits == 32 {
        places.extend([3072..3072 + 90, 512..1024]);
    }
    // The FATs form one extent; the first entries of each are in use.
    let fats = bytes(Kind::Fat, usize::MAX).next().expect("FATs");
    let half = (fats.end - fats.start) / 2;
    let used = 64 * volume.bits / 8;
    places.extend([fats.start..fats.start + used, fats.start..fats.start + used]);
    places.push(fats.start + half..fats.start + half + used);
    places.extend(bytes(Kind::Directory, 1024));
    places
}

/// Builds `cases` maps of one volume, each with other bytes flipped.
fn flips(kind: (&str, u64), cases: u32) {
    let volume = Volume::new(kind);
    let places = places(&volume);
    let bytes = Arc::new(volume.bytes);
    let place = prop::sample::select(places).prop_flat_map(|range| range);
    let mask = prop_oneof![1u8.., Just(0xff), (0u32..8).prop_map(|bit| 1 << bit)];
    let flips = prop::collection::btree_map(place, mask, 1..20);
    let config = property::config(file!(), cases);
    let built = Cell::new(0);
    let run = TestRunner::new(config).run(&flips, |masks| {
        let read = Arc::default();
        let flipped = Flipped {
            bytes: bytes.clone(),
            masks,
            read: Arc::clone(&read),
        };
        let image = Image::new(NAME.as_ref(), bytes.len() as u64, flipped);
        // This bypasses `fs::build`, which would reject most volumes with a damaged boot record.
        let map = fs::fat::build(&image, 7);
        let read = read.load(Ordering::Relaxed);
        prop_assert!(read < 4 * bytes.len(), "{read} bytes read: too much work");
        match map {
            Ok(map) => {
                built.set(built.get() + 1);
                volume::conserves(&map).map_err(TestCaseError::fail)?;
                prop_assert_eq!(map.extents()[0].sector, 7);
                prop_assert!(map.extents().len() < 3 * bytes.len() / 512);
                prop_assert!(map.notices().len() <= 120);
                for notice in map.notices() {
                    prop_assert!(!notice.contains('\n'));
                }
            }
            Err(error) => {
                let line = error.to_string();
                prop_assert!(
                    line.starts_with("volume: ") && !line.contains('\n'),
                    "{line}"
                );
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
    let built = built.get();
    assert!(built > cases / 4, "{built} maps of {cases} volumes");
}

fn flipped_bytes_of_fat12() {
    flips(FAT12, 2000);
}

fn flipped_bytes_of_fat16() {
    flips(FAT16, 1000);
}

fn flipped_bytes_of_fat32() {
    flips(FAT32, 500);
}

fn ten_thousand_times() {
    for (kind, cases) in [(FAT12, 4000), (FAT16, 3000), (FAT32, 3000)] {
        flips(kind, cases);
    }
}
