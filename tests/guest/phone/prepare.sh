#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: copies the module built for that kernel into a guest's root, the functions that load and
# check it, an empty f2fs with blocks of 16 KiB, and a 32-bit program. As on a phone, kernel.kptr_restrict is 2.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

recorder=$(cd "$(dirname "$0")" && pwd)/../../../kernel-patches/test
"$recorder/module.sh" "$1" "$3/lib"
cat "$recorder/lib.sh" >>"$3/lib/guest.sh"
echo 'echo 2 >/proc/sys/kernel/kptr_restrict' >>"$3/lib/guest.sh"
cp "$(dirname "$0")/f2fs-16k.img.zst" "$3/lib/"
"$(dirname "$0")/call32.py" "$3/usr/local/bin/call32"
