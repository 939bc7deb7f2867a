# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by the benchmarks of recording: a loop device in memory ($loop), and fio's direct writes to it.

# What the kernel gives a new loop device: BLK_DEF_MAX_SECTORS_CAP of include/linux/blkdev.h.
DEFAULT_KIB=1280

# make_disk: a folder $work, and $loop. Another user of the same loop device may have left its queue otherwise than a new one's.
make_disk() {
	work=$(mktemp -d)
	image=$(mktemp -p /dev/shm mostrace-bench.XXXXXX)
	truncate -s 512M "$image"
	loop=$(losetup -f --show "$image")
	queue=/sys/block/${loop#/dev/}/queue
	echo none >"$queue/scheduler"
	limit_requests $DEFAULT_KIB
}

# limit_requests KIB: no request is longer.
limit_requests() {
	echo "$1" >"$queue/max_sectors_kb"
}

remove_disk() {
	[ -z "${queue:-}" ] || limit_requests $DEFAULT_KIB
	[ -z "${loop:-}" ] || losetup -d "$loop"
	rm -rf "${work:-}" "${image:-}"
}

# writes FIO-OPTION…: one line of fio's terse form, version 3.
writes() {
	fio --name=writes --filename="$loop" --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --direct=1 \
		--time_based --runtime="$seconds" --minimal --terse-version=3 "$@"
}

iops() {
	awk -F';' '{ print $49 }' "$1"
}

# Of a line of fio's: writes that ended, by the IOPS and the ms that it ran.
writes_of() {
	awk -F';' '{ printf "%.0f", $49 * $50 / 1000 }' "$1"
}

# Of writes, the second list of percentiles, in µs.
p99() {
	tr ';' '\n' <"$1" | sed -n 's/^99\.000000%=//p' | tail -n 1
}
