#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Called by tests/guest/run.sh: prints what a model of a drive writes to its flash, with and without the discards that were recorded.
# usage: MOSTRACE=PROGRAM check.sh OUT      (needs jq)
set -eu
for discard in as-recorded none; do
	"$MOSTRACE" flash "$1/load-load.most" --capacity 8GB --discard $discard --json |
		jq -r --arg name "f2fs, $discard" '.model | [$name, (.own_share * 100), (.curve[] | select(.fill | IN(0.5, 0.8, 0.9, 0.95, 0.98)).ratio), .full.ratio, .after_fstrim.ratio]
			| map(if type == "number" then . * 100 | round / 100 else . end) | join(" | ")'
done
