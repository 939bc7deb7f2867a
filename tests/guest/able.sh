#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs a command if the guests can run here. Otherwise it says why not and succeeds, like a test that is ignored; but
# under MOSTRACE_NO_SKIP=1 it fails if what is missing could be had here.
# usage: able.sh "PACKAGE…" COMMAND…
set -eu

skip() {
	echo "guest tests skipped: $*" >&2
	exit 0
}

# missing WORDS: for what could be had on this machine.
missing() {
	[ -z "${MOSTRACE_NO_SKIP:-}" ] || { echo "guest tests, and MOSTRACE_NO_SKIP is set: $*" >&2; exit 1; }
	skip "$*"
}

packages=$1
shift
[ "$(uname -m)" = x86_64 ] || skip "the guests are x86-64, this is $(uname -m)"
command -v apt-get >/dev/null || skip "the kernels come from Debian by apt, which is not here"
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing "no debian-archive-keyring to check the kernels with"
# shellcheck disable=SC2086 # one word per package
"$(dirname "$0")/../../scripts/setup.sh" $packages || missing "these could not be installed: $packages"
exec "$@"
