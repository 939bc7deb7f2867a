#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds 6.1 with its series applied and the recorder built in, to be booted in a guest.
# usage: kernel.sh plain | debug
# Leaves vmlinuz, modules/order (empty) and package in CACHE/built/6.1-VARIANT.
set -eu

kernel=6.1
variant=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
out=$cache/built/$kernel-$variant
build=$cache/build/$kernel-$variant
case $variant in
plain) fragments=$here/config ;;
debug) fragments="$here/config $here/config.debug" ;;
*) echo "kernel: no variant $variant" >&2; exit 1 ;;
esac

# ingredients: prints everything on which the image depends.
ingredients() {
	cat "$cache/$kernel/version" "$cache/$kernel/series"/*.patch
	# shellcheck disable=SC2086 # one word per file
	cat $fragments
	gcc --version | head -n 1
}

"$here/source.sh" "$kernel" "$cache/$kernel"
series "$kernel"
made=$(ingredients | sha256sum)
[ "$(cat "$out/made" 2>/dev/null)" != "$made" ] || exit 0
echo "kernel: building $kernel-$variant" >&2
start=$(date +%s)
rm -rf "$out"
mkdir -p "$out/modules"
patched "$kernel"
# shellcheck disable=SC2086
configure "$kernel" "$build" $fragments
taken "$build"
kbuild "$kernel" "$build" bzImage
cp "$build/arch/x86/boot/bzImage" "$out/vmlinuz"
: >"$out/modules/order"
echo "linux-source-$kernel $(cat "$cache/$kernel/version") with the series, $variant" >"$out/package"
echo "kernel: $kernel-$variant took $(($(date +%s) - start)) s" >&2
echo "$made" >"$out/made"
