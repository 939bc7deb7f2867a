#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes report pages of all samples, of two of them, of all of them and of rare traces, and checks them: their scripts' types and own tests,
# what a reader relies on, Chromium with axe-core, and random selections against `mostrace query`.
# With names, such as wal, two or seven, only these pages are checked: all of them take over ten minutes.
# usage: report-check.sh MOSTRACE [PAGE…]      needs chromium, node, npm
set -eu
cd "$(dirname "$0")/.."
mostrace=$1
shift
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

npm install --silent --prefix "$pages" puppeteer-core axe-core typescript >/dev/null
for sample in sample-traces/*.most.tar.zst; do
	"$mostrace" report "$sample" -o "$pages/$(basename "$sample" .most.tar.zst).html"
done
"$mostrace" report sample-traces/delete.most.tar.zst sample-traces/wal.most.tar.zst -o "$pages/two.html"
"$mostrace" report sample-traces/*.most.tar.zst -o "$pages/seven.html"
mkdir "$pages/rare"
node scripts/report-traces.cjs "$pages/rare" sample-traces/wal.most.tar.zst
for trace in "$pages"/rare/*; do
	name=$(basename "$trace")
	"$mostrace" report "$trace" -o "$pages/${name%%.*}.html"
done
for page in "$pages"/*.html; do
	case " $* " in
	"  " | *" $(basename "$page" .html) "*) ;;
	*) rm "$page" ;;
	esac
done
for script in analyzer/report/src/page/js/*.js scripts/report-*.cjs; do node --check "$script"; done
"$pages/node_modules/.bin/tsc" --noEmit --allowJs --checkJs --strict false --target es2023 --lib es2023,dom,dom.iterable --skipLibCheck \
	analyzer/report/src/page/js/*.js
(cd analyzer/report/src/page/test && node --test .)
export NODE_PATH="$pages/node_modules"
for sample in delete wal f2fs-wal; do
	[ -e "$pages/$sample.html" ] || continue
	node scripts/report-sums.cjs "$mostrace" "$pages/$sample.html" "sample-traces/$sample.most.tar.zst" 17
done
node scripts/report-answers.cjs "$pages"/*.html
node scripts/report-check.cjs "$pages"/*.html
