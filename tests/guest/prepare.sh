#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: adds the programs that these tests run besides the guest's own tools. perl can call any ioctl; two-ways is
# a program with frame pointers, through a daemon of FUSE.
# usage: prepare.sh KERNEL SUITE ROOT
set -eu

for tool in perl setpriv; do "$(dirname "$0")/add.sh" "$3" "$tool"; done
cp "$(dirname "$0")/ways.pl" "$3/lib/"
perl -Mstrict -Mwarnings -MFcntl -MDynaLoader -e 'print "$_\n" for values %INC, @DynaLoader::dl_shared_objects' | while read -r module; do
	install -D -m 644 "$module" "$3$module"
done

# glibc loads libgcc_s when it unwinds; linked to it, the program has it beside it.
gcc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -rdynamic -Wl,--build-id,--no-as-needed -o "$3/tmp/two-ways" \
	"$(dirname "$0")/../../analyzer/cli/tests/stacks/program.c" -lgcc_s
"$(dirname "$0")/add.sh" "$3" "$3/tmp/two-ways"
rm "$3/tmp/two-ways"

gcc -O1 -pthread -o "$3/tmp/through" "$(dirname "$0")/through.c"
"$(dirname "$0")/add.sh" "$3" "$3/tmp/through"
rm "$3/tmp/through"
