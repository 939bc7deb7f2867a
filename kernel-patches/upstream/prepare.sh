#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: what the benchmark of the tracepoints needs in a guest.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu
"$(dirname "$0")/../../tests/guest/add.sh" "$3" fio
