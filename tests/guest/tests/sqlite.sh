# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite with a rollback journal and with a WAL on each filesystem: all is accounted for, names of temporary files are
# seen live, and the filesystem's own writes have the right kinds.

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

# check_exact BUNDLE: each block of a file has the calls that wrote it as its cause, unless the kernel skipped probes, as it may from 7.2
# on. f2fs is not asked: it writes an inline file's page out while a call makes it too large, and the call changes the page again.
check_exact() {
	if grep -q '_misses": *[1-9]' "$1/manifest.json"; then
		info "$1: probes were skipped, so that no cause is certain"
		return
	fi
	mostrace events "$1" --columns sector,path,cause_known --format csv \
		--where "op = 'write' AND kind = 'regular' AND cause_known <> 'exact'" >unsure.csv
	[ "$(wc -l <unsure.csv)" -eq 1 ] || fail "$1: $(cat unsure.csv)"
}

fresh_ext4 128 -b 4096
run ext4 delete -journal
check_exact ext4-delete.most
check_kinds ext4-delete.most inode_table directory regular descriptor metadata_copy commit
run ext4 wal -wal
check_exact ext4-wal.most
check_kinds ext4-wal.most inode_table regular descriptor metadata_copy commit
remove

fresh_f2fs 128
run f2fs delete -journal
check_kinds f2fs-delete.most checkpoint ssa sit nat fsync_node hot_node directory regular
run f2fs wal -wal
check_kinds f2fs-wal.most checkpoint fsync_node regular
remove

fresh_vfat 128 -F 32
run fat32 delete -journal
check_exact fat32-delete.most
check_kinds fat32-delete.most fat directory regular
run fat32 wal -wal
check_exact fat32-wal.most
check_kinds fat32-wal.most fat directory regular
remove
