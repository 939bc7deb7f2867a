#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by guest/run.sh: puts into a guest's root what these tests need: the module built for that kernel, unless the
# recorder is built into it, their programs, and their part of the library.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

kernel=$1 suite=$2 root=$3
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/guest/$kernel
PATH=$PATH:/usr/sbin:/sbin

# Built anew only if the module, how it is built or the kernel is another.
module() {
	made="$(cat "$cache/package") $(cat "$here"/../module/*.[ch] "$here/../module/Kbuild" "$here/build.sh" | sha256sum)"
	[ "$(cat "$cache/module/made" 2>/dev/null)" != "$made" ] || return 0
	rm -rf "$cache/module"
	mkdir -p "$cache/module"
	"$here/build.sh" "$kernel" "$cache/module" >"$cache/module/log" 2>&1 || {
		echo "module: $kernel: not built:" >&2
		cat "$cache/module/log" >&2
		exit 1
	}
	strip --strip-debug "$cache/module/mostrace.ko"
	echo "$made" >"$cache/module/made"
}

if [ "$suite" != series ]; then
	module
	cp "$cache/module/mostrace.ko" "$root/lib/"
fi
for tool in fio setpriv e2fsck fsck.f2fs dmsetup; do "$here/../../guest/add.sh" "$root" "$tool"; done
for program in probe share count; do
	cc -O1 -Wall -Werror -static -I"$here/../module" -o "$root/usr/local/bin/$program" "$here/$program.c"
done
cat "$here/lib.sh" >>"$root/lib/guest.sh"
