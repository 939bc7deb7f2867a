#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs what building, capturing and testing need, by the names of Debian's packages.
# usage: setup.sh PACKAGE…
set -eu

missing=
for package in "$@"; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
		missing="$missing $package"
done
if [ -n "$missing" ]; then
	sudo=
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || {
			echo "setup: these packages are needed, and neither root nor sudo is at hand:$missing" >&2
			exit 1
		}
		sudo=sudo
	fi
	echo "setup: installing$missing" >&2
	$sudo apt-get update -qq
	# shellcheck disable=SC2086 # one word per package
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

# The newest version that a dependency needs; Cargo.toml has the same.
needed=1.89
if ! command -v cargo >/dev/null; then
	echo "setup: cargo not found: install Rust $needed or later by \`sudo apt install rustup && rustup default stable\` (Debian trixie and later), or from https://rustup.rs" >&2
	exit 1
fi
found=$(cargo --version | sed 's/^cargo \([0-9]*\.[0-9]*\).*/\1/')
if [ "$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ]; then
	echo "setup: cargo $found is too old: Rust $needed or later is needed: \`rustup update\`, or, where cargo is Debian's, \`sudo apt install rustup && rustup default stable\` (trixie and later), or https://rustup.rs" >&2
	exit 1
fi
