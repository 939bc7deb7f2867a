# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on FAT32 by each source of block events; a deleted journal's name is seen live.
fresh_vfat 128 -F 32
every_source
