# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on ext4 by each source of block events; a deleted journal's name is seen live.
fresh_ext4 128 -b 4096
every_source
