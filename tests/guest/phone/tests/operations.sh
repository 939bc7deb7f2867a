# SPDX-License-Identifier: MIT OR Apache-2.0
# Records the calls of SQLite on a phone's kernel, each journal of SQLite's on a fresh filesystem, as the host replays them.
for journals in delete wal; do
	fresh_ext4 128 -b 4096
	keep_sqlite ext4 --operations --source bpf --entries bpf
	remove
	fresh_f2fs 128
	keep_sqlite f2fs --operations --source bpf --entries bpf
	remove
done
