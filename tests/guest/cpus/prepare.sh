#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: copies fio into a guest's root.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu
"$(dirname "$0")/../add.sh" "$3" fio
