#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints two lines of a table: what a model of a drive writes to its flash for a recording, with its discards and without.
# usage: flash-row.sh MOSTRACE NAME BUNDLE [OPTION…]      (options of `mostrace flash`; needs jq)
set -eu
mostrace=$1 name=$2 bundle=$3
shift 3
for discard in as-recorded none; do
	"$mostrace" flash "$bundle" --capacity 8GB --discard $discard "$@" --json |
		jq -r --arg name "$name, $discard" '.model
			| [$name, .own_share * 100, (.curve[] | select(.fill | IN(0.5, 0.8, 0.9, 0.95, 0.98)).ratio), .full.ratio, .after_fstrim.ratio]
			| map(if type == "number" then . * 100 | round / 100 else . end) | join(" | ")'
done
