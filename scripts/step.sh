#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs a command, and prints its name and how long it took.
# usage: step.sh NAME COMMAND…
name=$1
shift
echo "== $name" >&2
start=$(date +%s)
"$@"
status=$?
[ $status -eq 0 ] && ended=ok || ended=failed
echo "== $name: $ended, $(($(date +%s) - start)) s" >&2
exit $status
