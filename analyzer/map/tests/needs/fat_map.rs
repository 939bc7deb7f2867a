// SPDX-License-Identifier: MIT OR Apache-2.0
//! The FAT map compared with mshowfat, mdir, fsck.vfat, and The Sleuth Kit's fiwalk, istat, ifind and fsstat: every
//! cluster and every name of every image.

use crate::fat::images;
use crate::fat::oracles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mostrace_map::class::Kind;
use mostrace_map::fs::{self, Image};
use mostrace_map::{Extent, Map};
use oracles::{Layout, Object};
use test_support::{Need, Suite, Test, at_once, tests};

pub fn suite() -> Suite {
    let mut all = tests![
        ten_thousand_files needs images::TOOLS,
        exfat_is_refused_by_name needs [Need::Tool("mkfs.exfat", "exfatprogs")],
    ];
    all.extend(CASES.map(|(name, options, kib)| {
        Test::new(name, &images::TOOLS, move || check(name, options, kib))
    }));
    at_once(all)
}

/// The first sector of the partition for which the images stand.
const START: u64 = 2048;

macro_rules! cases {
    ($($name:ident: $options:literal, $kib:literal KiB;)+) => {
        [$((stringify!($name), $options, $kib)),+]
    };
}

// mtools and The Sleuth Kit do not accept a FAT32 with less than 65525 clusters: see fat_damage.rs.
/// The images: name, options of mkfs.vfat, size in KiB.
const CASES: [(&str, &str, u64); 15] = cases! {
    fat12_floppy:  "-F 12", 1440 KiB;
    fat12_512:     "-F 12 -S 512 -s 4", 7000 KiB;
    fat12_1024:    "-F 12 -S 1024 -s 1 -f 1", 3500 KiB;
    fat12_2048:    "-F 12 -S 2048 -s 2", 12000 KiB;
    fat12_4096:    "-F 12 -S 4096 -s 1", 12000 KiB;
    fat16_512:     "-F 16 -S 512 -s 1", 4096 KiB;
    fat16_f1:      "-F 16 -S 512 -s 16 -f 1", 50000 KiB;
    fat16_1024:    "-F 16 -S 1024 -s 2 -r 1024", 20000 KiB;
    fat16_2048:    "-F 16 -S 2048 -s 1", 10000 KiB;
    fat16_4096:    "-F 16 -S 4096 -s 2", 60000 KiB;
    fat32_512:     "-F 32 -S 512 -s 1", 40000 KiB;
    fat32_f1:      "-F 32 -S 512 -s 2 -f 1 -b 7 -R 40", 70000 KiB;
    fat32_1024:    "-F 32 -S 1024 -s 1", 70000 KiB;
    fat32_2048:    "-F 32 -S 2048 -s 1", 140000 KiB;
    fat32_4096:    "-F 32 -S 4096 -s 1", 280000 KiB;
};

/// Makes one image and compares its map with the output of all tools.
fn check(name: &'static str, options: &str, kib: u64) {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = scratch.path().join("image");
    images::mkfs(&image, options, kib);
    images::fill(&image, scratch.path());
    let case = Case::new(name, image);
    case.layout();
    case.files();
    case.deleted();
    case.mtools(1);
    case.single_sectors();
    let large = case.objects.iter().find(|object| object.path == "large");
    let large = case.layout.i_pos(large.expect("large").inode);
    assert!(case.extents_of(large).len() > 4, "{name}: not in pieces");
}

fn ten_thousand_files() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let (image, tree) = (scratch.path().join("image"), scratch.path().join("tree"));
    for dir in 0..100 {
        let dir = tree.join(format!("directory number {dir}"));
        std::fs::create_dir_all(&dir).expect("directory");
        for n in 0..100 {
            let path = dir.join(format!("file number {n} of many.dat"));
            std::fs::write(path, vec![b'x'; n % 4 * 600]).expect("file");
        }
    }
    images::mkfs(&image, "-F 32 -S 512 -s 1", 40_000);
    images::copy(&image, &[&tree], "/");
    let case = Case::new("ten_thousand_files", image);
    assert_eq!(case.objects.len(), 10_101);
    case.layout();
    case.files();
    case.mtools(10);
}

fn exfat_is_refused_by_name() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = &scratch.path().join("image");
    let file = std::fs::File::create(image).expect("image");
    file.set_len(8 << 20).expect("length");
    images::run(images::tool("mkfs.exfat").arg(image));
    let error = fs::build(&Image::open(image).expect("open"), 0).expect_err("exFAT");
    let says = "boot record: not supported: exFAT: ext4, ext3, ext2, f2fs and FAT can be mapped";
    assert_eq!(error.to_string(), format!("{}: {says}", image.display()));
}

