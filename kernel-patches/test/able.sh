#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Whether the module can be built here for the guests; where not, says why.
set -eu

[ "$(id -u)" -eq 0 ] || {
	echo "tests of the kernel module skipped: to build it with another Debian's compiler takes root (chroot)" >&2
	exit 1
}
