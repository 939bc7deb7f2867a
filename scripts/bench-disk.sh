# SPDX-License-Identifier: MIT OR Apache-2.0
# To be sourced by benchmarks of recording: a loop device in memory ($loop), and fio's direct writes to it.

# The limit that the kernel sets for a new loop device: BLK_DEF_MAX_SECTORS_CAP in include/linux/blkdev.h.
DEFAULT_KIB=1280

# make_disk: makes a folder $work, and $loop. Its queue gets a new device's settings, as an earlier user may have
# changed them.
make_disk() {
	work=$(mktemp -d)
	image=$(mktemp -p /dev/shm mostrace-bench.XXXXXX)
	truncate -s 512M "$image"
	loop=$(losetup -f --show "$image")
	queue=/sys/block/${loop#/dev/}/queue
	echo none >"$queue/scheduler"
	limit_requests $DEFAULT_KIB
}

# limit_requests KIB: sets the largest request.
limit_requests() {
	echo "$1" >"$queue/max_sectors_kb"
}

remove_disk() {
	[ -z "${queue:-}" ] || limit_requests $DEFAULT_KIB
	[ -z "${loop:-}" ] || losetup -d "$loop"
	rm -rf "${work:-}" "${image:-}"
}

# writes FIO-OPTION…: prints one line of fio's terse output, version 3.
writes() {
	fio --name=writes --filename="$loop" --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --direct=1 \
		--time_based --runtime="$seconds" --minimal --terse-version=3 "$@"
}

iops() {
	awk -F';' '{ print $49 }' "$1"
}

# Prints the number of writes that ended, from the IOPS and the milliseconds in fio's line.
writes_of() {
	awk -F';' '{ printf "%.0f", $49 * $50 / 1000 }' "$1"
}

# Prints p99 of writes in µs, from the second list of percentiles.
p99() {
	tr ';' '\n' <"$1" | sed -n 's/^99\.000000%=//p' | tail -n 1
}
