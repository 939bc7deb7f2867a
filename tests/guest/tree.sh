#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes the files that the guest's ageing copies: 20 directories of 50 mostly small files, and sources of several sizes.
# They are made here because the guest's shell takes ten times as long.
# usage: tree.sh DIR
set -eu

mkdir -p "$1/sources"
cd "$1"
for size in 600 5000 20000 70000 300000; do head -c "$size" /dev/urandom >"sources/$size"; done
i=0
while [ $i -lt 20 ]; do
	mkdir -p "$i/sub"
	j=0
	while [ $j -lt 50 ]; do
		file=$i/file$j
		case $(((i + j) % 50)) in
		[12]) cat sources/5000 >"$file" ;;
		[34]) cat sources/20000 >"$file" ;;
		5) cat sources/70000 >"$file" ;;
		6) : >"$file" ;;
		7) cat sources/300000 >"$file" ;;
		[89]) cat sources/600 >"$i/sub/a rather long name with spaces, number $j" ;;
		*) echo "the small file $j of $i" >"$file" ;;
		esac
		j=$((j + 1))
	done
	i=$((i + 1))
done
