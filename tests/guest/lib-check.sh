# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks of a bundle, run in the guest or, if the guest has no analyser, on the host.

fail() {
	echo "failed: $*"
	exit 1
}

# release BUNDLE: prints the release of the kernel on which it was recorded.
release() {
	sed -n 's/^ *"release": "\(.*\)",*$/\1/p' "$1/manifest.json"
}

# column NAME: prints the number of this column in the CSV header on stdin.
column() {
	head -n 1 | tr , '\n' | grep -nx "$1" | cut -d: -f1
}

# losses BUNDLE: prints what was lost, and how much of it.
losses() {
	grep -A 20 '"losses"' "$1/manifest.json" | sed '/}/q' | grep -E ': [1-9]' || true
}

# check_rows BUNDLE: nothing was lost, the kernel's counters agree, every byte has a process entry, and all groupings
# have the same sum.
check_rows() {
	# From 7.x on a probe can be preempted, and the kernel then skips other probes and counts them. A skipped one
	# may have been a completion, or what makes an entry.
	skipped=nothing missed=0
	case $(release "$1") in [789].*)
		skipped='_misses\|completions'
		missed=$(sed -n 's/^.*_misses": *\([0-9]*\).*$/\1/p' "$1/manifest.json" | awk '{ n += $1 } END { print n + 0 }')
		;;
	esac
	! losses "$1" | grep -v "$skipped" || fail "$1: losses"
	differs=$(mostrace analyze "$1" | grep -E '^(DIFFERS|INTERFERED)') || true
	[ -z "$differs" ] || [ "$skipped" != nothing ] || fail "$1: $differs"
	mostrace events "$1" --format csv >events.csv
	bytes=$(column bytes <events.csv)
	stage=$(column stage <events.csv)
	awk -F, -v b="$bytes" -v s="$stage" 'NR > 1 && $b > 0 && $s == ""' events.csv >rows.csv
	[ "$(wc -l <rows.csv)" -le "$missed" ] || fail "$1: $(wc -l <rows.csv) rows without a process entry, $missed probes skipped:
$(head -n 12 rows.csv)"
	op=$(column op <events.csv)
	# The tables have the bytes of discards in a separate column.
	total=$(awk -F, -v b="$bytes" -v o="$op" 'NR > 1 && $o != "discard" { n += $b } END { print n }' events.csv)
	[ "$total" -gt 0 ] || fail "$1: no bytes"
	for by in class role process; do
		mostrace analyze "$1" --by "$by" --format csv >table.csv
		at=$(column bytes <table.csv)
		sum=$(awk -F, -v b="$at" 'NR > 1 { n += $b } END { print n }' table.csv)
		[ "$sum" = "$total" ] || fail "$1 by $by: $sum bytes of $total"
	done
}

# check_temporary BUNDLE SUFFIX LEAST [CLASSES]: in the events.csv that check_bundle left, every write to *SUFFIX has a name that
# was seen live, and is data or, on f2fs, a node; at least LEAST of them are of these classes (an extended regular expression), by
# default data.
check_temporary() {
	awk -F, -v s="$2\$" '$8 ~ s' events.csv >temporary.csv
	data=$(grep -cE ",(${4:-data}),[^,]*$2," temporary.csv) || true
	[ "$data" -ge "$3" ] || fail "$1: $data writes to *$2, expected $3"
	grep -v ',live,' temporary.csv >strange.csv || true
	[ ! -s strange.csv ] || fail "$1: $(wc -l <strange.csv) of $(wc -l <temporary.csv) writes to *$2 not named live:
$(head -n 5 strange.csv)"
	kind=$(column kind <events.csv)
	awk -F, -v s="$2\$" -v k="$kind" '$4 > 0 && $8 ~ s && $7 != "data" && $k !~ /node$/' events.csv >strange.csv
	[ ! -s strange.csv ] || fail "$1: $(wc -l <strange.csv) blocks of *$2 called what they are not:
$(head -n 5 strange.csv)"
}

# check_kinds BUNDLE KIND…: there are writes of each kind.
check_kinds() {
	bundle=$1
	shift
	mostrace analyze "$bundle" --by kind --format csv >kinds.csv
	at=$(column write_bytes <kinds.csv)
	for kind in "$@"; do
		awk -F, -v k="$kind" -v b="$at" '$1 == k && $b > 0 { found = 1 } END { exit !found }' kinds.csv ||
			fail "$bundle: no writes of kind $kind: $(cut -d, -f1,"$at" kinds.csv | tr '\n' ' ')"
	done
}
