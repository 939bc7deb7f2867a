#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by guest/run.sh: checks recordings of the module by tests that cannot check them in the guest,
# OUT/TEST-NAME.stream, each with the program of the test's name.
# usage: check.sh OUT
set -eu

here=$(cd "$(dirname "$0")" && pwd)
failed=0
for stream in "$1"/*-*.stream; do
	[ -e "$stream" ] || continue
	test=$(basename "$stream" | sed 's/-.*//')
	"$here/$test.py" "${stream%.stream}" || failed=1
done
exit $failed
