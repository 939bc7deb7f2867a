#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Applies patches to a kernel's source, as source.sh left it, on the branch `series`: those of a set of lib.sh.
# usage: apply.sh KERNEL [SET]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

kernel=$1 set=${2:-series}
series "$kernel" "$set"
cd "$cache/$kernel/source"
git am --abort 2>/dev/null || true
git checkout -q --force -B series debian
git clean -fdxq block fs include mm
# git am needs the exact context, but not its line numbers.
for patch in "$cache/$kernel/series"/*.patch; do
	[ ! -e "$patch" ] || git am -q "$patch"
done
echo "series: $kernel: $(git log --oneline debian..series | wc -l) patches ($set) applied to $(git log -1 --format=%s debian)"
