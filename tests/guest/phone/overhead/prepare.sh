#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: adds the same as for the tests.
# usage: prepare.sh KERNEL SUITE ROOT
exec "$(dirname "$0")/../prepare.sh" "$@"
