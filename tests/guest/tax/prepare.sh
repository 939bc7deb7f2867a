#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: adds the program that measures.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

cc -O2 -Wall -static -o "$3/usr/local/bin/bench-tax" "$(dirname "$0")/../../../scripts/bench-tax.c"
