#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes FOLDER a checkout of this clone's HEAD, in which the files that have not changed since the last time keep their times.
# It fails if there is something that HEAD does not have.
# usage: checkout.sh FOLDER
set -eu
cd "$(dirname "$0")/.."
if [ -n "$(git status --porcelain)" ]; then
	echo "checkout: there are changes that are not committed" >&2
	exit 1
fi
[ -d "$1/.git" ] || git init --quiet "$1"
git -C "$1" fetch --quiet --update-shallow "$PWD" HEAD
git -C "$1" checkout --quiet --force --detach FETCH_HEAD
git -C "$1" clean --quiet --force -dx
