#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the program for a phone: one static file of some 9 MB, without tables, that needs nothing else.
# usage: phone.sh aarch64 | armv7 | x86_64
# Leaves TARGET/mostrace-ARCHITECTURE.
set -eu

# Packages needed besides those for a native build: the cross compiler, and what libelf's own build runs.
packages="autoconf automake autopoint bison flex gawk make"
case ${1:-} in
aarch64) target=aarch64-unknown-linux-gnu compiler=aarch64-linux-gnu-gcc packages="$packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
armv7) target=armv7-unknown-linux-gnueabihf compiler=arm-linux-gnueabihf-gcc packages="$packages gcc-arm-linux-gnueabihf libc6-dev-armhf-cross" ;;
x86_64) target=x86_64-unknown-linux-gnu compiler=gcc ;;
*) echo "usage: phone.sh aarch64 | armv7 | x86_64" >&2; exit 2 ;;
esac
arch=$1
# A limit on the size, to notice growth.
most=10000000
here=$(cd "$(dirname "$0")/.." && pwd)
folder=${CARGO_TARGET_DIR:-$here/target}

# has_target: succeeds if the compiler has the target's library, from rustup or from the distribution.
has_target() {
	[ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]
}

# shellcheck disable=SC2086 # one word per package
"$here/scripts/setup.sh" $packages
has_target || ! command -v rustup >/dev/null || rustup target add "$target"
has_target || {
	echo "phone: Rust's library for $target is missing, and there is no rustup to get it (https://rustup.rs, or Debian's libstd-rust-dev of that architecture)" >&2
	exit 1
}

upper=$(echo "$target" | tr 'a-z-' 'A-Z_')
lower=$(echo "$target" | tr - _)
env "CARGO_TARGET_${upper}_LINKER=$compiler" "CARGO_TARGET_${upper}_RUSTFLAGS=-C target-feature=+crt-static" \
	"CC_$lower=$compiler" cargo build --locked --profile phone --manifest-path "$here/Cargo.toml" --target "$target" \
	-p mostrace --no-default-features --features mostrace-capture/vendored

built=$folder/$target/phone/mostrace
# A program that is linked statically has no interpreter.
! readelf -lW "$built" | grep -q INTERP || { echo "phone: $built is not static" >&2; exit 1; }
size=$(stat -c %s "$built")
[ "$size" -le $most ] || { echo "phone: $built has $size bytes, more than $most" >&2; exit 1; }
cp "$built" "$folder/mostrace-$arch"
echo "phone: $folder/mostrace-$arch, $size bytes"
