// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged and unusual FAT volumes: each gives one notice and costs no more than the damaged part.

use crate::fat::images;
use crate::fat::volume;

use std::collections::BTreeMap;

use mostrace_map::class::Kind;
use mostrace_map::{Extent, Map};
use test_support::{Suite, at_once, tests};
use volume::{FAT12, FAT16, FAT32, Volume};

pub fn suite() -> Suite {
    at_once(tests![
        a_chain_that_goes_back_to_itself needs images::TOOLS,
        the_first_of_two_owners_keeps_a_cluster needs images::TOOLS,
        chains_that_leave_what_is_in_use needs images::TOOLS,
        bad_clusters_are_unmapped needs images::TOOLS,
        lost_chains_are_counted_as_fsck_counts_them needs images::TOOLS,
        a_size_that_is_not_the_chains needs images::TOOLS,
        fats_that_differ needs images::TOOLS,
        a_volume_in_use_says_so needs images::TOOLS,
        a_directory_with_two_parents_is_read_once needs images::TOOLS,
        odd_entries needs images::TOOLS,
        a_deleted_file_keeps_its_first_cluster_unless_others_had_it needs images::TOOLS,
    ])
}

/// The entry that ends a chain, at every width.
const END: u32 = 0x0fff_ffff;
const BAD: u32 = 0x0fff_fff7;

/// A sound volume, and the inodes of its files.
struct Sound {
    volume: Volume,
    map: Map,
    /// The inode of each path.
    inodes: BTreeMap<String, u64>,
}

impl Sound {
    fn new(volume: Volume) -> Sound {
        let map = volume.build().expect("map");
        assert_eq!(map.notices(), [""; 0]);
        let owners = map.extents().iter().filter(|extent| extent.inode != 0);
        let inodes = owners.filter_map(|extent| {
            let path = map.path(extent.inode)?;
            Some((String::from_utf8(path).ok()?, extent.inode))
        });
        let inodes = inodes.collect();
        Sound {
            volume,
            map,
            inodes,
        }
    }

    fn inode(&self, path: &str) -> u64 {
        let inode = self.inodes.get(path);
        *inode.unwrap_or_else(|| panic!("{path}: {:?}", self.inodes))
    }

    fn clusters(&self, path: &str) -> Vec<u32> {
        let inode = self.inode(path);
        let mine = self
            .map
            .extents()
            .iter()
            .filter(|extent| extent.inode == inode);
        let sectors = mine.flat_map(|extent| extent.sector..extent.end());
        sectors
            .map(|sector| self.volume.cluster_at(sector))
            .collect()
    }
}

/// Runs a test for all three widths.
fn on_each(test: impl Fn(Sound)) {
    for kind in [FAT12, FAT16, FAT32] {
        test(Sound::new(Volume::new(kind)));
    }
}

/// Builds the map of a damaged volume. It must cover the same sectors as before and have exactly these notices.
fn damaged(before: &Sound, volume: &Volume, notices: &[String]) -> Map {
    let map = volume.build().expect("map");
    assert_eq!(map.notices(), notices);
    assert_eq!(volume::conserves(&map), Ok(()));
    let ends = |map: &Map| {
        (
            map.extents()[0].sector,
            map.extents().last().map(Extent::end),
        )
    };
    assert_eq!(ends(&map), ends(&before.map));
    map
}

/// Returns the number of sectors that an inode (0 for none) has of one kind.
fn sectors(map: &Map, inode: u64, kind: Kind) -> u64 {
    let mine = map
        .extents()
        .iter()
        .filter(|e| (e.inode, e.kind) == (inode, kind));
    mine.map(|extent| extent.sectors).sum()
}

fn a_chain_that_goes_back_to_itself() {
    on_each(|sound| {
        let (inode, clusters) = (sound.inode("/a"), sound.clusters("/a"));
        let mut volume = sound.volume.clone();
        volume.set(clusters[4], clusters[1]);
        let back = clusters[1];
        let says = format!("inode {inode}: its chain goes back to its cluster {back}");
        let map = damaged(&sound, &volume, &[says]);
        assert_eq!(map.extents(), sound.map.extents());
        volume.set(clusters[0], clusters[0]);
        let says = [
            "clusters in use, but by no file: 4, chains of them: 1".into(),
            format!(
                "inode {inode}: its chain goes back to its cluster {}",
                clusters[0]
            ),
        ];
        let map = damaged(&sound, &volume, &says);
        assert_eq!(sectors(&map, inode, Kind::Regular), 1);
        assert_eq!(
            sectors(&map, 0, Kind::Unmapped),
            4 + sectors(&sound.map, 0, Kind::Unmapped)
        );
    });
}

