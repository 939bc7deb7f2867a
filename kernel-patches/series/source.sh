#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fetches Debian's newest source of a kernel in tests/guest/kernels, as a git repository with one commit, tagged `debian`.
# usage: source.sh KERNEL DIR
# Leaves DIR/source, and the package's version in DIR/version.
set -eu

kernel=$1 dir=$2
guest=$(cd "$(dirname "$0")/../../tests/guest" && pwd)
suite=$(awk -v k="$kernel" '$1 == k { print $2 }' "$guest/kernels")
[ -n "$suite" ] || { echo "source: tests/guest/kernels has no $kernel" >&2; exit 1; }
package=linux-source-$kernel
apt=$dir/apt
# shellcheck source=tests/guest/apt.sh
. "$guest/apt.sh"

# The package's file is a tar of one folder.
unpack() {
	rm -rf "$dir/version" "$dir/source" "$dir/deb"
	mkdir -p "$dir/source" "$dir/deb"
	(cd "$dir/deb" && private apt-get download "$package")
	dpkg-deb --fsys-tarfile "$dir"/deb/*.deb | tar -xO --wildcards './usr/src/*.tar.*' |
		xz -dc | tar -x -C "$dir/source" --strip-components=1
	rm -rf "$dir/deb"
}

# commit: adds everything, including what the kernel's own .gitignore excludes.
commit() {
	cd "$dir/source"
	git init -q -b debian-source
	git config gc.auto 0
	git config user.name mostrace
	git config user.email mostrace@localhost
	git add -Af
	git commit -q -m "$package $version"
	git tag debian
}

update "$suite"
version=$(private apt-cache show "$package" | awk '$1 == "Version:" { print $2 }' | sort -V | tail -n 1)
[ -n "$version" ] || { echo "source: $suite has no package $package" >&2; exit 1; }
[ "$(cat "$dir/version" 2>/dev/null)" != "$version" ] || exit 0
echo "source: fetching $package $version" >&2
unpack
(commit)
echo "$version" >"$dir/version"
