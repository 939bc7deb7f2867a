// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the maps that need programs or loop devices of the machine.

#[path = "../common/ext4/mod.rs"]
mod ext4;
#[path = "../common/f2fs/mod.rs"]
mod f2fs;
#[path = "../common/fat/mod.rs"]
mod fat;

mod containers;
mod ext4_damage;
mod ext4_map;
mod ext4_replay;
mod f2fs_broken;
mod f2fs_copies;
mod f2fs_crafted;
mod f2fs_damage;
mod f2fs_map;
mod f2fs_recovery;
mod fat_boot;
mod fat_damage;
mod fat_flips;
mod fat_map;
mod jbd2;
mod several_devices;

fn main() -> std::process::ExitCode {
    test_support::run(test_support::suites![
        containers,
        ext4_damage,
        ext4_map,
        ext4_replay,
        f2fs_broken,
        f2fs_copies,
        f2fs_crafted,
        f2fs_damage,
        f2fs_map,
        f2fs_recovery,
        fat_boot,
        fat_damage,
        fat_flips,
        fat_map,
        jbd2,
        several_devices,
    ])
}
