#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the analyser for arm64, without capture, to compare its output there with this machine's. Most optimisations
# are off, to save time; polars still takes long.
# It is not static, because its table of addresses is beyond the reach of Debian's static libm.
# usage: analyzer.sh
# Leaves TARGET/mostrace-analyzer-aarch64.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${CARGO_TARGET_DIR:-$here/target}
target=aarch64-unknown-linux-gnu
"$here/scripts/setup.sh" gcc-aarch64-linux-gnu libc6-dev-arm64-cross
[ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || rustup target add "$target"
env CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
	CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false \
	cargo build --locked --manifest-path "$here/Cargo.toml" --target "$target" -p mostrace --features mostrace-capture/vendored
aarch64-linux-gnu-strip -o "$folder/mostrace-analyzer-aarch64" "$folder/$target/debug/mostrace"
