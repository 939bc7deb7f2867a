#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Unpacks the programs for a guest of another architecture from Debian's packages, with all that they depend on.
# usage: packages.sh ARCHITECTURE DIR PACKAGE…
# Leaves them in DIR/root, in the packages' folders.
set -eu

arch=$1 dir=$2
shift 2
apt=$dir/apt
. "$(dirname "$0")/apt.sh"

made="bookworm $*"
[ "$(cat "$dir/made" 2>/dev/null)" != "$made" ] || exit 0
update bookworm
echo "guest: fetching programs for $arch" >&2
rm -rf "$dir/root"
mkdir -p "$dir/root"
private apt-get install -y --download-only --no-install-recommends "$@" >/dev/null
for deb in "$apt"/cache/archives/*.deb; do dpkg -x "$deb" "$dir/root"; done
rm -rf "$apt"/cache/archives/*.deb
echo "$made" >"$dir/made"
