# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on FAT32 through each source of block events; a deleted journal is named live.
fresh_vfat 128 -F 32
every_source
