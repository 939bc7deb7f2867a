#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: checks what tests left that cannot check it in the guest, OUT/TEST-NAME.stream and
# OUT/TEST-NAME.module.csv, each with the program of the test's name.
# usage: check.sh OUT
set -eu

here=$(cd "$(dirname "$0")" && pwd)
failed=0
for left in "$1"/*-*.stream "$1"/*-*.module.csv; do
	[ -e "$left" ] || continue
	test=$(basename "$left" | sed 's/-.*//')
	name=${left%.stream}
	"$here/$test.py" "${name%.module.csv}" || failed=1
done
exit $failed
