#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the kernels' series apply, and that what they add and touch compiles without a warning: built in, as a
# module, and disabled. It uses the installed compiler and the small config.
# usage: compile.sh KERNEL…
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

ours='block/mostrace/[^:]*|trace/events/(block|writeback|jbd2)\.h|jbd2/transaction\.c|bio_trace\.h|direct-io\.c|-writeback\.c'
TOUCHED="block/ fs/iomap/ fs/jbd2/ fs/direct-io.o fs/fs-writeback.o mm/page-writeback.o"

fail() {
	echo "compile: $kernel: $*" >&2
	exit 1
}

# objects CONFIG-OPTION…: builds what the series touches, with these options of scripts/config.
objects() {
	"$source/scripts/config" --file "$build/.config" "$@"
	kbuild "$kernel" "$build" olddefconfig prepare
	rm -rf "$build/block" "$build/fs/direct-io.o" "$build/fs/fs-writeback.o" "$build/mm/page-writeback.o" "$build/fs/iomap" "$build/fs/jbd2"
	# shellcheck disable=SC2086 # one word per target
	kbuild "$kernel" "$build" W=1 KBUILD_MODULES=1 $TOUCHED >"$build/said" 2>&1 || fail "$(tail -n 30 "$build/said")"
	! grep -E -A 6 "($ours):.*warning|warning.*(block_bio_file|jbd2_dirty_metadata)" "$build/said" || fail "see above"
}

compile() {
	kernel=$1 source=$cache/$1/source build=$cache/build/$1-compile
	patched "$kernel"
	configure "$kernel" "$build" "$here/config"
	grep -qx CONFIG_BLK_MOSTRACE=y "$build/.config" || fail "Kconfig does not take CONFIG_BLK_MOSTRACE=y"
	objects --enable BLK_MOSTRACE
	ar t "$build/block/mostrace/built-in.a" | grep -q 'device\.o' || fail "=y puts nothing into the kernel"
	objects --module BLK_MOSTRACE
	grep -q -- '-DMODULE' "$build/block/mostrace/.device.o.cmd" || fail "=m makes no module"
	objects --disable BLK_MOSTRACE
	[ -z "$(find "$build/block/mostrace" -name '*.o' 2>/dev/null)" ] || fail "=n builds it"
	echo "compile: $kernel: as =y, =m and =n, without a warning where the series touches it"
}

for kernel in "$@"; do (compile "$kernel"); done
