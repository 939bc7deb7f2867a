#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Whether the guests can run here; where not, says why.
# usage: able.sh PACKAGE…
set -eu

skip() {
	echo "guest tests skipped: $*" >&2
	exit 1
}

[ "$(uname -m)" = x86_64 ] || skip "the guests are x86-64, this is $(uname -m)"
command -v apt-get >/dev/null || skip "the kernels come from Debian by apt, which is not here"
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || skip "no debian-archive-keyring to check the kernels with"
"$(dirname "$0")/../scripts/setup.sh" "$@" || skip "these could not be installed: $*"
