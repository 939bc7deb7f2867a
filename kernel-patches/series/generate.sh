#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Writes the whole series of a kernel into a folder: the patches that are written by hand, and the one, made here, that adds
# ../module to the kernel tree.
# usage: generate.sh KERNEL|TREE FOLDER | --check
# TREE is the source of any kernel from 4.14 on. Its series has the recorder, and the tracepoints whose patches of some KERNEL fit it;
# the others are named.
# --check writes nothing. It fails if a kernel lacks a patch, or if the module's files include each other in a circle.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
patch=0003-block-mostrace-record-who-writes-which-file.patch
kernels=$(awk '!/^#/ && $1 ~ /^[0-9.]+$/ { print $1 }' "$here/../../tests/guest/kernels")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The user's settings may change git's output.
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE GIT_CONFIG_COUNT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 LC_ALL=C

message() {
	cat <<'END'
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: mostrace maintainers <maintainers@users.noreply.mostrace.example>
Date: Sat, 21 Nov 2026 00:00:00 +0000
Subject: [PATCH] block: mostrace: record who writes which file

What reaches the disk was written by someone, to some file, for some
reason: an application, its database's journal, the filesystem's journal
of that journal. blktrace tells the blocks and the task that submitted
them, which for buffered writes is a kworker.

Record for every bio of a chosen disk who submitted it, who dirtied its
pages, and what it carries: the file and the place in it, the journal
block and its home, or the metadata. The entries are handed to the one
reader of /dev/mostrace.

It hooks into tracepoints, and only while the device is open. Nothing of
it runs before, no struct changes, and no other code calls it.

This is for people who build their own kernel, without BPF, and it is not
meant for the kernel's own tree: where there are BPF and BTF, programs at
the same tracepoints record the same.

END
}

# generate: prints the patch, as git's difference between an empty tree and the module's files.
generate() {
	git init -q --object-format=sha1 "$work/tree"
	mkdir -p "$work/tree/block/mostrace"
	for file in "$here"/../module/*.[ch] "$here"/../module/Kbuild "$here"/../module/Kconfig; do
		install -m 644 "$file" "$work/tree/block/mostrace/"
	done
	install -D -m 644 "$here/../module/dev-mostrace" "$work/tree/Documentation/ABI/testing/dev-mostrace"
	git -C "$work/tree" add -A
	message
	git -C "$work/tree" diff --cached --abbrev=12
}

# place NAME: puts a file of the tree into the repository; fails if the tree does not have it.
place() {
	[ ! -e "$work/part/$1" ] || return 0
	install -D -m 644 "$tree/$1" "$work/part/$1" 2>/dev/null
}

# commit_part PATCH TO: writes what was changed since the last commit as a patch with the other one's message.
commit_part() {
	git -C "$work/part" add -A
	sed '/^---$/q' "$1" >"$2"
	git -C "$work/part" diff --cached --abbrev=12 >>"$2"
	git -C "$work/part" commit -qm "$(basename "$2")"
}

# fits PATCH: applies it to the tree's own files, if it fits with all the lines around each change.
fits() {
	# shellcheck disable=SC2013 # one word per file
	for file in $(sed -n 's|^+++ b/||p' "$1"); do place "$file" || return 1; done
	git -C "$work/part" add -A
	git -C "$work/part" diff --cached --quiet || git -C "$work/part" commit -qm files
	git -C "$work/part" apply "$1" 2>/dev/null
}

# for_tree TREE FOLDER: writes a series for it.
for_tree() {
	tree=$1
	git init -q --object-format=sha1 "$work/part"
	git -C "$work/part" config user.name mostrace
	git -C "$work/part" config user.email mostrace@localhost
	git -C "$work/part" commit -q --allow-empty -m begin
	for number in 0001 0002 0005 0006; do
		taken=
		for kernel in $(echo "$kernels" | sort -uV); do
			one=$(find -L "$here/$kernel" -name "$number-*.patch" 2>/dev/null)
			fits "$one" || continue
			taken=$kernel
			commit_part "$one" "$2/$(basename "$one")"
			break
		done
		case $taken in
		'') echo "$number: left out, because that of no kernel fits; the recorder goes without its tracepoint" >&2 ;;
		*) echo "$number: that of $taken" >&2 ;;
		esac
	done
	place block/Kconfig
	place block/Makefile
	git -C "$work/part" add -A
	git -C "$work/part" commit -qm files
	# The place before `endif` is inside `if BLOCK`, where there is one.
	awk '{ line[NR] = $0 } /^endif/ { last = NR }
		END {
			for (i = 1; i <= NR; i++) { if (i == last) print add "\n"; print line[i] }
			if (!last) print "\n" add
		}' add='source "block/mostrace/Kconfig"' "$tree/block/Kconfig" >"$work/part/block/Kconfig"
	# awk adds the end that the last line may lack.
	# shellcheck disable=SC2016 # for make
	{ awk 1 "$tree/block/Makefile" && printf 'obj-$(CONFIG_BLK_MOSTRACE)\t+= mostrace/\n'; } >"$work/part/block/Makefile"
	commit_part "$here/shared"/0004-*.patch "$2/$(basename "$here/shared"/0004-*.patch)"
}

# check_module: fails if one of the module's files reaches its own header through those that it includes.
check_module() {
	grep -o '^#include "[a-z0-9]*' "$here"/../module/*.[ch] | sed 's|.*/\([a-z0-9]*\)\.[ch]:#include "|\1 |' |
		awk '$1 != $2' | tsort >/dev/null && return 0
	echo "module: its files include each other in a circle" >&2
	return 1
}

# check KERNEL: fails unless each of its patches exists once, except the one that is made here.
check() {
	for number in 0001 0002 0004 0005 0006; do
		if [ "$(find -L "$here/$1" -type f -name "$number-*.patch" 2>/dev/null | wc -l)" -ne 1 ]; then
			echo "series/$1: not one patch $number-*.patch" >&2
			return 1
		fi
	done
	[ ! -e "$here/$1/$patch" ] && return 0
	echo "series/$1/$patch is made by generate.sh: remove it" >&2
	return 1
}

if [ "${1:-}" = --check ]; then
	failed=0
	check_module || failed=1
	for kernel in $kernels; do check "$kernel" || failed=1; done
	exit $failed
fi
if [ $# -ne 2 ] || { [ ! -d "$here/$1" ] && [ ! -e "$1/block/Kconfig" ]; }; then
	echo "usage: generate.sh KERNEL|TREE FOLDER, with one of these kernels: $kernels" >&2
	exit 2
fi
mkdir -p "$2"
if [ -d "$here/$1" ]; then
	cp -L "$here/$1"/*.patch "$2/"
else
	for_tree "$(cd "$1" && pwd)" "$(cd "$2" && pwd)"
fi
generate >"$2/$patch"
