#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Captures an SQLite workload on a fresh loop-mounted ext4 and shows where every byte went. If that is not possible it
# says why, and analyses a sample.
# usage: demo.sh MOSTRACE
set -eu

mostrace=$1
here=$(dirname "$0")
sample=$here/../sample-traces/delete.most.tar.zst
# shellcheck source=scripts/loop-ext4.sh
. "$here/loop-ext4.sh"

fallback() {
	echo "demo: cannot capture here: $1" >&2
	echo "demo: analysing the sample trace instead: $sample" >&2
	exec "$mostrace" analyze "$sample"
}

say() { printf '\n\033[1m$ %s\033[0m\n' "$*" >&2; }

loop_ext4 256 || fallback "$why"
say mostrace record -d "$loop" -o demo.most -- mostrace workload sqlite --transactions 200
"$mostrace" record -d "$loop" -o "$work/demo.most" -- \
	"$mostrace" workload sqlite --transactions 200 "$mnt/test.db" 2>"$work/log" ||
	{ cat "$work/log" >&2; fallback "$(tail -n 1 "$work/log")"; }
cat "$work/log" >&2
say mostrace analyze demo.most
"$mostrace" analyze "$work/demo.most"
