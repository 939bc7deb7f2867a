# SPDX-License-Identifier: MIT OR Apache-2.0
# A disk that has bios but no requests: each bio has its process and its file.
zram=/dev/zram0
step "mkfs on $zram"
echo 128M >/sys/block/zram0/disksize
/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0 $zram
mnt=$PWD/mnt
mkdir -p "$mnt"
mount -t ext4 -o noatime $zram "$mnt"
for source in blktrace tracefs; do
	step "record by $source"
	mostrace record -d $zram -o $source.most --source $source --sync -- \
		mostrace workload sqlite --transactions 30 --overwrite "$mnt/test.db"
	check_bundle $source.most
	check_temporary $source.most test.db-journal 30
	check_kinds $source.most descriptor metadata_copy commit regular
done
umount "$mnt"
echo 1 >/sys/block/zram0/reset
