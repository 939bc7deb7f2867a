// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the maps that need nothing of the machine but e2fsprogs.

#[path = "../common/ext4/mod.rs"]
mod ext4;

mod ext4_dirent;
mod ext4_memory;
mod map_properties;
mod map_through;
mod progress;
