#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Usage: run.sh MOSTRACE [all | causes | overlap]
# Compares what this mostrace says of every sector with the truth: on an ext4 with mke2fs's defaults, and of the causes in its journal
# with the journal itself while processes commit at full speed; or with `all` over many filesystem options and sources. With `all` or `causes`, judges the causes of blocks that several processes changed. With
# `all` or `overlap`, runs requests for the same sectors at once, eight times for each source and scheduler. Without root, loop
# devices or FUSE it says so and succeeds; under MOSTRACE_NO_SKIP it fails.
set -eu
mostrace=$(realpath "$1")
what=${2:-one}
cd "$(dirname "$0")"
skip() {
	echo "truth: not run: $1" >&2
	[ -z "${MOSTRACE_NO_SKIP:-}" ] || exit 1
	exit 0
}
[ "$(id -u)" = 0 ] || skip "needs root"
[ -e /dev/loop-control ] || skip "no loop devices"
[ -e /dev/fuse ] || skip "no FUSE"

target=${CARGO_TARGET_DIR:-target}/truth
cargo test --quiet --release --locked --target-dir "$target"
cargo build --quiet --release --locked --target-dir "$target"
try() {
	echo "truth: ${*:-default options}"
	"$target/release/mostrace-truth" run --mostrace "$mostrace" "$@"
}
causes() {
	echo "truth of causes: ${*:-default options}"
	"$target/release/mostrace-truth" causes --mostrace "$mostrace" "$@" || wrong=1
}
all_causes() {
	wrong=
	causes
	causes --mkfs "-b 4096"
	causes --mkfs "-b 4096" --mount-options data=journal
	causes --mkfs "-b 4096" --mount-options lazytime
	causes --mkfs "-b 4096" --mount-options nodelalloc
	causes --mkfs "-b 4096" --mount-options dioread_lock
	causes --mkfs "-b 4096 -O fast_commit"
	causes --mkfs "-b 4096 -O ^has_journal"
	causes --mkfs "-b 4096" --record "--source bpf"
	causes --mkfs "-b 4096" --layout disk
	causes --mkfs "-b 4096" --layout partition
	[ -z "$wrong" ]
}
overlaps() {
	for _ in 1 2 3 4 5 6 7 8; do
		for scheduler in none mq-deadline; do
			try --queue scheduler=$scheduler --record "--source bpf" overlap
			try --queue scheduler=$scheduler --record "--source tracefs" overlap
		done
	done
}
case $what in
causes)
	all_causes
	exit
	;;
overlap)
	overlaps
	exit
	;;
esac
try
echo "truth of commits at full speed"
python3 commits.py "$mostrace"
[ "$what" = all ] || exit 0
try --mkfs "-b 1024"
try --mkfs "-b 2048"
try --mkfs "-O bigalloc -C 16384"
try --mkfs "-O inline_data"
try --mkfs "-O ^has_journal"
try --mkfs "-O fast_commit"
try --mkfs "-O ^extents,^64bit"
try --mount-options data=journal
try --mount-options data=writeback
try --mount-options nodelalloc
try --mount-options dioread_lock
try --mkfs "-b 4096"
try --mkfs "-b 1024" --mount-options dioread_lock
try --mkfs "-b 4096 -O ^metadata_csum"
try --mkfs "-O ^extents,^64bit,^metadata_csum,^flex_bg,^dir_index"
try --queue scheduler=none
try --queue scheduler=mq-deadline --queue max_sectors_kb=16
try --queue scheduler=bfq
try --queue scheduler=kyber
try --record "--source tracefs"
try --record "--files temp"
try --record "--entries none"
try --record "--source bpf"
try --layout disk
try --layout partition
overlaps
all_causes
