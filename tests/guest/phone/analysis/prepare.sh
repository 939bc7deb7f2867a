#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: copies the analyser for the guest's architecture ($ANALYZER) into its root.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

cp "${ANALYZER:?}" "$3/usr/local/bin/mostrace-analyzer"
cat "$(dirname "$0")/lib.sh" >>"$3/lib/guest.sh"
