#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by guest/run.sh: where the module and the probes recorded the same, whether they say the same.
# usage: check.sh OUT
set -eu

here=$(cd "$(dirname "$0")" && pwd)
failed=0
for stream in "$1"/same-*.stream; do
	[ -e "$stream" ] || continue
	"$here/compare.py" "${stream%.stream}" || failed=1
done
exit $failed
