#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Holds the series of kernels against `checkpatch --strict` of their own sources, as source.sh left them.
# usage: checkpatch.sh KERNEL…
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
# It writes a cache of names into the folder in which it runs.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

failed=0
# checkpatch KINDS PATCH…: all but these kinds.
checkpatch() {
	kinds=$1
	shift
	"$cache/$kernel/source/scripts/checkpatch.pl" --strict --terse --no-summary --ignore "$kinds" "$@" || failed=1
}

for kernel in "$@"; do
	"$here/generate.sh" "$kernel" "$work/$kernel"
	# Every TRACE_EVENT has the last two kinds.
	checkpatch FILE_PATH_CHANGES,PARENTHESIS_ALIGNMENT,OPEN_ENDED_LINE "$work/$kernel"/000[12]-*.patch
	checkpatch FILE_PATH_CHANGES "$work/$kernel"/000[34]-*.patch
done
exit $failed
