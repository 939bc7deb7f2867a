# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on ext4 through each source of block events; a deleted journal is named live.
fresh_ext4 128 -b 4096
every_source
