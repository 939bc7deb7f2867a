#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: compares the tables of test/same.sh.
# usage: check.sh OUT
set -eu
[ ! -e "$1/told.csv" ] || exec python3 "$(dirname "$0")/same.py" "$1/stock.csv" "$1/told.csv"
