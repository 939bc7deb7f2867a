#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: adds the programs and the writers that these tests run.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

here=$(dirname "$0")
for tool in setpriv sync mkdir addpart; do "$here/../add.sh" "$3" "$tool"; done
mkdir -p "$3/lib/accuracy"
cp "$here"/writers/*.sh "$3/lib/accuracy/"
# The kprobe events of these do not find fields by their types.
case $1 in
5.10 | 6.1)
	built=$(mktemp -d)
	"$here/../../../kernel-patches/test/module.sh" "$1" "$built"
	rm -r "$built"
	"$here/offsets.sh" "$1" "$3/lib/accuracy/offsets"
	;;
esac
