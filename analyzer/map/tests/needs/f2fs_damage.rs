// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random damage of f2fs images gives one clear error or a map that covers the filesystem, never a panic or a hang.

use crate::f2fs::edit;
use crate::f2fs::images;

use edit::*;
use images::*;
use mostrace_map::Map;
use mostrace_map::class::Kind;
use proptest::prelude::*;
use test_support::{Need, Suite, at_once, property, tests};

pub fn suite() -> Suite {
    at_once(tests![
        flipped_bytes needs TOOLS,
        flipped_bytes_ten_thousand_times needs [&TOOLS[..], &[Need::Minutes]].concat(),
    ])
}

/// An image, and the non-zero blocks that the walker reads.
struct Target {
    image: Sparse,
    metadata: Vec<u64>,
    uuid: Vec<u8>,
}

fn targets() -> Vec<Target> {
    let chain = |editor: &mut Editor, before: &Map| {
        let ino = inode_at(before, b"/many") as u32;
        let block = editor.node(ino.into());
        let data = editor.free_blocks(2);
        let new = |nid, ino, ofs, marks, block| New {
            nid,
            ino,
            ofs,
            marks,
            block,
        };
        editor.write_chain(&[
            new(900, 900, 0, FSYNC | DENT, regular_inode(3, b"fresh", &data)),
            new(901, 900, 1, FSYNC, node_of(&[(0, data[1])])),
            new(ino, ino, 0, FSYNC, block),
        ]);
    };
    let mut targets = Vec::new();
    for options in ["", "-O extra_attr,inode_checksum", ALL_FEATURES, "-i -s 2"] {
        let (mut editor, before) = editor(options);
        if !options.contains("extra_attr") {
            chain(&mut editor, &before);
        }
        let image = editor.image;
        let of_file = [Kind::Regular, Kind::Symlink, Kind::Quota, Kind::Ssa];
        let is_metadata = |nth: &u64| {
            let piece = before.pieces(nth * 8, 1).next().expect("piece");
            !of_file.contains(&piece.kind)
        };
        let mut metadata: Vec<u64> = image.used().into_iter().filter(is_metadata).collect();
        metadata.extend(image.over.keys());
        let uuid = image.block(0)[1024 + 108..1024 + 124].to_vec();
        targets.push(Target {
            image,
            metadata,
            uuid,
        });
    }
    targets
}

/// Chooses a byte to flip: one of the metadata blocks, and the offset in it, more often at the head and in the footer.
fn flip() -> impl Strategy<Value = (prop::sample::Index, usize, u8)> {
    let offset = prop_oneof![0..4096usize, 0..512usize, 4072..4096usize, 1024..1200usize];
    (any::<prop::sample::Index>(), offset, 1u8..)
}

fn damaged(target: &Target, flips: &[(prop::sample::Index, usize, u8)], mend: bool) -> Sparse {
    let mut image = target.image.clone();
    for (block, offset, mask) in flips {
        let block = *block.get(&target.metadata);
        image.change(block, |block| block[*offset] ^= mask);
    }
    if mend {
        let changed: Vec<u64> = image.over.keys().copied().collect();
        for nth in changed {
            let checkpoint = (512..1536).contains(&nth);
            image.change(nth, |block| {
                let is_inode = block[4072..4076] == block[4076..4080] && get32(block, 4072) != 0;
                if checkpoint {
                    mend_checkpoint(block);
                } else if is_inode {
                    let extra = block[3] & 0x20 != 0;
                    extra.then(|| mend_inode(block, &target.uuid));
                }
            });
        }
    }
    image
}

fn check(image: &Sparse) -> Result<(), TestCaseError> {
    let built = image.build();
    match &built {
        Ok(map) => {
            prop_assert!(conserves(map, image.bytes));
            prop_assert!(map.notices().len() <= 101);
            for extent in map.extents() {
                let paths = map.paths(extent.inode);
                prop_assert!(paths.iter().all(|path| path.starts_with(b"/")));
            }
        }
        Err(error) => prop_assert!(!line(image, error).is_empty()),
    }
    Ok(())
}

fn flips(cases: u32) {
    let targets = targets();
    if targets.is_empty() {
        return;
    }
    let case = (
        0..targets.len(),
        prop::collection::vec(flip(), 1..12),
        any::<bool>(),
    );
    let config = ProptestConfig {
        max_shrink_iters: 200,
        ..property::config(file!(), cases)
    };
    let mut counts = [0u32; 3];
    let seen = std::cell::RefCell::new(&mut counts);
    proptest::test_runner::TestRunner::new(config)
        .run(&case, |(target, flips, mend)| {
            let image = damaged(&targets[target], &flips, mend);
            let kind = match image.build() {
                Ok(map) if map.notices().is_empty() => 0,
                Ok(_) => 1,
                Err(_) => 2,
            };
            seen.borrow_mut()[kind] += 1;
            check(&image)
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let [silent, noticed, refused] = counts;
    assert!(noticed > cases / 20 && silent > 0 && refused < cases / 2);
}

fn flipped_bytes() {
    flips(1000);
}

fn flipped_bytes_ten_thousand_times() {
    flips(10_000);
}
