#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes a wheel that has the program inside, in dist/, for this machine's architecture: `pip install dist/mostrace-*.whl`
# then installs both the command and the package for Python.
# usage: [DIST=FOLDER] wheel.sh MOSTRACE [PYTHON]
set -eu

program=$1
python=${2:-python3}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strip -o "$work/mostrace" "$program"
chmod 755 "$work/mostrace"

# manylinux_X_Y says that glibc X.Y is enough; it may be said only if nothing else is needed that a distribution may lack.
needed=$(readelf -d "$work/mostrace" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
glibc=$(objdump -T "$work/mostrace" | sed -n 's/.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1)
platform=manylinux_$(echo "$glibc" | cut -d. -f1,2 | tr . _)_$(uname -m)
for library in $needed; do
	case $library in
	libc.so.* | libm.so.* | libgcc_s.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;;
	*)
		echo "wheel: it needs $library of the machine: not for any Linux" >&2
		platform=linux_$(uname -m)
		;;
	esac
done

dist=${DIST:-$here/dist}
mkdir -p "$dist"
MOSTRACE_WHEEL_PROGRAM=$work/mostrace MOSTRACE_WHEEL_PLATFORM=$platform \
	"$python" -m pip wheel --quiet --no-deps --wheel-dir "$dist" "$here/analyzer/python"
ls -l "$dist"/mostrace-*"$platform.whl"
