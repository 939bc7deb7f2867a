#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Finds links of the Markdown pages whose target or anchor does not exist, paths in code spans that begin in a folder of the
# repository and do not exist, and pages of docs/ that docs/SUMMARY.md (the order of mdBook's chapters) does not name, or names and
# docs/ lacks.
# usage: links.sh
set -eu
cd "$(dirname "$0")/.."

# The targets of [text](target) in a page, without anchors; not those in the web or on the page itself.
targets() {
	grep -o '](.[^)]*)' "$1" | sed 's/^](//; s/)$//; s/#.*//' | grep -v -e '^[a-z]*:' -e '^$'
}

# The anchors of a page: of its headings as GitHub makes them, and named ones.
anchors() {
	sed "/^\`\{3\}/,/^\`\{3\}/d" "$1" | grep '^##* ' | sed 's/^#* //' | tr '[:upper:] ' '[:lower:]-' | sed 's/[^a-z0-9_-]//g'
	sed -n 's/.*<a name="\([^"]*\)".*/\1/p' "$1"
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

loose=$(git ls-files '*.md' | while read -r page; do
	grep -o '](\([^):]*\.md\)\{0,1\}#[^)]*)' "$page" | sed 's/^](//; s/)$//' | while IFS='#' read -r path anchor; do
		target=$page
		[ -z "$path" ] || target=$(dirname "$page")/$path
		[ ! -e "$target" ] || anchors "$target" | grep -qxF "$anchor" || echo "$page: no #$anchor in $target"
	done
done)

chapters=$(targets docs/SUMMARY.md)
unlisted=$(git ls-files 'docs/*.md' | while read -r page; do
	[ "$page" = docs/SUMMARY.md ] || echo "$chapters" | grep -qxF "${page#docs/}" || echo "docs/SUMMARY.md: does not name ${page#docs/}"
done)
absent=$(echo "$chapters" | while read -r chapter; do
	[ -n "$(git ls-files "docs/$chapter")" ] || echo "docs/SUMMARY.md: no page docs/$chapter"
done)

all=$(printf '%s\n' "$lost" "$loose" "$unlisted" "$absent" | sed '/^$/d')
[ -z "$all" ] || { echo "$all" >&2; exit 1; }
