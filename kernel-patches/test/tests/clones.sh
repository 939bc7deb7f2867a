# SPDX-License-Identifier: MIT OR Apache-2.0
# Bios that dm makes of others: the recorder of the disk below tells of a clone who submitted the original, and of which
# file it is, also where a worker queues it. Devices that have no requests. Bios that were held back, whose submitter is not
# known. What is told is judged outside (clones.py).
export DM_DISABLE_UDEV=1
sectors=262144

# below: $lower is a disk; $mapped is what dm makes of it by the table on stdin.
below() {
	truncate -s $((sectors * 512)) disk.img
	lower=$(losetup -f)
	losetup "$lower" disk.img
	sed "s|LOWER|$lower|" >table
	/usr/local/bin/dmsetup create mapped <table
	mapped=/dev/mapper/mapped
}

# swapped: two halves in the other's place, in pieces that are no multiple of what is written at once.
swapped() {
	half=$((sectors / 2)) piece=520
	for at in $(seq 0 $piece $((half - piece))); do echo "$at $piece linear LOWER $((at + half))"; done
}

# as_by TASK COMMAND…: its process is noted.
as_by() {
	sh -c 'echo "$0 $$" >>pids; exec "$@"' "$@" 2>as_by.log || fail "$(cat as_by.log)"
}

# work DIRECTORY: direct IO of one process and of another, and what one writes and another writes back.
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

# record NAME DEVICE MOUNTED: the work on a filesystem of MOUNTED, as the recorder of DEVICE sees it.
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
	[ "$(cat $class/entries)" -gt 50 ] || fail "$1: $(cat $class/entries) entries"
}

# remove_below
remove_below() {
	/usr/local/bin/dmsetup remove mapped
	losetup -d "$lower"
	rm disk.img
}

# above NAME: what dm makes of the table on stdin, recorded below.
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

# Recorded as what it is, without requests.
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

# A task that writes more than it may: blk-throttle's worker queues it.
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
