#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Captures the sample traces: 1,000 inserts, one per transaction, synchronous FULL, on a fresh
# ext4 with 4 KiB blocks (data=ordered, noatime) on a loop device, once per journal mode.
# usage: capture.sh MOSTRACE
set -eu

# By its name alone: the bundle keeps the command as it was given.
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/loop-ext4.sh
. "$here/../scripts/loop-ext4.sh"

capture() (
	mode=$1
	loop_ext4 256 -b 4096 || { echo "capture: $why" >&2; exit 1; }
	# An app's folder, and the names that an app would use.
	mkdir "$mnt/app"
	cd "$work"
	mostrace record -d "$loop" --source tracefs -o "$mode.most.tar.zst" --sync -- \
		mostrace workload sqlite --op insert --transactions 1000 --journal "$mode" \
		--sync full mnt/app/test.db
	mv "$mode.most.tar.zst" "$here/"
)

for mode in delete truncate persist wal; do
	capture "$mode"
done
ls -l "$here"/*.most.tar.zst
