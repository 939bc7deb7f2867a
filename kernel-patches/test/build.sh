#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the module for a kernel in tests/guest/kernels with Debian's headers and compiler (for another architecture the cross
# compiler) in a folder of their own: nothing is installed. Needs root for chroot, and that tests/guest/kernel.sh has fetched
# that kernel.
# usage: build.sh KERNEL DIR [MAKE-ARGUMENT…]     (W=1 or C=2 CF=-D__CHECK_ENDIAN__ for checks)
# Leaves DIR/mostrace.ko.
set -eu

kernel=$1 out=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace
root=$cache/guest-headers/$kernel
apt=$root.apt
. "$here/../../tests/guest/apt.sh"
package=$(cat "$cache/guest/$kernel/package")
headers=linux-headers-${package#linux-image-}
suite=$(awk -v k="$kernel" '$1 == k { print $2 }' "$here/../../tests/guest/kernels")
case $package in *-arm64 | *-arm64-16k) target=arm64 ;; *) target=amd64 ;; esac
base=${suite%-security}
case $kernel in 5.10*) gcc=10 ;; 6.1 | 6.1-*) gcc=12 ;; 6.12*) gcc=14 ;; *) gcc=16 ;; esac
case $target in
amd64) cross='' compiler=gcc-$gcc ;;
arm64) cross=aarch64-linux-gnu- compiler=gcc-$gcc-aarch64-linux-gnu ;;
esac

# lists: fetches the package lists of both suites that the kernel needs, for the architecture $arch.
lists() {
	# The kernel is newer than these lists, if there are any.
	rm -f "$apt/updated"
	# shellcheck disable=SC2046 # one suite or two
	update $(printf '%s\n' "$base" "$suite" | uniq)
}

# headers TO: fetches the kernel's own headers into the folder TO. The image to which they refer is left out; the build
# tools are those of this machine's architecture.
headers() (
	arch=$target
	# shellcheck disable=SC2030 # for this function alone, which is a subshell
	[ "$arch" = amd64 ] || { apt=$root.$arch.apt && lists; }
	parts=$(private apt-cache depends "$headers" | grep -oE 'linux-(headers|kbuild)-[0-9][^ >]*' | grep -vx "$headers")
	echo "$parts" | grep kbuild >"$root/kbuild"
	cd "$1"
	# shellcheck disable=SC2046 # one word per package
	private apt-get download "$headers" $(echo "$parts" | grep -v kbuild)
)

# fetch: fetches the compiler that the headers name, and what make needs.
fetch() {
	rm -rf "$root"
	mkdir -p "$root"
	# shellcheck disable=SC2031
	archives=$apt/cache/archives
	lists
	tools="make bash coreutils grep sed gawk findutils diffutils perl binutils base-files dash sparse kmod libelf1"
	# shellcheck disable=SC2086 # one word per package
	private apt-get install -o Debug::NoLocking=1 -y --no-install-recommends --download-only $compiler $tools >/dev/null
	headers "$archives"
	(cd "$archives" && private apt-get download "$(cat "$root/kbuild")")
	for deb in "$archives"/*.deb; do dpkg -x "$deb" "$root"; done
	rm -f "$archives"/*.deb
	[ -e "$root/usr/bin/awk" ] || ln -s gawk "$root/usr/bin/awk"
	for folder in bin sbin lib lib64; do [ -e "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"; done
	# This script checks that sparse is new enough; Debian's package leaves it out.
	for scripts in "$root"/usr/lib/linux-kbuild-*/scripts; do
		[ -e "$scripts/checker-valid.sh" ] || printf '#!/bin/sh\necho 1\n' >"$scripts/checker-valid.sh"
		chmod +x "$scripts/checker-valid.sh"
	done
	echo "$package" >"$root/made"
}

# inside COMMAND…: runs the command in that folder. The mounts end with the process.
inside() {
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && LC_ALL=C exec nice chroot "$@"' "$root" "$root" "$@"
}

[ "$(cat "$root/made" 2>/dev/null)" = "$package" ] || fetch
rm -rf "$root/module"
mkdir -p "$root/module" "$root/proc" "$root/dev" "$out"
(cd "$here/../module" && cp -L ./*.c ./*.h Kbuild "$root/module/")
# There is no BTF, because pahole is not installed there.
inside make -C "/usr/src/$headers" M=/module "CROSS_COMPILE=$cross" CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules
inside "${cross}strip" --strip-debug /module/mostrace.ko
cp "$root/module/mostrace.ko" "$out/"
