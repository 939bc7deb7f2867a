# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest of tests/guest/: captures the samples of filesystems that the host may not have, with blktrace.
# sample NAME TYPE MODE
sample() {
	"fresh_$2" 256
	# An app's folder, and the names that an app would use.
	mkdir "$mnt/app"
	mostrace record -d "$loop" -o "$1.most.tar.zst" --source blktrace --sync -- \
		mostrace workload sqlite --op insert --transactions 1000 --journal "$3" --sync full mnt/app/test.db
	mv "$1.most.tar.zst" /tmp/out/
	remove
}
# FAT32 wants some 65,525 clusters.
fresh_fat32() { fresh_vfat "$1" -F 32 -s 1; }

sample f2fs-delete f2fs delete
sample f2fs-wal f2fs wal
sample fat32-delete fat32 delete
