#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: copies the harness ($TRUTH), the programs that it runs, and the kernel's recorder into a
# guest's root.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

here=$(cd "$(dirname "$0")" && pwd)
"$here/../../../kernel-patches/test/prepare.sh" "$@"
"$here/../add.sh" "$3" "${TRUTH:?}" mostrace-truth
for tool in losetup mount umount; do "$here/../add.sh" "$3" "$tool"; done
cat "$here/lib.sh" >>"$3/lib/guest.sh"
