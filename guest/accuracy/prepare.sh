#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by guest/run.sh: adds the programs and the writers that these tests run.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

here=$(dirname "$0")
for tool in setpriv sync mkdir addpart; do "$here/../add.sh" "$3" "$tool"; done
mkdir -p "$3/lib/accuracy"
cp "$here"/writers/*.sh "$3/lib/accuracy/"
