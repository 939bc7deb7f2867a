#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes report pages of all samples, and one page of two samples, and checks them with Chromium and axe-core.
# usage: report-check.sh MOSTRACE      needs chromium, node, npm
set -eu
cd "$(dirname "$0")/.."
mostrace=$1
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

npm install --silent --prefix "$pages" puppeteer-core axe-core >/dev/null
for sample in sample-traces/*.most.tar.zst; do
	"$mostrace" report "$sample" -o "$pages/$(basename "$sample" .most.tar.zst).html"
done
"$mostrace" report sample-traces/delete.most.tar.zst sample-traces/wal.most.tar.zst -o "$pages/two.html"
NODE_PATH=$pages/node_modules node scripts/report-check.cjs "$pages"/*.html
