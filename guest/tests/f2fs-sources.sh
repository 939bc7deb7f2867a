# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on f2fs through each source of block events; a deleted journal is named live.
fresh_f2fs 128
every_source
