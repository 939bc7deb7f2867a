# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by every test in the guest. A test fails when a command of it does.
set -eu

# fresh_ext4 MIB [MKE2FS-OPTION…]: a mounted ext4 on $loop at $mnt.
fresh_ext4() {
	mib=$1
	shift
	truncate -s "${mib}M" disk.img
	/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0 "$@" disk.img
	loop=$(losetup -f)
	losetup "$loop" disk.img
	mnt=$PWD/mnt
	mkdir "$mnt"
	mount -t ext4 -o noatime "$loop" "$mnt"
}

fail() {
	echo "failed: $*"
	exit 1
}

# column NAME: its number in the CSV header on stdin.
column() {
	head -n 1 | tr , '\n' | grep -nx "$1" | cut -d: -f1
}

# check_bundle BUNDLE: nothing lost, every byte has a process entry, the groupings have the same sum.
check_bundle() {
	! grep -A 20 '"losses"' "$1/manifest.json" | sed '/}/q' | grep -E ': [1-9]' || fail "$1: losses"
	mostrace events "$1" --format csv >events.csv
	bytes=$(column bytes <events.csv)
	stage=$(column stage <events.csv)
	rows=$(awk -F, -v b="$bytes" -v s="$stage" 'NR > 1 && $b > 0 && $s == ""' events.csv | wc -l)
	[ "$rows" -eq 0 ] || fail "$1: $rows rows without a process entry"
	total=$(awk -F, -v b="$bytes" 'NR > 1 { n += $b } END { print n }' events.csv)
	[ "$total" -gt 0 ] || fail "$1: no bytes"
	for by in class role process; do
		mostrace analyze "$1" --by "$by" --format csv >table.csv
		at=$(column bytes <table.csv)
		sum=$(awk -F, -v b="$at" 'NR > 1 { n += $b } END { print n }' table.csv)
		[ "$sum" = "$total" ] || fail "$1 by $by: $sum bytes of $total"
	done
}
