#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks what comes with the program against deny.toml: licences, versions, sources and, where the database of advisories can
# be had, known faults. Without cargo-deny it says so and checks nothing.
set -eu
cd "$(dirname "$0")/.."

if ! command -v cargo-deny >/dev/null; then
	echo "deny: skipped, cargo-deny not found: install it by \`cargo install --locked cargo-deny\`" >&2
	exit 0
fi
cargo deny --locked check licenses bans sources
if ! cargo deny --locked fetch db 2>/dev/null; then
	echo "deny: advisories skipped: their database cannot be had here" >&2
	exit 0
fi
cargo deny --locked check --disable-fetch advisories
