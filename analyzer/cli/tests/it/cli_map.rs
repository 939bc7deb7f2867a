// SPDX-License-Identifier: MIT OR Apache-2.0
//! `map`, and the map within `analyze` and `events`, on an image that mke2fs filled; compared with debugfs.

use crate::run;
use crate::scene;

use std::fs;
use std::path::{Path, PathBuf};

use mostrace_bundle::entry::Origin;
use mostrace_bundle::layout;
use mostrace_bundle::manifest::Snapshot;
use mostrace_bundle::sparse::SparseWriter;
use run::{json, mostrace};
use serde_json::Value;
use test_support::tool;

/// Makes 8 MiB of ext4 with 4 KiB blocks: `/dir/data` of 20,000 bytes and a name that is not text.
fn image(dir: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let tree = dir.join("tree");
    fs::create_dir_all(tree.join("dir")).unwrap();
    fs::write(tree.join("dir/data"), [7; 20_000]).unwrap();
    fs::write(
        tree.join(std::ffi::OsStr::from_bytes(b"odd\n\xff")),
        [8; 5000],
    )
    .unwrap();
    let image = dir.join("image");
    let mut make = tool::command("mke2fs");
    make.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-d"])
        .args([&tree, &image])
        .arg("8M");
    tool::run(&mut make);
    image
}

fn debugfs(image: &Path, request: &str) -> String {
    tool::text(tool::command("debugfs").args(["-R", request]).arg(image))
}

/// Returns first sector, inode and generation of `/dir/data` according to debugfs.
fn data(image: &Path) -> (u64, u64, u32) {
    let block: u64 = debugfs(image, "bmap /dir/data 0").trim().parse().unwrap();
    let stat = debugfs(image, "stat /dir/data");
    let after = |label: &str| -> u64 {
        let rest = stat.split(label).nth(1).unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    (block * 8, after("Inode:"), after("Generation:") as u32)
}

#[test]
fn the_map_is_as_debugfs_has_it() {
    let tmp = tempfile::tempdir().unwrap();
    let image = image(tmp.path());
    let (sector, inode, _) = data(&image);
    let path = image.to_str().unwrap();
    let csv = mostrace(&["map", path, "--format", "csv"]);
    assert_eq!(
        csv.lines().next(),
        Some("sector,sectors,class,kind,inode,file_offset,path")
    );
    let row = format!("{sector},40,data,regular,{inode},0,/dir/data");
    assert!(csv.lines().any(|line| line == row), "{row}\n{csv}");
    assert!(csv.contains(",/odd\\x0a\\xff\n"), "{csv}");
    let map = json(&["map", path, "--json"]);
    let pieces = map.as_array().unwrap().iter();
    let sectors: u64 = pieces.map(|r| r["sectors"].as_u64().unwrap()).sum();
    assert_eq!(sectors * 512, 8 << 20);

    let third = (sector + 17).to_string();
    let rows = json(&[
        "map", path, "--sector", &third, "--sector", "99999999", "--json",
    ]);
    assert_eq!(rows.as_array().unwrap().len(), 2);
    assert_eq!(
        (&rows[0]["sector"], &rows[0]["sectors"]),
        (&(sector + 17).into(), &1.into())
    );
    assert_eq!(
        (&rows[0]["path"], &rows[0]["file_offset"]),
        (&"/dir/data".into(), &8704.into())
    );
    assert_eq!(
        (&rows[1]["kind"], &rows[1]["path"]),
        (&"unmapped".into(), &Value::Null)
    );
    let moved = (sector + 2048).to_string();
    let rows = json(&[
        "map",
        path,
        "--start-sector",
        "2048",
        "--sector",
        &moved,
        "--json",
    ]);
    assert_eq!(rows[0]["path"], "/dir/data");
}

/// Saves a bundle whose snapshot is the image, `start` sectors into the disk.
fn bundle(dir: &Path, image: &Path, start: u64, mut scene: scene::Scene) -> String {
    let bytes = fs::read(image).unwrap();
    let size = bytes.len() as u64;
    scene.manifest.snapshot = Some(Snapshot {
        method: "test".into(),
        size,
        start_sector: start,
    });
    let folder = scene.save(dir);
    let mut snapshot = SparseWriter::new(Vec::new(), size).unwrap();
    snapshot.push(0, &bytes).unwrap();
    fs::write(folder.join(layout::SNAPSHOT), snapshot.finish().unwrap()).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn the_snapshot_names_what_no_probe_named() {
    let tmp = tempfile::tempdir().unwrap();
    let image = image(tmp.path());
    let (sector, inode, generation) = data(&image);
    let start = 2048;
    let mut s = scene::Scene::new();
    let at = sector + start;
    // The file is nameless, first with the snapshot's generation, then with another one.
    for generation in [generation, generation.wrapping_add(1)] {
        s.owned(scene::WRITE, at, 4096, scene::SQLITE, Origin::FILE);
        s.file(at, 4096, inode, 0, b"");
        let entry = s.files.last_mut().unwrap();
        entry[56..60].copy_from_slice(&generation.to_le_bytes());
    }
    // These come from the device's page cache: an inode table, and what is a file's block now.
    let table: u64 = {
        let stats = debugfs(&image, "stats");
        let rest = stats.split("inode table at ").nth(1).unwrap();
        rest.split(|c: char| !c.is_ascii_digit())
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    for sector in [table * 8 + start, at] {
        s.owned(scene::WRITE, sector, 4096, scene::KWORKER, Origin::BDEV);
    }
    let path = bundle(tmp.path(), &image, start, s);
    let rows = json(&["events", &path, "--json"]);
    let rows = rows.as_array().unwrap().iter();
    let found: Vec<_> = rows
        .map(|r| ["kind", "path", "provenance"].map(|c| r[c].as_str().unwrap_or("-")))
        .collect();
    assert_eq!(
        found,
        [
            ["regular", "/dir/data", "snapshot"],
            ["regular", "-", "unknown"],
            ["inode_table", "-", "layout"],
            ["free", "-", "unknown"],
        ]
    );
    // The bundle's own map and the image's agree.
    let row = json(&["map", &path, "--sector", &at.to_string(), "--json"]);
    assert_eq!(row[0]["path"], "/dir/data");
    let bare = tmp.path().join("scene.most/trace.blktrace.0");
    let image = image.to_str().unwrap();
    let args = [
        "events",
        bare.to_str().unwrap(),
        "--image",
        image,
        "--start-sector",
        "2048",
    ];
    let rows = json(&[&args[..], &["--json"]].concat());
    assert_eq!(rows[0]["path"], "/dir/data");
    let rows = json(&["events", &path, "--no-map", "--json"]);
    assert_eq!(
        (&rows[0]["path"], &rows[2]["kind"]),
        (&Value::Null, &"unmapped".into())
    );
}