fn the_first_of_two_owners_keeps_a_cluster() {
    on_each(|sound| {
        let (a, b) = (sound.clusters("/a"), sound.clusters("/b"));
        let inode = sound.inode("/b");
        let mut volume = sound.volume.clone();
        volume.set(b[1], a[2]);
        let says = [
            "clusters in use, but by no file: 1, chains of them: 1".into(),
            format!(
                "inode {inode}: its chain continues with cluster {}, which belongs to another file",
                a[2]
            ),
        ];
        let map = damaged(&sound, &volume, &says);
        assert_eq!(sectors(&map, inode, Kind::Regular), 2);
        assert_eq!(sectors(&map, sound.inode("/a"), Kind::Regular), 5);
    });
}

fn chains_that_leave_what_is_in_use() {
    on_each(|sound| {
        let (inode, b) = (sound.inode("/b"), sound.clusters("/b"));
        let free = 100;
        let lost = "clusters in use, but by no file: 1, chains of them: 1".to_owned();
        for (value, what) in [
            (
                free,
                format!("continues with cluster {free}, which is free"),
            ),
            (1, "continues with cluster 1, which does not exist".into()),
            (
                0xff5,
                "continues with cluster 4085, which does not exist".into(),
            ),
        ] {
            if value == 0xff5 && sound.volume.bits != 12 {
                continue;
            }
            let mut volume = sound.volume.clone();
            volume.set(b[1], value);
            let says = [lost.clone(), format!("inode {inode}: its chain {what}")];
            let map = damaged(&sound, &volume, &says);
            assert_eq!(sectors(&map, inode, Kind::Regular), 2);
            // The same with the file's first cluster.
            let mut volume = sound.volume.clone();
            let start = volume.entry(inode) + 26;
            volume.patch(start, &(value as u16).to_le_bytes());
            let lost = "clusters in use, but by no file: 3, chains of them: 1".to_owned();
            let says = [lost, format!("inode {inode}: its chain {what}")];
            let map = damaged(&sound, &volume, &says);
            assert_eq!(sectors(&map, inode, Kind::Regular), 0);
            assert_eq!(map.path(inode).as_deref(), Some(&b"/b"[..]));
        }
        // The FAT marks the last cluster as free, and the FAT decides.
        let mut volume = sound.volume.clone();
        volume.set(b[2], 0);
        let what = format!("continues with cluster {}, which is free", b[2]);
        let map = damaged(
            &sound,
            &volume,
            &[format!("inode {inode}: its chain {what}")],
        );
        let at = sound.volume.byte_of(b[2]) as u64 / 512;
        assert_eq!(
            map.pieces(at, 1).next().map(|e| (e.kind, e.inode)),
            Some((Kind::Free, 0))
        );
    });
}

fn bad_clusters_are_unmapped() {
    on_each(|sound| {
        let mut volume = sound.volume.clone();
        [200, 201, 210]
            .iter()
            .for_each(|&cluster| volume.set(cluster, BAD));
        let map = damaged(&sound, &volume, &["bad clusters: 3".into()]);
        let unmapped = sectors(&sound.map, 0, Kind::Unmapped) + 3;
        assert_eq!(sectors(&map, 0, Kind::Unmapped), unmapped);
        // In a chain, Linux takes a bad cluster for the end.
        let (inode, b) = (sound.inode("/b"), sound.clusters("/b"));
        volume.set(b[2], BAD);
        let what = format!("its chain ends with cluster {}, which is bad", b[2]);
        let says = ["bad clusters: 3".into(), format!("inode {inode}: {what}")];
        let map = damaged(&sound, &volume, &says);
        assert_eq!(sectors(&map, inode, Kind::Regular), 3);
    });
}

