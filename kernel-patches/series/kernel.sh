#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds a kernel from its patched source, with BTF, to be booted in a guest.
# usage: kernel.sh KERNEL-VARIANT
# The variants are `base`, without any patch; `events`, with the upstream patches; `plain`, with the whole series and the
# recorder built in; and `debug`, the same with the kernel's own checks and without BTF.
# Leaves vmlinuz, modules/order (empty) and package in CACHE/built/KERNEL-VARIANT.
set -eu

kernel=${1%-*} variant=${1##*-}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
out=$cache/built/$kernel-$variant
# Those without checks differ in a few files.
build=$cache/build/$kernel
fragments="$here/config $here/config.bpf"
case $variant in
base) set=none what="unpatched" ;;
events) set=upstream what="with the upstream patches" ;;
plain) set=series what="with the series" ;;
debug) set=series what="with the series, and the kernel's checks" build=$build-debug fragments="$here/config $here/config.debug" ;;
*) echo "kernel: no variant $variant" >&2; exit 1 ;;
esac

# ingredients: prints everything on which the image depends.
ingredients() {
	cat "$cache/$kernel/version"
	[ "$set" = none ] || cat "$cache/$kernel/series"/*.patch
	# shellcheck disable=SC2086 # one word per file
	cat $fragments
	gcc --version | head -n 1
}

"$here/source.sh" "$kernel" "$cache/$kernel"
series "$kernel" "$set"
made=$(ingredients | sha256sum)
[ "$(cat "$out/made" 2>/dev/null)" != "$made" ] || exit 0
echo "kernel: building $kernel-$variant" >&2
start=$(date +%s)
rm -rf "$out"
mkdir -p "$out/modules"
patched "$kernel" "$set"
# shellcheck disable=SC2086
configure "$kernel" "$build" $fragments
# Only the series has the recorder.
[ "$set" = series ] || sed -i '/^CONFIG_BLK_MOSTRACE=/d' "$build/fragment"
taken "$build"
kbuild "$kernel" "$build" bzImage
cp "$build/arch/x86/boot/bzImage" "$out/vmlinuz"
: >"$out/modules/order"
echo "linux-source-$kernel $(cat "$cache/$kernel/version"), $what" >"$out/package"
echo "kernel: $kernel-$variant took $(($(date +%s) - start)) s" >&2
echo "$made" >"$out/made"
