#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the analyser compiles for macOS, if Rust's library for it is installed. Only Rust is checked: `true` stands in for the
# C compiler, whose results are needed for linking alone. Windows has no openat(2), on which the reading of bundles rests.
# usage: check-macos.sh CARGO CHECK-OPTION…
set -eu
target=aarch64-apple-darwin
if [ ! -d "$(rustc --print target-libdir --target $target)" ]; then
	echo "check-macos: skipped: \`rustup target add $target\` installs what it needs" >&2
	exit 0
fi
export CC_aarch64_apple_darwin=true AR_aarch64_apple_darwin=true
cargo=$1
shift
exec "$cargo" check "$@" --package mostrace --bins --target $target
