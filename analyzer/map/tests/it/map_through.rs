// SPDX-License-Identifier: MIT OR Apache-2.0
//! A map translated to the disk below: every sector keeps its owner.

use std::collections::HashMap;

use mostrace_map::class::Kind;
use mostrace_map::{Extent, Map, Piece};
use proptest::prelude::*;

const LENGTH: u64 = 400;

prop_compose! {
    fn extent()(
        sector in 0..LENGTH,
        sectors in 1..90u64,
        kind in prop::sample::select(vec![Kind::Regular, Kind::InodeTable, Kind::Directory]),
        inode in 0..4u64,
        offset in prop::option::of(0..1000u64),
    ) -> Extent {
        Extent { sector, sectors, kind, inode, file_offset: offset.map(|o| o * 512) }
    }
}

/// Runs that cover the mapped device, in any order on the disk and with gaps there.
fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let run = (1..120u64, 0..30u64, any::<u32>());
    prop::collection::vec(run, 1..9).prop_map(|runs| {
        let mut upper = 0;
        let mut pieces: Vec<_> = runs
            .into_iter()
            .map(|(sectors, gap, order)| {
                let piece = Piece {
                    upper,
                    sectors,
                    lower: 0,
                };
                upper += sectors;
                (order, gap, piece)
            })
            .collect();
        pieces.sort_by_key(|(order, ..)| *order);
        let mut lower = 2048;
        for (_, gap, piece) in &mut pieces {
            lower += *gap;
            piece.lower = lower;
            lower += piece.sectors;
        }
        pieces.into_iter().map(|(_, _, piece)| piece).collect()
    })
}

fn map(extents: Vec<Extent>) -> Map {
    Map::new(0, LENGTH, extents, HashMap::new())
}

fn sectors(map: &Map) -> u64 {
    map.extents().iter().map(|e| e.sectors).sum()
}

proptest! {
    #[test]
    fn every_sector_keeps_its_owner(extents in prop::collection::vec(extent(), 0..12), pieces in pieces()) {
        let upper = map(extents);
        let lower = upper.clone().through(&pieces);
        for pair in lower.extents().windows(2) {
            prop_assert!(pair[0].end() <= pair[1].sector, "{pair:?}");
        }
        let mapped: u64 = pieces.iter().map(|p| p.sectors).sum();
        prop_assert_eq!(sectors(&lower), mapped.min(LENGTH));
        for sector in 0..LENGTH + 9 {
            let place = lower.down(sector);
            prop_assert_eq!(place.is_some(), sector < mapped);
            let Some(place) = place else { continue };
            let was = upper.pieces(sector, 1).next().unwrap();
            let is = lower.pieces(place, 1).next().unwrap();
            prop_assert_eq!(is, Extent { sector: place, ..was });
        }
    }

    #[test]
    fn there_and_back(extents in prop::collection::vec(extent(), 0..12), pieces in pieces()) {
        let upper = map(extents);
        let mapped: u64 = pieces.iter().map(|p| p.sectors).sum();
        prop_assume!(mapped >= LENGTH);
        let back: Vec<_> = pieces
            .iter()
            .map(|p| Piece { upper: p.lower, sectors: p.sectors, lower: p.upper })
            .collect();
        let returned = upper.clone().through(&pieces).through(&back);
        prop_assert_eq!(returned.extents(), upper.extents());
    }

    /// Pieces come from a bundle, which may be anybody's.
    #[test]
    fn any_pieces_make_disjoint_extents(
        extents in prop::collection::vec(extent(), 0..12),
        pieces in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..5),
    ) {
        let pieces: Vec<_> = pieces
            .into_iter()
            .map(|(upper, sectors, lower)| Piece { upper: upper % 500, sectors, lower })
            .collect();
        let lower = map(extents).through(&pieces);
        for pair in lower.extents().windows(2) {
            prop_assert!(pair[0].end() <= pair[1].sector, "{pair:?}");
        }
    }
}

#[test]
fn a_map_of_the_disk_itself_is_its_own() {
    assert_eq!(map(Vec::new()).down(7), Some(7));
}
