# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced, with $here: what the scripts that build patched kernels share.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/linux

# series KERNEL: all its patches are in CACHE/KERNEL/series.
series() {
	rm -rf "$cache/$1/series"
	"$here/generate.sh" "$1" "$cache/$1/series"
}

# patched KERNEL: its source with the series applied is in CACHE/KERNEL/source, until another build wants it.
patched() {
	mkdir -p "$cache/$1"
	exec 8>"$cache/$1/lock"
	flock 8
	"$here/source.sh" "$1" "$cache/$1"
	"$here/apply.sh" "$1"
}

# kbuild KERNEL BUILD MAKE-ARGUMENT…
kbuild() {
	source=$cache/$1/source build=$2
	shift 2
	LC_ALL=C nice make -s -j2 -C "$source" O="$build" "$@"
}

# configure KERNEL BUILD FRAGMENT…: what the fragments say, and nothing else.
configure() {
	kernel=$1 build=$2
	shift 2
	mkdir -p "$build"
	cat "$@" >"$build/fragment"
	kbuild "$kernel" "$build" KCONFIG_ALLCONFIG="$build/fragment" allnoconfig
}

# taken BUILD: whether the kernel has all that the fragments say.
taken() {
	grep '^CONFIG_' "$1/fragment" | grep -vxF -f "$1/.config" >"$1/missing" || return 0
	echo "series: not taken:" >&2
	cat "$1/missing" >&2
	return 1
}
