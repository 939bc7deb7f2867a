#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Applies the kernels' series to their sources, as source.sh left them, on the branch `series`.
# usage: apply.sh KERNEL…
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

# apply KERNEL: git am needs the exact context, but not its line numbers.
apply() {
	cd "$cache/$1/source"
	git am --abort 2>/dev/null || true
	git checkout -q --force -B series debian
	git clean -fdxq block fs include mm
	series "$1"
	git am -q "$cache/$1/series"/*.patch
	echo "series: $1: $(git log --oneline debian..series | wc -l) patches applied to $(git log -1 --format=%s debian)"
}

for kernel in "$@"; do (apply "$kernel"); done
