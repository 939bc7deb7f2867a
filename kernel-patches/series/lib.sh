# SPDX-License-Identifier: MIT OR Apache-2.0
# To be sourced, with $here set: functions shared by the scripts that build patched kernels.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/linux

upstream=${here:?}/../upstream

# series KERNEL [SET]: puts the patches of a set into CACHE/KERNEL/series: all of the series (by default), the
# upstream patches (`upstream`), one of them (jbd2, iomap), or none.
series() {
	to=$cache/$1/series
	rm -rf "$to"
	mkdir -p "$to"
	case ${2:-series} in
	series) "$here/generate.sh" "$1" "$to" ;;
	upstream) cp "$upstream"/*/"$1"/*.patch "$to/" ;;
	none) ;;
	*) cp "$upstream/$2/$1"/*.patch "$to/" ;;
	esac
}

# patched KERNEL [SET]: puts its source with the set applied into CACHE/KERNEL/source, and locks it against other builds.
patched() {
	mkdir -p "$cache/$1"
	exec 8>"$cache/$1/lock"
	flock 8
	"$here/source.sh" "$1" "$cache/$1"
	"$here/apply.sh" "$1" "${2:-series}"
}

# kbuild KERNEL BUILD MAKE-ARGUMENT…: runs make for the kernel, with the build in another folder.
kbuild() {
	source=$cache/$1/source build=$2
	shift 2
	LC_ALL=C make -s -j2 -C "$source" O="$build" "$@"
}

# configure KERNEL BUILD FRAGMENT…: enables what the fragments list, and nothing else.
configure() {
	kernel=$1 build=$2
	shift 2
	mkdir -p "$build"
	cat "$@" >"$build/fragment"
	kbuild "$kernel" "$build" KCONFIG_ALLCONFIG="$build/fragment" allnoconfig
}

# taken BUILD: succeeds if the kernel's configuration has all that the fragments list.
taken() {
	grep '^CONFIG_' "$1/fragment" | grep -vxF -f "$1/.config" >"$1/missing" || return 0
	echo "series: not taken:" >&2
	cat "$1/missing" >&2
	return 1
}
