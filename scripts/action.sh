#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The script behind action.yml: downloads the program unless BINARY is set, and measures RUN with OPTIONS.
set -eu

binary=${BINARY:-}
if [ -z "$binary" ]; then
	folder=$(mktemp -d)
	url=https://github.com/$REPOSITORY/releases
	tag=${VERSION:-latest}
	[ "$tag" != latest ] || tag=$(curl -sSfL -o /dev/null -w '%{url_effective}' "$url/latest" | sed 's,.*/,,')
	name=mostrace-${tag#v}-$(uname -m)-linux-gnu
	(
		cd "$folder"
		curl -sSfLO "$url/download/$tag/$name.tar.zst"
		curl -sSfLO "$url/download/$tag/SHA256SUMS"
		grep " $name.tar.zst\$" SHA256SUMS | sha256sum -c --quiet -
		tar --zstd -xf "$name.tar.zst"
	)
	binary=$folder/mostrace-${tag#v}/bin/mostrace
fi

sudo=
[ "$(id -u)" -eq 0 ] || sudo="sudo env PATH=$PATH"
if [ -n "${OUTPUT:-}" ]; then
	set -- -o "$OUTPUT"
else
	set --
fi
# shellcheck disable=SC2086 # one word per option
exec $sudo "$binary" measure --format github ${OPTIONS:-} "$@" -- sh -ec "$RUN"
