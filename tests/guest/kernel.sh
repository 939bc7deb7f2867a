#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fetches a Debian kernel and the modules that the guest loads, with a private apt state: the system's sources are not
# changed, and may be of another suite.
# usage: kernel.sh NAME SUITE DIR [ARCHITECTURE]
# ARCHITECTURE is Debian's word, by default amd64. Leaves DIR/vmlinuz, DIR/modules and the package's name in
# DIR/package.
set -eu

suite=$2 dir=$3 arch=${4:-amd64} name=${1%-"${4:-amd64}"}
apt=$dir/apt
. "$(dirname "$0")/apt.sh"

# The modules in the order in which they are loaded, each after those that it needs. Modules that a kernel has built in
# are skipped.
MODULES="virtio_pci virtio_blk loop crc32c_generic crc32_generic ext4 f2fs vfat nls_cp437 nls_iso8859-1 nls_ascii nls_utf8 quota_v2 null_blk
	aes_generic ecb xts cbc cts hmac sha512_generic dm_mod dm_crypt lz4 lzo_rle zram fuse overlay"
# A set of tests may need others, in a folder of its own.
MODULES=${GUEST_MODULES:-$MODULES}

# A name that ends in -rt is a kernel with PREEMPT_RT, one that ends in -16k has pages of 16 KiB.
newest() {
	case $name in
	*-rt) version=${name%-rt} flavour=rt-$arch ;;
	*-16k) version=${name%-16k} flavour=$arch-16k ;;
	*) version=$name flavour=$arch ;;
	esac
	private apt-cache pkgnames "linux-image-$version." | grep -E -- "[0-9]-$flavour\$" | sort -V | tail -n 1
}

# From 7.2 on, the image is an empty package that depends on the others.
unpack() {
	parts=$(private apt-cache depends "$package" | grep -oE 'linux-(base|binary|modules)-[0-9].*') || true
	mkdir -p "$dir/deb"
	# shellcheck disable=SC2086 # one word per package
	(cd "$dir/deb" && private apt-get download "$package" $parts)
	for deb in "$dir"/deb/*.deb; do dpkg -x "$deb" "$dir/deb"; done
	[ -e "$dir/deb/lib" ] || ln -s usr/lib "$dir/deb/lib"
}

# modules DIRECTORY: copies the wanted modules with all that they need, and writes their order.
modules() {
	release=$(ls "$dir/deb/lib/modules")
	depmod -b "$dir/deb" "$release"
	mkdir -p "$1"
	for module in $MODULES; do
		modprobe -d "$dir/deb" -S "$release" --show-depends "$module" 2>/dev/null |
			sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++' | while read -r file; do
		case $file in
		*.xz) xz -dc "$file" ;;
		*.zst) zstd -qdc "$file" ;;
		*) cat "$file" ;;
		esac >"$1/$(basename "$file" | sed 's/\.ko.*/.ko/')"
		basename "$file" | sed 's/\.ko.*/.ko/'
	done >"$1/order"
}

update "$suite"
package=$(newest)
[ -n "$package" ] || { echo "guest: $suite has no package for $name" >&2; exit 1; }
made="$package $MODULES"
[ "$(cat "$dir/made" 2>/dev/null)" != "$made" ] || exit 0
echo "guest: fetching $package" >&2
rm -rf "$dir/deb" "$dir/modules"
unpack
cp "$dir"/deb/boot/vmlinuz-* "$dir/vmlinuz" 2>/dev/null || cp "$dir"/deb/usr/lib/modules/*/vmlinuz "$dir/vmlinuz"
modules "$dir/modules"
rm -rf "$dir/deb"
echo "$package" >"$dir/package"
echo "$made" >"$dir/made"
