#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Copies a program, with the libraries that it needs, into a guest's root.
# usage: add.sh ROOT PROGRAM [NAME]
set -eu

root=$1 program=$(command -v "$2") name=${3:-$(basename "$2")}
mkdir -p "$root/usr/local/bin"
cp "$program" "$root/usr/local/bin/$name"
ldd "$program" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
	mkdir -p "$root$(dirname "$library")"
	cp -L "$library" "$root$library"
done
