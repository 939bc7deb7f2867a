#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes the mails of an upstream series from a git tree of the kernel: cover letter 0/N and patches, with the tree's commit as
# base-commit. No sign-off line is added: whoever sends them signs off (git format-patch -s).
# usage: format.sh jbd2|iomap KERNEL TREE OUT
# KERNEL says which of the patches' forms fits the tree's HEAD: 7.2, or 6.12.
set -eu

[ $# -eq 4 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
name=$1 kernel=$2 tree=$3 out=$(realpath -m "$4")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
branch=mostrace-$name
trap 'git -C "$tree" worktree remove --force "$work/tree" 2>/dev/null; git -C "$tree" branch -qD "$branch" 2>/dev/null; rm -rf "$work"' EXIT
export GIT_COMMITTER_NAME=mostrace GIT_COMMITTER_EMAIL=maintainers@users.noreply.mostrace.example

# Only what the patches touch is checked out.
git -C "$tree" worktree add -q --no-checkout -B "$branch" "$work/tree" HEAD
cd "$work/tree"
# shellcheck disable=SC2046 # one word per file
git sparse-checkout set --no-cone $(sed -n 's|^+++ b/|/|p' "$here/$name/$kernel"/*.patch)
git checkout -q
base=$(git rev-parse HEAD)
git am -q "$here/$name/$kernel"/*.patch
git -c "branch.$branch.description=$(cat "$here/$name/cover-letter.txt")" format-patch -q --numbered --cover-letter \
	--cover-from-description=subject --base="$base" --abbrev=12 --no-signature -o "$out" "$base"
ls "$out"/*.patch
