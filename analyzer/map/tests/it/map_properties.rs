// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares `Map` with a plain array that has one owner per sector.

use std::collections::HashMap;

use mostrace_map::class::Kind;
use mostrace_map::{ELSEWHERE, Extent, Inode, Map, Name};
use proptest::prelude::*;

/// The owner of one sector: kind, inode, offset in the file.
type Owner = (Kind, u64, Option<u64>);

fn extents() -> impl Strategy<Value = Vec<Extent>> {
    let kind = prop::sample::select(vec![Kind::Regular, Kind::InodeTable, Kind::Free]);
    let offset = prop::option::of((0u64..8).prop_map(|n| n * 512));
    let extent = (0u64..160, 1u64..40, kind, 0u64..4, offset).prop_map(
        |(sector, sectors, kind, inode, file_offset)| Extent {
            sector,
            sectors,
            kind,
            inode,
            file_offset,
        },
    );
    prop::collection::vec(extent, 0..30)
}

fn owner(extent: &Extent, sector: u64) -> Owner {
    let skipped = (sector - extent.sector) * 512;
    (
        extent.kind,
        extent.inode,
        extent.file_offset.map(|offset| offset + skipped),
    )
}

/// Returns the owner by the first extent in the list that holds the sector.
fn naive(range: std::ops::Range<u64>, extents: &[Extent], sector: u64) -> Owner {
    if !range.contains(&sector) {
        return (Kind::Unmapped, 0, None);
    }
    let holds = |e: &&Extent| (e.sector..e.sector + e.sectors).contains(&sector);
    extents
        .iter()
        .find(holds)
        .map_or((Kind::Free, 0, None), |e| owner(e, sector))
}

proptest! {
    #![proptest_config(test_support::property::config(file!(), 256))]

    #[test]
    fn every_sector_has_the_owner_that_was_listed_first(
        extents in extents(), start in 0u64..60, sectors in 0u64..140, from in 0u64..220, len in 0u64..220,
    ) {
        let map = Map::new(start, sectors, extents.clone(), HashMap::new());
        let inside = start..start + sectors;

        let mut at = start;
        for extent in map.extents() {
            prop_assert!(extent.sector == at && extent.sectors > 0, "hole or overlap at {at}");
            at = extent.end();
        }
        prop_assert_eq!(at, inside.end);

        let mut at = from;
        for piece in map.pieces(from, len) {
            prop_assert!(piece.sector == at && piece.sectors > 0, "hole or overlap at {at}");
            for sector in piece.sector..piece.end() {
                prop_assert_eq!(owner(&piece, sector), naive(inside.clone(), &extents, sector));
            }
            at = piece.end();
        }
        prop_assert_eq!(at, from + len);
    }

    #[test]
    fn what_continues_is_one_extent(lengths in prop::collection::vec(1u64..9, 1..20)) {
        let mut at = 0;
        let parts = lengths.iter().map(|&sectors| {
            at += sectors;
            let sector = at - sectors;
            Extent { sector, sectors, kind: Kind::Regular, inode: 9, file_offset: Some(sector * 512) }
        });
        let parts: Vec<_> = parts.rev().collect();
        prop_assert_eq!(Map::new(0, at, parts, HashMap::new()).extents().len(), 1);
    }
}

#[test]
fn the_ends_of_the_number_range_hold() {
    // From ELSEWHERE on, sectors are those of other disks.
    let last = ELSEWHERE - 8;
    let whole = Extent {
        sector: 0,
        sectors: u64::MAX,
        kind: Kind::Regular,
        inode: 1,
        file_offset: Some(0),
    };
    let map = Map::new(last, 8, vec![whole], HashMap::new());
    assert_eq!(map.extents().len(), 1);
    let pieces: Vec<_> = map.pieces(last - 4, u64::MAX).collect();
    assert_eq!(pieces.len(), 3);
    assert_eq!((pieces[0].kind, pieces[0].sectors), (Kind::Unmapped, 4));
    assert_eq!((pieces[1].kind, pieces[1].sectors), (Kind::Regular, 8));
    assert_eq!(
        (pieces[2].kind, pieces[2].end()),
        (Kind::Unmapped, u64::MAX)
    );
    let end: Vec<_> = map.pieces(u64::MAX - 4, u64::MAX).collect();
    assert_eq!(end.len(), 1);
    assert_eq!((end[0].kind, end[0].sectors), (Kind::Unmapped, 4));
    assert_eq!(map.pieces(5, 0).count(), 0);
}

fn inode(names: &[(u64, &str)]) -> Inode {
    let name = |&(parent, name): &(u64, &str)| Name {
        parent,
        name: name.as_bytes().into(),
    };
    Inode {
        names: names.iter().map(name).collect(),
        ..Inode::default()
    }
}

#[test]
fn paths_begin_at_the_root() {
    let inodes = HashMap::from([
        (2, inode(&[(2, "")])),
        (11, inode(&[(2, "dir")])),
        (12, inode(&[(11, "file"), (2, "link")])),
        (13, inode(&[])),
        (14, inode(&[(15, "a")])),
        (15, inode(&[(14, "b")])),
        (16, inode(&[(13, "lost"), (2, "found")])),
    ]);
    let map = Map::new(0, 8, vec![], inodes);
    let path = |number| {
        map.path(number)
            .map(|path| String::from_utf8(path).unwrap())
    };
    assert_eq!(path(2).as_deref(), Some("/"));
    assert_eq!(path(11).as_deref(), Some("/dir"));
    assert_eq!(path(12).as_deref(), Some("/dir/file"));
    assert_eq!(map.paths(12), [&b"/dir/file"[..], b"/link"]);
    assert_eq!((path(13), path(99)), (None, None));
    // Directories that form a circle have no path.
    assert_eq!((path(14), path(15)), (None, None));
    assert_eq!(path(16).as_deref(), Some("/found"));
}
