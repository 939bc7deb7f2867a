#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: copies into a guest's root what these tests need: the module for that kernel (unless the
# recorder is built in), their programs, and their part of the library.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

kernel=$1 suite=$2 root=$3
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin

[ "$suite" = series ] || "$here/module.sh" "$kernel" "$root/lib"
for tool in fio setpriv e2fsck fsck.f2fs; do "$here/../../tests/guest/add.sh" "$root" "$tool"; done
for program in probe share count programs; do
	cc -O1 -Wall -Werror -static -I"$here/../module" -o "$root/usr/local/bin/$program" "$here/$program.c"
done
cc -O1 -static -pthread -o "$root/usr/local/bin/through" "$here/../../tests/guest/through.c"
cat "$here/lib.sh" >>"$root/lib/guest.sh"
# OVERHEAD="repetitions=1 …" sets variables of overhead/overhead.sh.
printf '%s\n' "${OVERHEAD:-}" >"$root/etc/overhead"
