#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Provides the module for a kernel in tests/guest/kernels. It is rebuilt only if the module, its build or the kernel has
# changed.
# usage: module.sh KERNEL TO
# Leaves TO/mostrace.ko.
set -eu

kernel=$1 to=$2
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/guest/$kernel
made="$(cat "$cache/package") $(cat "$here"/../module/*.[ch] "$here/../module/Kbuild" "$here/build.sh" | sha256sum)"
if [ "$(cat "$cache/module/made" 2>/dev/null)" != "$made" ]; then
	rm -rf "$cache/module"
	mkdir -p "$cache/module"
	"$here/build.sh" "$kernel" "$cache/module" >"$cache/module/log" 2>&1 || {
		echo "module: $kernel: not built:" >&2
		cat "$cache/module/log" >&2
		exit 1
	}
	echo "$made" >"$cache/module/made"
fi
cp "$cache/module/mostrace.ko" "$to/"
