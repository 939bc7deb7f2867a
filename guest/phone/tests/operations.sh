# SPDX-License-Identifier: MIT OR Apache-2.0
# Records the calls of SQLite on a phone's kernel. The host replays them.
for type in ext4 f2fs; do
	fresh_$type 128
	keep_sqlite $type --operations --source bpf --entries bpf
	remove
done
