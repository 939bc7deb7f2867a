# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on f2fs by each source of block events; a deleted journal's name is seen live.
fresh_f2fs 128
every_source
