# SPDX-License-Identifier: MIT OR Apache-2.0
# Bios that dm makes from others: the recorder of the disk below reports the submitter of a clone's original and its
# file, also if a worker queues the clone. Devices without requests. Throttled bios, whose submitter is not known.
# clones.py checks the results on the host.
export DM_DISABLE_UDEV=1
sectors=262144

# below: makes the disk $lower, and $mapped, which dm makes of it by the table on stdin.
below() {
	truncate -s $((sectors * 512)) disk.img
	lower=$(losetup -f)
	losetup "$lower" disk.img
	sed "s|LOWER|$lower|" >table
	/usr/local/bin/dmsetup create mapped <table
	mapped=/dev/mapper/mapped
}

# swapped: prints a table that swaps two halves, in pieces that do not divide what is written at once.
swapped() {
	half=$((sectors / 2)) piece=520
	for at in $(seq 0 $piece $((half - piece))); do echo "$at $piece linear LOWER $((at + half))"; done
}

# as_by TASK COMMAND…: runs the command and notes its process.
as_by() {
	sh -c 'echo "$0 $$" >>pids; exec "$@"' "$@" 2>as_by.log || fail "$(cat as_by.log)"
}

# work DIRECTORY: direct IO of one process and of another, and data that one writes and another writes back.
work() {
	: >pids
	as_by direct /usr/local/bin/dd if=/dev/urandom of="$1/direct" bs=4M count=1 oflag=direct
	as_by direct /usr/local/bin/dd if=/dev/urandom of="$1/direct" bs=4k count=3 seek=5 oflag=direct conv=notrunc
	as_by direct /usr/local/bin/dd if="$1/direct" of=/dev/null bs=64k iflag=direct
	as_by buffered /usr/local/bin/dd if=/dev/urandom of="$1/buffered" bs=64k count=16
	sync
	mkdir "$1/directory"
	as_by fsync /usr/local/bin/dd if=/dev/urandom of="$1/directory/fsync" bs=4k count=5 conv=fsync
	sync
}

# record NAME DEVICE MOUNTED: does the work on a filesystem on MOUNTED while DEVICE is recorded.
record() {
	step "$1"
	out=/tmp/out/clones-$1
	mnt=$PWD/mnt
	mkdir -p "$mnt"
	/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0 "$3"
	mount -t ext4 -o noatime "$3" "$mnt"
	put "$2" dev
	record_start "$out.stream"
	work "$mnt"
	record_stop
	check_nothing_lost
	cp pids "$out.pids"
	for file in direct buffered directory/fsync; do
		filefrag -e -b512 "$mnt/$file" | sed -n "s|^ *[0-9]*: *\([0-9]*\)\.\. *\([0-9]*\): *\([0-9]*\)\.\..*|$(basename $file) \1 \2 \3|p"
	done >"$out.extents"
	umount "$mnt"
	[ "$(cat "$class"/entries)" -gt 50 ] || fail "$1: $(cat "$class"/entries) entries"
}

# remove_below: removes what `below` made.
remove_below() {
	/usr/local/bin/dmsetup remove mapped
	losetup -d "$lower"
	rm disk.img
}

# above NAME: does the work above what dm makes of the table on stdin, and records below.
above() {
	below
	awk '{ print $1, $2, $NF }' table >"/tmp/out/clones-$1.table"
	record "$1" "$lower" "$mapped"
	remove_below
}

load names=all ring_kb=4096
linear="0 $((sectors - 2048)) linear LOWER 2048"
echo "$linear" | above linear
swapped | above swapped
echo "0 $sectors crypt aes-xts-plain64 $(printf '%064d' 7) 0 LOWER 0" | above crypt

# The mapped device itself is recorded, without requests.
as_it_is="0 $sectors 0"
echo "$linear" >linear
below <linear
echo "$as_it_is" >/tmp/out/clones-dm.table
record dm "$mapped" "$mapped"
remove_below
if [ -e /sys/block/zram0 ]; then
	echo $((sectors * 512)) >/sys/block/zram0/disksize
	echo "$as_it_is" >/tmp/out/clones-zram.table
	record zram /dev/zram0 /dev/zram0
	echo 1 >/sys/block/zram0/reset
fi

# A task writes more than its limit allows: blk-throttle's worker queues its bios.
truncate -s $((sectors * 512)) disk.img
lower=$(losetup -f)
losetup "$lower" disk.img
mkdir cgroup
mount -t cgroup2 none cgroup
echo +io >cgroup/cgroup.subtree_control
mkdir cgroup/slow
echo "$(cat "/sys/block/$(basename "$lower")/dev") wbps=1048576" >cgroup/slow/io.max
as_by() {
	sh -c 'echo $$ >cgroup/slow/cgroup.procs; echo "$0 $$" >>pids; exec "$@"' "$@" 2>as_by.log || fail "$(cat as_by.log)"
}
echo "$as_it_is" >/tmp/out/clones-throttled.table
record throttled "$lower" "$lower"
losetup -d "$lower"
umount cgroup
unload
check_kernel
