#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by guest/run.sh: the test of the series needs in the guest what those of the recorder do.
# usage: prepare.sh KERNEL SUITE ROOT
exec "$(dirname "$0")/../test/prepare.sh" "$@"
