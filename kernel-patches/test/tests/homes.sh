# SPDX-License-Identifier: MIT OR Apache-2.0
# The journal is on a device of its own, and its blocks' homes are on the filesystem's. homes.py checks the results on
# the host.

# record NAME JOURNAL FILESYSTEM DEVICES HOMES: records a journalled workload.
record() {
	step "$1"
	out=/tmp/out/homes-$1
	mnt=$PWD/mnt
	mkdir -p "$mnt"
	/usr/local/bin/mke2fs -q -O journal_dev -b 4096 "$2"
	/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0 -J "device=$2" "$3"
	put "$4" dev
	record_start "$out.stream"
	mount -t ext4 "$3" "$mnt"
	for i in 1 2 3; do
		mkdir "$mnt/directory$i"
		echo "$i" >"$mnt/directory$i/file"
		sync
	done
	umount "$mnt"
	record_stop
	check_nothing_lost
	echo "$5" >"$out.homes"
}

load
truncate -s 96M disk.img
printf 'n\np\n1\n2048\n40959\nn\np\n2\n40960\n180000\nw\n' | fdisk disk.img >/dev/null 2>&1 || true
loop=$(losetup -f)
losetup -P "$loop" disk.img
record one-disk "${loop}p1" "${loop}p2" "$loop" 0
losetup -d "$loop"

truncate -s 16M journal.img
truncate -s 64M disk.img
journal=$(losetup -f)
losetup "$journal" journal.img
loop=$(losetup -f)
losetup "$loop" disk.img
record two-disks "$journal" "$loop" "$journal,$loop" 1
losetup -d "$loop"
losetup -d "$journal"
unload
check_kernel
