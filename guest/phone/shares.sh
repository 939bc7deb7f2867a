#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Of how much of the bytes written it is known who wrote, which file, and why: a line for each bundle, as in docs/PHONE.md.
# usage: shares.sh BUNDLE…     MOSTRACE is the analyser
set -eu

# of COLUMN: in percent of the bytes.
of() {
	echo "ROUND(100.0 * SUM(CASE WHEN $1 IS NOT NULL THEN bytes ELSE 0 END) / SUM(bytes), 1) AS $1"
}

echo "bundle,bytes,thread,process,inode,name,dirtier,cause"
for bundle in "$@"; do
	name=$(basename "$bundle" .most)
	"$MOSTRACE" query "$bundle" --format csv "SELECT SUM(bytes) AS bytes, $(of pid), $(of tgid), $(of inode), $(of path), $(of dirty_pid), \
		$(of cause_pid) FROM events WHERE op = 'write'" | sed "1d; s/^/$name,/"
done
