#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Finds tests that cargo passes over without a word: a file that is no module of its binary, `#[test]` beside a main of its own, and
# such a main without `harness = false`. Tests are in tests/it and tests/needs of a crate, so that there are few binaries to link.
# usage: check-tests.sh
set -eu
cd "$(dirname "$0")/.."

all=$(git ls-files '*/tests/it/*.rs' '*/tests/needs/*.rs' | while read -r file; do
	folder=${file%/*}
	name=$(basename "$file" .rs)
	case $folder/ in */it/ | */needs/) main=$folder/main.rs ;; *) continue ;; esac
	[ "$name" = main ] || grep -qx "mod $name;" "$main" || echo "$file: does not run: $main lacks mod $name"
done
for file in $(git ls-files '*/tests/needs/*.rs' | xargs grep -l '#\[test\]'); do
	echo "$file: does not run: in tests/needs, #[test] is nothing"
done
for main in $(git ls-files '*/tests/*/main.rs' | xargs grep -l '^fn main()'); do
	name=$(basename "${main%/main.rs}")
	grep -A1 "^name = \"$name\"" "${main%/tests/*}/Cargo.toml" | grep -q '^harness = false' ||
		echo "$main: does not run: its Cargo.toml lacks harness = false"
done
for manifest in $(git ls-files '*Cargo.toml'); do
	for file in $(git ls-files "$(dirname "$manifest")/tests/*.rs" | grep -x "$(dirname "$manifest")/tests/[^/]*"); do
		echo "$file: is a binary of its own: move it to tests/it or tests/needs"
	done
done)
[ -z "$all" ] || { echo "$all" >&2; exit 1; }
