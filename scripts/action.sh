#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The script behind action.yml: downloads the program unless BINARY is set, and measures RUN with OPTIONS. What it downloads runs as
# root, so it must have the checksum SHA256 or, without one, be attested as built by the release's own workflow. A list of checksums
# beside the archive would come from whoever can replace the archive.
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
		if [ -n "${SHA256:-}" ]; then
			echo "$SHA256  $name.tar.zst" | sha256sum -c --quiet --strict -
		else
			gh attestation verify "$name.tar.zst" --repo "$REPOSITORY" --source-ref "refs/tags/$tag" \
				--signer-workflow "$REPOSITORY/.github/workflows/release.yml" >&2
		fi
		tar --zstd -xf "$name.tar.zst"
	)
	binary=$folder/mostrace-${tag#v}/bin/mostrace
fi

if [ -n "${OUTPUT:-}" ]; then
	set -- -o "$OUTPUT"
else
	set --
fi
# One word per option, and no file's name in place of one.
set -f
# shellcheck disable=SC2086
set -- "$binary" measure --format github ${OPTIONS:-} "$@" -- sh -ec "$RUN"
set +f
# RUN has the caller's PATH, in one word whatever is in it.
[ "$(id -u)" -eq 0 ] || set -- sudo env "PATH=$PATH" "$@"
exec "$@"