fn lost_chains_are_counted_as_fsck_counts_them() {
    on_each(|sound| {
        let mut volume = sound.volume.clone();
        // Two chains of which one joins the other, one on its own, and a circle.
        let next = [(300, 301), (301, 302), (302, END), (310, 301), (320, END)];
        let circle = [(330, 331), (331, 332), (332, 330)];
        next.iter()
            .chain(&circle)
            .for_each(|&(from, to)| volume.set(from, to));
        let says = "clusters in use, but by no file: 8, chains of them: 4";
        let map = damaged(&sound, &volume, &[says.into()]);
        let unmapped = sectors(&sound.map, 0, Kind::Unmapped) + 8;
        assert_eq!(sectors(&map, 0, Kind::Unmapped), unmapped);

        let scratch = tempfile::tempdir().expect("scratch folder");
        let image = scratch.path().join("image");
        volume.write(&image);
        let fsck = images::tool("fsck.vfat").arg("-n").arg(&image).output();
        let said = String::from_utf8_lossy(&fsck.expect("fsck.vfat").stdout).into_owned();
        assert!(
            said.contains("Reclaimed 8 unused clusters (4096 bytes)"),
            "{said}"
        );
    });
}

fn a_size_that_is_not_the_chains() {
    on_each(|sound| {
        let inode = sound.inode("/b");
        for (size, clusters) in [(0u32, 0), (512, 1), (1537, 4), (u32::MAX, 8_388_608)] {
            let mut volume = sound.volume.clone();
            let at = volume.entry(inode) + 28;
            volume.patch(at, &size.to_le_bytes());
            let what = format!("its size and its chain differ: {clusters} and 3 clusters");
            let map = damaged(&sound, &volume, &[format!("inode {inode}: {what}")]);
            assert_eq!(map.extents(), sound.map.extents());
        }
        let mut volume = sound.volume.clone();
        let at = volume.entry(inode) + 26;
        volume.patch(at, &[0, 0]);
        let says = [
            "clusters in use, but by no file: 3, chains of them: 1".into(),
            format!("inode {inode}: its size and its chain differ: 3 and 0 clusters"),
        ];
        damaged(&sound, &volume, &says);
    });
}

fn fats_that_differ() {
    on_each(|sound| {
        let mut volume = sound.volume.clone();
        volume.set_in(1, 50, END);
        volume.set_in(1, 61, 60);
        let says = "FAT 1 is not as FAT 0, which is used: clusters that differ: 2, the first: 50";
        let map = damaged(&sound, &volume, &[says.into()]);
        assert_eq!(map.extents(), sound.map.extents());
        if volume.bits < 32 {
            return;
        }
        // BPB_ExtFlags: no mirroring, FAT 1 is active. The boot record's backup says the same.
        for boot in [0, 6 * 512] {
            volume.patch(boot + 40, &[0x81, 0]);
        }
        let active = "FAT 1 is the active one (BPB_ExtFlags) and is used; Linux reads FAT 0";
        let differ = "FAT 0 is not as FAT 1, which is used: clusters that differ: 2, the first: 50";
        let lost = "clusters in use, but by no file: 2, chains of them: 2";
        damaged(&sound, &volume, &[active, differ, lost].map(String::from));
        for boot in [0, 6 * 512] {
            volume.patch(boot + 40, &[0x82, 0]);
        }
        let active = "FAT 2 is the active one (BPB_ExtFlags), but there is none; FAT 0 is used";
        damaged(&sound, &volume, &[active, says].map(String::from));
    });
}

fn a_volume_in_use_says_so() {
    on_each(|sound| {
        let mut volume = sound.volume.clone();
        let state = volume.state();
        volume.bytes[state] |= 1;
        let dirty = "the volume is marked as in use, or as not cleanly unmounted".to_owned();
        let map = damaged(&sound, &volume, std::slice::from_ref(&dirty));
        assert_eq!(map.extents(), sound.map.extents());
        if volume.bits > 12 {
            volume.set(
                1,
                if volume.bits == 16 {
                    0x3fff
                } else {
                    0x03ff_ffff
                },
            );
            let says = [
                dirty,
                "the FAT says that the volume was not cleanly unmounted".into(),
                "the FAT says that the disk had errors".into(),
            ];
            damaged(&sound, &volume, &says);
        }
    });
}

