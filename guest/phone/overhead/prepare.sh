#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by guest/run.sh: as of the tests.
# usage: prepare.sh KERNEL SUITE ROOT
exec "$(dirname "$0")/../prepare.sh" "$@"
