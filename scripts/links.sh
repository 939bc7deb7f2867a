#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Finds links of the Markdown pages whose target does not exist, paths in code spans that begin in a folder of the repository and
# do not exist, and pages of docs/ that docs/SUMMARY.md (the order of mdBook's chapters) does not name, or names and docs/ lacks.
# usage: links.sh
set -eu
cd "$(dirname "$0")/.."

# The targets of [text](target) in a page, without anchors; not those in the web or on the page itself.
targets() {
	grep -o '](.[^)]*)' "$1" | sed 's/^](//; s/)$//; s/#.*//' | grep -v -e '^[a-z]*:' -e '^$'
}

folders=$(git ls-tree -d --name-only HEAD | paste -sd '|')
lost=$(git ls-files '*.md' | while read -r page; do
	{
		targets "$page"
		# Code spans, from the root or beside the page; no patterns, no placeholders.
		sed 's/`/\n/g' "$page" | grep -E "^($folders)/[A-Za-z0-9_./-]*$"
	} | while read -r path; do
		[ -e "$path" ] || [ -e "$(dirname "$page")/$path" ] || echo "$page: no $path"
	done
done)

chapters=$(targets docs/SUMMARY.md)
unlisted=$(git ls-files 'docs/*.md' | while read -r page; do
	[ "$page" = docs/SUMMARY.md ] || echo "$chapters" | grep -qxF "${page#docs/}" || echo "docs/SUMMARY.md: does not name ${page#docs/}"
done)
absent=$(echo "$chapters" | while read -r chapter; do
	[ -n "$(git ls-files "docs/$chapter")" ] || echo "docs/SUMMARY.md: no page docs/$chapter"
done)

all=$(printf '%s\n' "$lost" "$unlisted" "$absent" | sed '/^$/d')
[ -z "$all" ] || { echo "$all" >&2; exit 1; }
