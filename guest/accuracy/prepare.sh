#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by guest/run.sh: adds the programs that these tests run.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

for tool in setpriv sync mkdir; do "$(dirname "$0")/../add.sh" "$3" "$tool"; done