/// An image, its map, and what The Sleuth Kit found in it.
struct Case {
    name: &'static str,
    image: PathBuf,
    map: Map,
    layout: Layout,
    objects: Vec<Object>,
    /// The extents of each inode.
    extents: BTreeMap<u64, Vec<Extent>>,
}

impl Case {
    fn new(name: &'static str, image: PathBuf) -> Case {
        let map = fs::build(&Image::open(&image).expect("open"), START);
        let map = map.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(map.notices(), [""; 0], "{name}");
        let mut extents: BTreeMap<u64, Vec<Extent>> = BTreeMap::new();
        for extent in map.extents() {
            extents.entry(extent.inode).or_default().push(*extent);
        }
        Case {
            name,
            layout: Layout::new(&image),
            objects: oracles::fiwalk(&image),
            image,
            map,
            extents,
        }
    }

    fn extents_of(&self, inode: u64) -> &[Extent] {
        self.extents.get(&inode).map_or(&[], Vec::as_slice)
    }

    /// Returns the clusters of a file or directory in order; it must have no holes.
    fn clusters_of(&self, inode: u64) -> Vec<u64> {
        let size = self.layout.cluster_size;
        let mut clusters: BTreeMap<u64, u64> = BTreeMap::new();
        for extent in self.extents_of(inode) {
            let sector = (extent.sector - START) * 512 / self.layout.sector_size;
            assert_eq!(extent.sectors * 512 % size, 0, "{extent:?}");
            let first = extent.file_offset.expect("offset") / size;
            let cluster = self.layout.cluster_of(sector);
            let count = extent.sectors * 512 / size;
            clusters.extend((0..count).map(|n| (first + n, cluster + n)));
        }
        let places: Vec<u64> = clusters.keys().copied().collect();
        let all: Vec<u64> = (0..clusters.len() as u64).collect();
        assert_eq!(places, all, "{}: inode {inode}", self.name);
        clusters.into_values().collect()
    }

    /// Returns the kind of one of the filesystem's sectors, which must have only one.
    fn kind_of(&self, sector: u64) -> Kind {
        let units = self.layout.sector_size / 512;
        let pieces: Vec<Extent> = self.map.pieces(START + sector * units, units).collect();
        let kinds: BTreeSet<_> = pieces.iter().map(|piece| piece.kind).collect();
        assert_eq!(kinds.len(), 1, "{}: {sector}: {pieces:?}", self.name);
        pieces[0].kind
    }

    /// Every sector of the layout must have the kind that follows from fsstat's ranges.
    fn layout(&self) {
        let Case { name, layout, .. } = self;
        let units = layout.sector_size / 512;
        let last = self.map.extents().last().expect("extents");
        let end = (layout.total.end() + 1) * units;
        assert_eq!(last.end() - START, end, "{name}");
        let copy = layout.backup.map(|backup| backup + 1);
        for sector in layout.reserved.clone() {
            let hints = Some(sector) == layout.fsinfo || Some(sector) == copy;
            let kind = [Kind::BootRecord, Kind::Fsinfo][usize::from(hints)];
            assert_eq!(self.kind_of(sector), kind, "{name}: sector {sector}");
        }
        for sector in layout.fats.iter().cloned().flatten() {
            assert_eq!(self.kind_of(sector), Kind::Fat, "{name}: sector {sector}");
        }
        if let Some(root) = &layout.root {
            let [extent] = self.extents_of(1) else {
                panic!("{name}: {:?}", self.extents_of(1));
            };
            let sectors = root.start() * units..(root.end() + 1) * units;
            assert_eq!(extent.sector - START..extent.end() - START, sectors);
            let known = (extent.kind, extent.file_offset);
            assert_eq!(known, (Kind::Directory, Some(0)), "{name}");
        }
        for sector in layout.clusters.end() + 1..layout.total.end() + 1 {
            assert_eq!(self.kind_of(sector), Kind::Unmapped, "{name}: {sector}");
        }
        let (used, all) = oracles::fsck(&self.image);
        let data = layout.clusters.start() * units..(layout.clusters.end() + 1) * units;
        let pieces = self.map.pieces(START + data.start, data.end - data.start);
        let mut sectors = BTreeMap::new();
        pieces.for_each(|piece| *sectors.entry(piece.kind).or_insert(0) += piece.sectors);
        let mut clusters = |kind| sectors.remove(&kind).unwrap_or(0) * 512 / layout.cluster_size;
        let ours = clusters(Kind::Regular) + clusters(Kind::Directory);
        assert_eq!((ours, clusters(Kind::Free)), (used, all - used), "{name}");
        assert_eq!(sectors, BTreeMap::new(), "{name}");
    }

