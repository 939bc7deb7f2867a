#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes the files of a release in dist/: for each architecture the stripped program with its man pages and completions,
# as an archive and as a Debian package; static recorders for phones and for machines without libraries; a bill of
# materials; checksums.
# usage: dist.sh [ARCHITECTURE…]     x86_64, aarch64; by default this machine's
#        dist.sh --deb               this machine's Debian package alone
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
target_dir=${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/target}
export CARGO_TARGET_DIR="$target_dir"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
native=$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf dist
mkdir dist

# build ARCHITECTURE: builds and sets $program. For another architecture it is cross-built, with libelf and zlib from
# their own sources.
build() {
	if [ "$1" = "$native" ]; then
		cargo build --release --locked --workspace --exclude test-support
		program=$target_dir/release/mostrace
		return
	fi
	triple=$1-unknown-linux-gnu
	upper=$(echo "$triple" | tr 'a-z-' 'A-Z_')
	scripts/setup.sh "gcc-$(debian_of "$1" dashes)" "libc6-dev-$(debian_of "$1")-cross" autoconf automake autopoint bison flex gawk make
	! command -v rustup >/dev/null || rustup target add "$triple"
	env "CARGO_TARGET_${upper}_LINKER=$1-linux-gnu-gcc" "CC_$(echo "$triple" | tr - _)=$1-linux-gnu-gcc" \
		cargo build --release --locked --target "$triple" -p mostrace --features mostrace-capture/vendored
	program=$target_dir/$triple/release/mostrace
}

# debian_of ARCHITECTURE [dashes]: prints Debian's name for it, or the prefix of its compiler.
debian_of() {
	case $1${2:-} in
	x86_64) echo amd64 ;;
	aarch64) echo arm64 ;;
	x86_64dashes) echo x86-64-linux-gnu ;;
	aarch64dashes) echo aarch64-linux-gnu ;;
	*) echo "dist: no such architecture: $1" >&2; exit 2 ;;
	esac
}

# stage ARCHITECTURE: makes the tree of an installation in $work/ARCHITECTURE.
stage() {
	tree=$work/$1
	install -D -m 755 "$program" "$tree/usr/bin/mostrace"
	strip="strip"
	[ "$1" = "$native" ] || strip=$1-linux-gnu-strip
	$strip "$tree/usr/bin/mostrace"
	# The man pages are the same for every architecture.
	scripts/pages.sh "$native_program" "$tree/usr"
	mkdir -p "$tree/usr/share/doc/mostrace"
	cp README.md LICENSE-* "$tree/usr/share/doc/mostrace/"
	copyright >"$tree/usr/share/doc/mostrace/copyright"
}

# copyright: prints what Debian's policy asks for, in its format.
copyright() {
	cat <<-COPYRIGHT
		Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
		Upstream-Name: mostrace

		Files: *
		Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE-MIT)
		License: (Expat or Apache-2.0) and GPL-2.0-only
		Comment: The program is under the MIT licence (Expat) or Apache-2.0, at your choice. The BPF programs that it
		 contains, and hands to the kernel as they are, are under GPL-2.0-only.

		License: Expat
		$(sed -e '1,/^Copyright/d' -e 's/^$/./' -e 's/^/ /' LICENSE-MIT | sed '1{/^ \.$/d}')

		License: Apache-2.0
		 See /usr/share/common-licenses/Apache-2.0.

		License: GPL-2.0-only
		 See /usr/share/common-licenses/GPL-2.
	COPYRIGHT
}

# package ARCHITECTURE: makes the Debian package of its tree. The required libraries are read from the program.
package() {
	debian=$(debian_of "$1")
	mkdir -p "$work/$1/DEBIAN"
	libc=$(objdump -T "$work/$1/usr/bin/mostrace" | sed -n 's/.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1)
	needs="libc6 (>= $libc), e2fsprogs"
	! readelf -d "$work/$1/usr/bin/mostrace" | grep -q 'NEEDED.*libelf' || needs="$needs, libelf1t64 | libelf1, zlib1g"
	cat >"$work/$1/DEBIAN/control" <<-CONTROL
		Package: mostrace
		Version: $version
		Architecture: $debian
		Maintainer: mostrace
		Section: admin
		Priority: optional
		Depends: $needs
		Recommends: blktrace
		Description: whose writes reached the storage
		 It records block IO on a Linux machine, and says of each block that reached the storage who wrote it, to which
		 file, what kind of block it is, and which application's write caused it.
	CONTROL
	dpkg-deb --root-owner-group --build "$work/$1" "dist/mostrace_${version}_$debian.deb" >/dev/null
	rm -r "$work/$1/DEBIAN"
}

only_deb=
[ "${1:-}" != --deb ] || { only_deb=yes; shift; }
[ $# -gt 0 ] || set -- "$native"
scripts/setup.sh binutils dpkg zstd
cargo build --release --locked --workspace --exclude test-support
native_program=$target_dir/release/mostrace
for architecture in "$@"; do
	build "$architecture"
	stage "$architecture"
	package "$architecture"
	[ -z "$only_deb" ] || continue
	tar -C "$work/$architecture/usr" --owner=0 --group=0 --transform "s,^\.,mostrace-$version," --zstd \
		-cf "dist/mostrace-$version-$architecture-linux-gnu.tar.zst" .
	scripts/phone.sh "$architecture"
	cp "$target_dir/mostrace-$architecture" "dist/mostrace-recorder-$version-$architecture-static"
done

[ -z "$only_deb" ] || { ls -l dist; exit 0; }
command -v cargo-cyclonedx >/dev/null || cargo install --locked cargo-cyclonedx
cargo cyclonedx --format json --manifest-path analyzer/cli/Cargo.toml --override-filename mostrace.cdx >/dev/null
mv analyzer/cli/mostrace.cdx.json "dist/mostrace-$version.cdx.json"
find . -name mostrace.cdx.json -not -path './dist/*' -delete

(cd dist && sha256sum -- * >SHA256SUMS)
ls -l dist
