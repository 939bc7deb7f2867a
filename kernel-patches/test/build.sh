#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the module for one of guest/kernels with Debian's headers and its compiler, in a folder of their own: nothing
# is installed. Needs root for chroot, and guest/kernel.sh to have fetched that kernel.
# usage: build.sh KERNEL DIR [MAKE-ARGUMENT…]     leaves DIR/mostrace.ko; W=1 or C=2 CF=-D__CHECK_ENDIAN__ to check
set -eu

kernel=$1 out=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace
root=$cache/guest-headers/$kernel
apt=$root.apt
. "$here/../../guest/apt.sh"
package=$(cat "$cache/guest/$kernel/package")
headers=linux-headers-${package#linux-image-}
suite=$(awk -v k="$kernel" '$1 == k { print $2 }' "$here/../../guest/kernels")

# The compiler that the headers name, and what make needs; the kernel's image, which they name too, is left out.
fetch() {
	rm -rf "$root"
	mkdir -p "$root"
	# The kernel is newer than the lists, if there are any.
	rm -f "$apt/updated"
	base=${suite%-security}
	# shellcheck disable=SC2046 # one suite or two
	update $(printf '%s\n' "$base" "$suite" | uniq)
	parts=$(private apt-cache depends "$headers" | grep -oE 'linux-(headers|kbuild)-[0-9][^ >]*' | grep -vx "$headers")
	tools="make bash coreutils grep sed gawk findutils diffutils perl binutils base-files dash sparse kmod libelf1"
	case $kernel in 5.10) gcc=gcc-10 ;; 6.1) gcc=gcc-12 ;; 6.12) gcc=gcc-14 ;; *) gcc=gcc-16 ;; esac
	# shellcheck disable=SC2086 # one word per package
	private apt-get install -o Debug::NoLocking=1 -y --no-install-recommends --download-only $gcc $tools >/dev/null
	# shellcheck disable=SC2086
	(cd "$apt/cache/archives" && private apt-get download "$headers" $parts)
	for deb in "$apt"/cache/archives/*.deb; do dpkg -x "$deb" "$root"; done
	rm -f "$apt"/cache/archives/*.deb
	[ -e "$root/usr/bin/awk" ] || ln -s gawk "$root/usr/bin/awk"
	for folder in bin sbin lib lib64; do [ -e "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"; done
	# That sparse is new enough is asked by a script that Debian leaves out.
	for scripts in "$root"/usr/lib/linux-kbuild-*/scripts; do
		[ -e "$scripts/checker-valid.sh" ] || printf '#!/bin/sh\necho 1\n' >"$scripts/checker-valid.sh"
		chmod +x "$scripts/checker-valid.sh"
	done
	echo "$package" >"$root/made"
}

[ "$(cat "$root/made" 2>/dev/null)" = "$package" ] || fetch
rm -rf "$root/module"
mkdir -p "$root/module" "$root/proc" "$root/dev" "$out"
(cd "$here/../module" && cp -L ./*.c ./*.h Kbuild "$root/module/")
# No BTF: pahole is not there. The mounts are gone with the process.
# shellcheck disable=SC2016
unshare -m sh -c 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && LC_ALL=C exec nice chroot "$@"' "$root" \
	"$root" make -C "/usr/src/$headers" M=/module CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules
cp "$root/module/mostrace.ko" "$out/"
