#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compares what the guest left with the truth.
# usage: check.sh OUT
set -eu

here=$(dirname "$0")
failed=0
python3 "$here/test_judge.py" -q || failed=1
if ls "$1"/*.truth >/dev/null 2>&1; then python3 "$here/compare.py" "${MOSTRACE:-mostrace}" "$1" || failed=1; fi
if ls "$1"/*.buffers >/dev/null 2>&1; then python3 "$here/owners.py" "${MOSTRACE:-mostrace}" "$1" || failed=1; fi
exit $failed
