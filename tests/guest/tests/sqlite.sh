# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite with a rollback journal and with a WAL on each filesystem: all is accounted for, names of temporary files are
# seen live, and the filesystem's own writes have the right kinds.

writeback_off

# run FILESYSTEM JOURNAL SUFFIX: records SQLite and checks the bundle.
run() {
	bundle=$1-$2.most
	step "$bundle"
	mostrace record -d "$loop" -o "$bundle" --source blktrace --sync -- \
		mostrace workload sqlite --transactions 200 --journal "$2" "$mnt/$2.db"
	check_bundle "$bundle"
	check_temporary "$bundle" "$2.db$3" 200
	grep -q ",/$2.db," events.csv || fail "$bundle: the database has no name"
}

# check_exact FILESYSTEM JOURNAL: each block of the database's files has the calls that wrote it as its cause, unless the kernel skipped
# probes, as it may from 7.2 on.
check_exact() {
	bundle=$1-$2.most
	if grep -q '_misses": *[1-9]' "$bundle/manifest.json"; then
		info "$bundle: probes were skipped, so that no cause is certain"
		return
	fi
	mostrace events "$bundle" --columns sector,path,cause_known --format csv \
		--where "op = 'write' AND kind = 'regular' AND (path IS NULL OR path LIKE '/$2.db%') AND cause_known <> 'exact'" >unsure.csv
	[ "$(wc -l <unsure.csv)" -eq 1 ] || fail "$bundle: $(cat unsure.csv)"
}

fresh_ext4 128 -b 4096
run ext4 delete -journal
check_exact ext4 delete
check_kinds ext4-delete.most inode_table directory regular descriptor metadata_copy commit
run ext4 wal -wal
check_exact ext4 wal
check_kinds ext4-wal.most inode_table regular descriptor metadata_copy commit
remove

fresh_f2fs 128
run f2fs delete -journal
check_exact f2fs delete
check_kinds f2fs-delete.most checkpoint ssa sit nat fsync_node hot_node directory regular
run f2fs wal -wal
check_exact f2fs wal
check_kinds f2fs-wal.most checkpoint fsync_node regular
remove

fresh_vfat 128 -F 32
run fat32 delete -journal
check_exact fat32 delete
check_kinds fat32-delete.most fat directory regular
run fat32 wal -wal
check_exact fat32 wal
check_kinds fat32-wal.most fat directory regular
remove
