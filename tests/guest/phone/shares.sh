#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints a line for each bundle, as in docs/FIGURES.md: for how many of the written bytes the writer, the file and the
# cause are known.
# usage: shares.sh BUNDLE…
# MOSTRACE is the analyser.
set -eu

# of COLUMN: prints SQL for the percentage of bytes whose column is known.
of() {
	echo "ROUND(100.0 * SUM(CASE WHEN $1 IS NOT NULL THEN bytes ELSE 0 END) / SUM(bytes), 1) AS $1"
}

echo "bundle,bytes,thread,process,inode,name,dirtier,cause"
for bundle in "$@"; do
	name=$(basename "$bundle" .most)
	"$MOSTRACE" query "$bundle" "SELECT SUM(bytes) AS bytes, $(of pid), $(of tgid), $(of inode), $(of path), $(of dirty_pid), \
		$(of cause_pid) FROM events WHERE op = 'write'" --format csv | sed "1d; s/^/$name,/"
done
