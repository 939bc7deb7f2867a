#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that what the analyser of another architecture printed there about a bundle is what this machine's analyser
# (MOSTRACE) prints, byte for byte.
# usage: check.sh OUT
set -eu

out=$(cd "$1" && pwd)
. "$(dirname "$0")/lib.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$out"
for bundle in *.most; do
	theirs=${bundle%.most}
	mkdir "$work/$theirs"
	tables "$MOSTRACE" "$bundle" "$work/$theirs"
	diff -rq "$theirs" "$work/$theirs" || { echo "failed: $bundle: this machine says something else"; exit 1; }
	[ "$(wc -l <"$theirs/events.csv")" -gt 100 ] || { echo "failed: $bundle: $(wc -l <"$theirs/events.csv") events"; exit 1; }
	echo "$theirs: $(find "$theirs" -type f | wc -l) files, $(du -bs "$theirs" | cut -f1) bytes, the same"
done
