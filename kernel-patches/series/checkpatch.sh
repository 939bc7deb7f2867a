#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks the kernels' series and upstream patches with `checkpatch --strict` from their own sources, as source.sh left them, and
# prints what it finds beside the kinds that are listed here.
# usage: checkpatch.sh KERNEL…
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
# checkpatch.pl writes a cache of names into the current folder.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# What every TRACE_EVENT causes: the lines of its macros, whose parentheses open at their ends. In iomap's and write-back's style
# that is all.
EVENT=PARENTHESIS_ALIGNMENT,OPEN_ENDED_LINE
# In jbd2's style, fields are in columns, and formats are split.
JBD2=$EVENT,SPACING,SPLIT_STRING
# Whether MAINTAINERS needs the new folder is for who takes it. Its lines may be longer than 100 columns, a comment may end on its
# last line, one list of arguments begins on a line of its own, and types of fs/ext4/ext4.h, which a header of tracepoints needs,
# are declared again. C's _Static_assert is taken for a name. 5.10's checkpatch takes ____cacheline_aligned_in_smp for a statement.
RECORDER=FILE_PATH_CHANGES,LONG_LINE,LONG_LINE_COMMENT,BLOCK_COMMENT_STYLE,PARENTHESIS_ALIGNMENT,NEW_TYPEDEFS,CAMELCASE

failed=0
# checkpatch KINDS PATCH…: checks the patches for all kinds of complaints but these. The sign-off line is left to who sends them.
checkpatch() {
	kinds=$1
	shift
	"$cache/$kernel/source/scripts/checkpatch.pl" --strict --terse --no-summary --no-signoff --ignore "$kinds" "$@" || failed=1
}

for kernel in "$@"; do
	"$here/generate.sh" "$kernel" "$work/$kernel"
	checkpatch "$EVENT" "$work/$kernel"/000[12]-*.patch
	checkpatch "$RECORDER$([ "$kernel" != 5.10 ] || echo ,LINE_SPACING)" "$work/$kernel"/000[34]-*.patch
	checkpatch "$JBD2" "$work/$kernel"/000[56]-*.patch
	[ -d "$upstream/jbd2/$kernel" ] || continue
	checkpatch "$EVENT" "$upstream"/iomap/"$kernel"/*.patch
	checkpatch "$JBD2" "$upstream"/jbd2/"$kernel"/*.patch
done
[ $failed -ne 0 ] || echo "checkpatch: $*: nothing else is found"
exit $failed