fn a_directory_with_two_parents_is_read_once() {
    on_each(|sound| {
        let (dir, sub, inode) = (
            sound.inode("/dir"),
            sound.inode("/dir/sub"),
            sound.inode("/b"),
        );
        // `/dir/sub` starts with the cluster of `/dir`: a circle of directories.
        let mut volume = sound.volume.clone();
        let start = |path: &str| (sound.clusters(path)[0] as u16).to_le_bytes();
        let at = volume.entry(sub) + 26;
        volume.patch(at, &start("/dir"));
        let says = [
            "clusters in use, but by no file: 2, chains of them: 2".into(),
            format!("inode {sub}: the directory that inode {dir} is already"),
        ];
        let map = damaged(&sound, &volume, &says);
        assert_eq!(map.path(sub).as_deref(), Some(&b"/dir/sub"[..]));
        // The file becomes a directory that begins with another file's cluster.
        let mut volume = sound.volume.clone();
        let at = volume.entry(inode);
        volume.patch(at + 11, &[0x10]);
        volume.patch(at + 26, &start("/a"));
        let what = format!(
            "continues with cluster {}, which belongs to another file",
            sound.clusters("/a")[0]
        );
        let says = [
            "clusters in use, but by no file: 3, chains of them: 1".into(),
            format!("inode {inode}: its chain {what}"),
        ];
        damaged(&sound, &volume, &says);
        volume.patch(at + 26, &[0, 0]);
        let says = [
            "clusters in use, but by no file: 3, chains of them: 1".into(),
            format!("inode {inode}: a directory without a cluster"),
        ];
        damaged(&sound, &volume, &says);
    });
}

fn odd_entries() {
    on_each(|sound| {
        let (dir, c) = (sound.inode("/dir"), sound.inode("/dir/c"));
        let mut volume = sound.volume.clone();
        // `.` and `..` come first: an end mark ahead of them hides the rest from every system but Linux.
        let at = volume.entry(c) / 512 * 512;
        volume.patch(at, &[0]);
        let says = "a directory with entries after its end, which Linux alone shows";
        let map = damaged(&sound, &volume, &[format!("inode {dir}: {says}")]);
        assert_eq!(map.extents(), sound.map.extents());
        // The name is all spaces, which Linux does not show.
        let mut volume = sound.volume.clone();
        let at = volume.entry(c);
        volume.patch(at, &[b' '; 11]);
        let says = [
            "clusters in use, but by no file: 2, chains of them: 1".into(),
            format!("inode {c}: an entry of inode {dir} without a name"),
        ];
        damaged(&sound, &volume, &says);
        // A label is not a file, whatever it holds; nor are `.` and `..`, wherever they are.
        for (at_11, name) in [
            (0x08, b"LABEL      "),
            (0x10, b".          "),
            (0, b"..         "),
        ] {
            volume.patch(at, name);
            volume.patch(at + 11, &[at_11]);
            let map = damaged(&sound, &volume, &says[..1]);
            assert_eq!(map.inode(c), None);
        }
        // A name cannot contain a slash.
        let mut volume = sound.volume.clone();
        volume.patch(at, b"A/B");
        volume.patch(at + 12, &[0]);
        let map = damaged(&sound, &volume, &[]);
        assert_eq!(map.path(c).as_deref(), Some(&b"/dir/A:002fB"[..]));
    });
}

fn a_deleted_file_keeps_its_first_cluster_unless_others_had_it() {
    on_each(|sound| {
        let gone = sound.inode("/?one");
        assert_eq!(sectors(&sound.map, gone, Kind::Free), 1);
        assert!(sound.map.inode(gone).is_some_and(|inode| inode.deleted));
        let cluster = sound.clusters("/?one")[0];
        let mut volume = sound.volume.clone();
        volume.set(cluster, END);
        let lost = "clusters in use, but by no file: 1, chains of them: 1".to_owned();
        let map = damaged(&sound, &volume, &[lost]);
        assert_eq!(sectors(&map, gone, Kind::Free), 0);
        // A file's chain continues with the cluster, though the FAT says that it is free.
        let mut volume = sound.volume.clone();
        volume.set(sound.clusters("/b")[2], cluster);
        let what = format!("its chain continues with cluster {cluster}, which is free");
        let map = damaged(
            &sound,
            &volume,
            &[format!("inode {}: {what}", sound.inode("/b"))],
        );
        assert_eq!(sectors(&map, gone, Kind::Free), 0);
        // Another deleted file had the cluster too, so its last owner is not known.
        let mut volume = sound.volume.clone();
        let entry = volume.entry(gone);
        let twin = volume.bytes[entry..entry + 32].to_vec();
        volume.patch(entry + 32, &twin);
        let map = damaged(&sound, &volume, &[]);
        assert_eq!(sectors(&map, gone, Kind::Free), 0);
        assert!(map.inode(gone + 1).is_some_and(|inode| inode.deleted));
        // Behind the directory's end mark the entry is no longer used.
        volume.patch(entry, &[0; 32]);
        let map = damaged(&sound, &volume, &[]);
        assert_eq!((map.inode(gone), map.inode(gone + 1)), (None, None));
    });
}
