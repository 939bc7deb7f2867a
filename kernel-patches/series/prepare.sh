#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: the test of the series needs the same in the guest as those of the recorder.
# usage: prepare.sh KERNEL SUITE ROOT
exec "$(dirname "$0")/../test/prepare.sh" "$@"
