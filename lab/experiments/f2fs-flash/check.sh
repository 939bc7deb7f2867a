#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh with what the guest left.
# usage: MOSTRACE=PROGRAM check.sh OUT
exec "$(dirname "$0")/../flash-row.sh" "$MOSTRACE" f2fs "$1/load-load.most"
