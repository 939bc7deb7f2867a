#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fetches one of Debian's kernels, and the modules that the guest loads, with a private apt state: the system's
# sources stay as they are, and may be of another suite.
# usage: kernel.sh NAME SUITE DIR     leaves DIR/vmlinuz, DIR/modules and the package's name in DIR/package
set -eu

name=$1 suite=$2 dir=$3
apt=$dir/apt
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# In the order they are loaded, each after what it needs. Those that a kernel has built in are passed over.
MODULES="virtio_pci virtio_blk loop crc32c_generic crc32_generic ext4 f2fs vfat nls_cp437 nls_iso8859-1 nls_ascii nls_utf8 quota_v2"

private() {
	tool=$1
	shift
	"$tool" -qq -o Dir::State="$apt" -o Dir::Cache="$apt/cache" -o Dir::Etc::SourceList="$apt/sources.list" \
		-o Dir::Etc::SourceParts=/dev/null -o Acquire::Languages=none -o APT::Architecture=amd64 \
		-o APT::Sandbox::User="$(id -un)" "$@"
}

# The mirrors that the system's own sources name, then the defaults: suites move to the archive in the end.
mirrors() {
	label=Debian path=debian
	case $suite in *-security) label=Debian-Security path=debian-security ;; esac
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk -v l="$label" '$1 == l && !seen[$2]++ { print $2 }'
	echo "http://deb.debian.org/$path http://archive.debian.org/$path" | tr ' ' '\n'
}

# The lists of the suite, a week old at most where the network is there.
update() {
	[ -z "$(find "$apt/updated" -mtime -7 2>/dev/null)" ] || return 0
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	for mirror in $(mirrors); do
		echo "deb [signed-by=$keyring] $mirror $suite main" >"$apt/sources.list"
		if private apt-get update -o APT::Update::Error-Mode=any 2>"$apt/errors"; then
			touch "$apt/updated"
			return 0
		fi
	done
	# Kept from an earlier time.
	[ ! -e "$apt/updated" ] || return 0
	echo "guest: $suite could not be had from any mirror:" >&2
	cat "$apt/errors" >&2
	return 1
}

newest() {
	private apt-cache pkgnames "linux-image-$name." | grep -E -- '-amd64$' | grep -vE -- '-(cloud|rt)-' |
		sort -V | tail -n 1
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

# modules DIRECTORY: the wanted ones with all they need, and their order.
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

update
package=$(newest)
[ -n "$package" ] || { echo "guest: $suite has no package linux-image-$name.*-amd64" >&2; exit 1; }
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
