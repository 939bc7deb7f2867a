# SPDX-License-Identifier: MIT OR Apache-2.0
# To be sourced. loop_ext4 SIZE_MB [MKFS_OPTION…] makes a fresh ext4 on a loop device, mounts it, and sets $work, $loop
# and $mnt; everything is removed when the shell exits. It returns 1, with the reason in $why, if that is not possible.

loop_ext4() {
	size=$1
	shift
	[ "$(id -u)" -eq 0 ] || { why="capturing needs root"; return 1; }
	work=$(mktemp -d "${TMPDIR:-/tmp}/mostrace-loop.XXXXXX")
	loop='' mnt=$work/mnt
	trap loop_ext4_clean EXIT
	trap 'exit 130' INT TERM
	truncate -s "${size}M" "$work/disk.img"
	mkfs.ext4 -q -F "$@" "$work/disk.img" || { why="mkfs.ext4 failed"; return 1; }
	loop=$(losetup --find --show "$work/disk.img" 2>"$work/why") ||
		{ loop='' why="no loop device: $(cat "$work/why")"; return 1; }
	mkdir "$mnt"
	# These are a phone's options. With noinit_itable, no background initialisation of inode tables disturbs a
	# measurement.
	mount -o noatime,noinit_itable "$loop" "$mnt" 2>"$work/why" || { why=$(cat "$work/why"); return 1; }
}

loop_ext4_clean() {
	! mountpoint -q "$mnt" || umount "$mnt"
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$work"
}
