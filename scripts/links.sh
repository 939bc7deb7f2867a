#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Finds links of the Markdown pages that lead nowhere, and paths in code spans that begin in a folder of the repository.
# usage: links.sh
set -eu
cd "$(dirname "$0")/.."

folders=$(git ls-tree -d --name-only HEAD | paste -sd '|')
lost=$(git ls-files '*.md' | while read -r page; do
	{
		# [text](target), but for the web and the page itself.
		grep -o '](.[^)]*)' "$page" | sed 's/^](//; s/)$//; s/#.*//' | grep -v -e '^[a-z]*:' -e '^$'
		# Code spans, from the root or beside the page; no patterns, no placeholders.
		sed 's/`/\n/g' "$page" | grep -E "^($folders)/[A-Za-z0-9_./-]*$"
	} | while read -r path; do
		[ -e "$path" ] || [ -e "$(dirname "$page")/$path" ] || echo "$page: no $path"
	done
done)
[ -z "$lost" ] || { echo "$lost" >&2; exit 1; }
