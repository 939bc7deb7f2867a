#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the kernels' series apply, and that what they add and touch compiles without a warning: built in, as a
# module, and disabled; and the same of each upstream patch alone, where there are some for the kernel. It uses the installed
# compiler and the small config.
# usage: compile.sh KERNEL…
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

ours='block/mostrace/[^:]*|trace/events/(writeback|jbd2)\.h|linux/jbd2\.h|jbd2/transaction\.c|iomap/(trace\.h|direct-io\.c)|page-writeback\.c'
TOUCHED="fs/iomap/ fs/jbd2/ fs/fs-writeback.o mm/page-writeback.o"

fail() {
	echo "compile: $kernel: $*" >&2
	exit 1
}

# objects TARGET… [-- CONFIG-OPTION…]: builds them anew, with these options of scripts/config.
objects() {
	targets=
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		targets="$targets $1"
		rm -rf "${build:?}/$1"
		shift
	done
	[ $# -eq 0 ] || shift
	[ $# -eq 0 ] || "$source/scripts/config" --file "$build/.config" "$@"
	kbuild "$kernel" "$build" olddefconfig prepare
	# shellcheck disable=SC2086 # one word per target
	kbuild "$kernel" "$build" W=1 KBUILD_MODULES=1 $targets >"$build/said" 2>&1 || fail "$(tail -n 30 "$build/said")"
	! grep -E -A 6 "($ours):.*warning|warning.*(iomap_dio_submit_bio|writeback_start_|jbd2_(dirty_metadata|forget))" "$build/said" ||
		fail "see above"
}

# begin SET: applies the patches of the set, and configures.
begin() {
	patched "$kernel" "$1"
	configure "$kernel" "$build" "$here/config"
}

# compile_series
compile_series() {
	begin series
	grep -qx CONFIG_BLK_MOSTRACE=y "$build/.config" || fail "Kconfig does not take CONFIG_BLK_MOSTRACE=y"
	# shellcheck disable=SC2086
	objects block/ $TOUCHED -- --enable BLK_MOSTRACE
	ar t "$build/block/mostrace/built-in.a" | grep -q 'device\.o' || fail "=y puts nothing into the kernel"
	objects block/ -- --module BLK_MOSTRACE
	grep -q -- '-DMODULE' "$build/block/mostrace/.device.o.cmd" || fail "=m makes no module"
	objects block/ -- --disable BLK_MOSTRACE
	[ -z "$(find "$build/block/mostrace" -name '*.o' 2>/dev/null)" ] || fail "=n builds it"
	echo "compile: $kernel: as =y, =m and =n, without a warning where the series touches it"
}

# compile_alone
compile_alone() {
	for one in jbd2 iomap; do
		[ -d "$upstream/$one/$kernel" ] || continue
		begin "$one"
		# shellcheck disable=SC2086
		objects $TOUCHED
		echo "compile: $kernel: $one alone, without a warning where it touches it"
	done
}

for kernel in "$@"; do
	source=$cache/$kernel/source build=$cache/build/$kernel-compile
	(compile_alone && compile_series)
done