    /// Every file and directory that fiwalk finds must be in the map, with its name and clusters, and there must be no
    /// others.
    fn files(&self) {
        let Case { name, layout, .. } = self;
        let there = || self.objects.iter().filter(|object| !object.deleted);
        for object in there() {
            let inode = layout.i_pos(object.inode);
            let path = self.map.path(inode);
            let path = path.unwrap_or_else(|| panic!("{name}: {object:?}"));
            let path = String::from_utf8(path).expect("UTF-8");
            let theirs = format!("/{}", object.path);
            assert_eq!(as_tsk(&path, &object.path), theirs, "{name}");
            let known = self.map.inode(inode).expect("inode");
            assert_eq!((known.names.len(), known.deleted), (1, false), "{name}");
            assert_eq!(known.names[0].parent, layout.i_pos(object.parent), "{name}");
            let kind = [Kind::Regular, Kind::Directory][usize::from(object.directory)];
            let ours = self.extents_of(inode);
            assert!(ours.iter().all(|extent| extent.kind == kind), "{object:?}");
            let ours = self.clusters_of(inode);
            // In this case the entry of cluster 2730 lies in two sectors, and The Sleuth Kit reads a wrong one.
            let astray = layout.kind == "FAT12" && layout.sector_size == 4096;
            if !(astray && ours.contains(&2730) && object.path == "rest") {
                let theirs = object.runs.iter().flat_map(|(_, byte, length)| {
                    let first = layout.cluster_of(byte / layout.sector_size);
                    first..first + length.div_ceil(layout.cluster_size)
                });
                assert_eq!(ours, theirs.collect::<Vec<_>>(), "{name}: {object:?}");
            }
        }
        let theirs: BTreeSet<u64> = there().map(|o| layout.i_pos(o.inode)).collect();
        for (inode, extents) in &self.extents {
            let mine = extents.iter().all(|extent| extent.kind == Kind::Free);
            let known = *inode < 2 || mine || theirs.contains(inode);
            assert!(known, "{name}: inode {inode}");
        }
        assert!(theirs.len() > 100, "{name}: {} files", theirs.len());
    }

    /// Deleted entries must be the same as fiwalk's, except in deleted directories, whose clusters may belong to
    /// anybody.
    fn deleted(&self) {
        let Case { name, layout, .. } = self;
        let deleted = || self.objects.iter().filter(|object| object.deleted);
        let numbers: BTreeSet<u64> = deleted().map(|object| object.inode).collect();
        let (mut whole, mut kept) = (0, 0);
        for object in deleted() {
            let inode = layout.i_pos(object.inode);
            let Some(known) = self.map.inode(inode) else {
                assert!(numbers.contains(&object.parent), "{name}: {object:?}");
                continue;
            };
            assert!(known.deleted, "{name}: {object:?}");
            assert_eq!(known.names[0].parent, layout.i_pos(object.parent), "{name}");
            let ours = std::str::from_utf8(&known.names[0].name).expect("UTF-8");
            let theirs = object.path.rsplit('/').next().expect("name");
            let shown = as_tsk(ours, theirs);
            if theirs.encode_utf16().count() % 13 == 0 {
                // Nothing shows that the name is whole, but its first letter is known.
                assert!(ours.len() <= 12 && ours.is_ascii(), "{name}: {ours}");
                if theirs.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                    assert_eq!(ours[..1], theirs[..1].to_uppercase(), "{name}: {object:?}");
                }
            } else if let Some(rest) = theirs.strip_prefix('_') {
                assert_eq!(shown, format!("?{rest}"), "{name}: {object:?}");
            } else {
                assert_eq!(shown, theirs, "{name}: {object:?}");
                whole += 1;
            }
            // The map has the first of its clusters, if no other file has or had it.
            let first = object.runs.first().map(|run| START + run.1 / 512);
            match *self.extents_of(inode) {
                [] => {}
                [extent] => {
                    let is = (extent.kind, extent.file_offset, extent.sectors * 512);
                    assert_eq!(is, (Kind::Free, None, layout.cluster_size), "{name}");
                    assert_eq!(first, Some(extent.sector), "{name}: {object:?}");
                    kept += 1;
                }
                ref extents => panic!("{name}: {object:?}: {extents:?}"),
            }
        }
        assert!(
            whole > 5 && kept > 10,
            "{name}: {whole} names, {kept} clusters"
        );
    }

    /// The names must be mdir's, and the clusters of every `step`th file mshowfat's.
    fn mtools(&self, step: usize) {
        let Case { name, layout, .. } = self;
        let mut ours = BTreeMap::new();
        for object in self.objects.iter().filter(|object| !object.deleted) {
            let inode = layout.i_pos(object.inode);
            let path = self.map.path(inode).expect("path");
            let path = String::from_utf8(path).expect("UTF-8");
            let slash = if object.directory { "/" } else { "" };
            ours.insert(format!("{}{slash}", &path[1..]), inode);
        }
        // Linux converts the code page's capitals to small letters (`charset2lower`), mdir only those of ASCII.
        let theirs = oracles::mdir(&self.image).into_iter();
        let theirs: BTreeSet<String> = theirs.map(|p| p.replace("grÖße", "größe")).collect();
        let names: BTreeSet<String> = ours.keys().cloned().collect();
        let differ: Vec<_> = names.symmetric_difference(&theirs).collect();
        assert_eq!(differ, [""; 0], "{name}");

        // Brackets are wildcards.
        let plain = ours
            .into_iter()
            .filter(|(path, _)| !path.contains(['[', 'ö']));
        let paths: BTreeMap<String, u64> = plain
            .step_by(step)
            .map(|(path, inode)| (path.trim_end_matches('/').to_owned(), inode))
            .collect();
        let names: Vec<String> = paths.keys().cloned().collect();
        let clusters = oracles::mshowfat(&self.image, &names);
        for (path, &inode) in &paths {
            let theirs = clusters.get(path);
            let theirs = theirs.unwrap_or_else(|| panic!("{name}: mshowfat lacks {path}"));
            assert_eq!(&self.clusters_of(inode), theirs, "{name}: {path}");
        }
        if layout.root.is_none() {
            let root = oracles::mshowfat(&self.image, &["".into()]);
            assert_eq!(Some(&self.clusters_of(1)), root.get(""), "{name}: root");
        }
    }

    /// Compares the sectors of some inodes with istat, and the inodes of some sectors with ifind.
    fn single_sectors(&self) {
        let Case { name, layout, .. } = self;
        let per_cluster = layout.cluster_size / layout.sector_size;
        let there = self.objects.iter().filter(|object| !object.deleted);
        let sizes = there.map(|object| (layout.i_pos(object.inode), object));
        let objects: BTreeMap<u64, &Object> = sizes.collect();
        let some = objects
            .iter()
            .filter(|(_, o)| o.size > 0 && o.path != "rest");
        for (&inode, object) in some.step_by(17) {
            // istat prints 0 for sectors beyond the end of the file.
            let needed = object.size.div_ceil(layout.sector_size) as usize;
            let first = |cluster| layout.clusters.start() + (cluster - 2) * per_cluster;
            let clusters = self.clusters_of(inode).into_iter();
            let ours = clusters.flat_map(|cluster| first(cluster)..first(cluster) + per_cluster);
            let ours: Vec<u64> = ours.take(needed).collect();
            let theirs = oracles::istat(&self.image, object.inode);
            assert_eq!(ours, theirs[..needed], "{name}: {object:?}");
        }
        let sectors = layout.clusters.end() - layout.clusters.start();
        for n in 0..12 {
            // The first clusters are the most fragmented.
            let sector = layout.clusters.start() + sectors * n * n / 144;
            let at = START + sector * layout.sector_size / 512;
            let piece = self.map.pieces(at, 1).next().expect("piece");
            let Some(object) = objects.get(&piece.inode).filter(|o| o.path != "rest") else {
                continue;
            };
            // ifind finds no owner for sectors beyond the end of the file.
            if piece.file_offset.is_some_and(|offset| offset < object.size) {
                let theirs = oracles::ifind(&self.image, sector);
                assert_eq!(Some(object.inode), theirs, "{name}: sector {sector}");
            }
        }
    }
}

/// Converts a path to The Sleuth Kit's form. It knows no code page and shows every non-ASCII character of a short name
/// as `^`; and it drops the last slot of the longest names. mdir handles both.
fn as_tsk(ours: &str, theirs: &str) -> String {
    let veil = |c: char| if c.is_ascii() { c } else { '^' };
    let length = |path: &str| path.rsplit('/').next().map_or(0, str::len);
    let cut = length(ours).saturating_sub(19 * 13);
    match theirs {
        _ if theirs.contains('^') => ours.chars().map(veil).collect(),
        _ if length(theirs) == 19 * 13 => ours[..ours.len() - cut].to_owned(),
        _ => ours.to_owned(),
    }
}
