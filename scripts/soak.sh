#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Records 4 KiB writes, at SOAK_IOPS a second or at the highest rate, for SECONDS by each SOURCE (root). Reports losses,
# the recorder's peak memory, whether the kernel's counters agree, and whether the trace has as many writes as fio made.
# usage: soak.sh MOSTRACE SECONDS SOURCE…
#   SOAK_IOPS     (100000; 0 for the highest rate)
#   SOAK_ENTRIES  (none): --entries of each recording. With bpf it takes some 250 bytes of disk per write, without 150
#   SOAK_DIR      (TMPDIR): the folder for the recordings
# A source that is not available here is skipped. The exit status is 1 if a trace lacks writes without reporting it.
set -eu

mostrace=$1 seconds=$2
shift 2
rate=${SOAK_IOPS:-100000} entries=${SOAK_ENTRIES:-none}
export TMPDIR="${SOAK_DIR:-${TMPDIR:-/tmp}}"
. "$(dirname "$0")/bench-disk.sh"
trap remove_disk EXIT
trap 'exit 1' INT TERM
bad=0

per_write=150
[ "$entries" = none ] || per_write=250
needs=$((seconds * (rate > 0 ? rate : 200000) * per_write / 1024))
has=$(df --output=avail "$TMPDIR" | tail -n 1)
[ "$has" -ge "$needs" ] || { echo "soak: $TMPDIR has $((has >> 20)) GB; a recording takes some $((needs >> 20)) GB" >&2; exit 1; }

# total FILE: prints the exact number of writes that ended, from fio's JSON.
total() {
	sed -n '/"write" :/,/"trim" :/s/.*"total_ios" : \([0-9]*\).*/\1/p' "$1" | head -n 1
}

# number NAME: prints a number of the manifest.
number() {
	sed -n "s/^ *\"$1\": \([0-9][0-9]*\),*$/\1/p" "$work/manifest" | head -n 1
}

# losses: prints the sum of all losses, and those that are not 0.
losses() {
	sed -n '/^  "losses"/,/}/p' "$work/manifest" | awk -F'[":,]+' '$2 != "losses" && $3 + 0 > 0 { sum += $3; each = each " " $2 $3 }
		END { printf "%d", sum; if (each) printf " (%s)", substr(each, 2) }'
}

# soak SOURCE: records by this source and reports.
soak() {
	cat >"$work/script" <<-END
		fio --thread --name=writes --filename=$loop --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --direct=1 --time_based --runtime=$seconds \
			$([ "$rate" = 0 ] || echo "--rate_iops=$rate") --output-format=json --output="$work/fio"
		awk '/^VmHWM/ { print \$2 }' /proc/\$PPID/status >"$work/peak"
	END
	if ! "$mostrace" record -d "$loop" -o "$work/t.most" --no-snapshot --progress never --source "$1" --entries "$entries" --causes none \
		-- sh "$work/script" 2>"$work/said"; then
		echo "$1: not recorded: $(tail -n 1 "$work/said")"
		return
	fi
	cp "$work/t.most/manifest.json" "$work/manifest"
	fio=$(total "$work/fio")
	# The number of completed writes by their own events; the loop device has no other writers.
	traced=$(sed -n '/"writes"/,/}/s/.*"traced": \([0-9]*\).*/\1/p' "$work/manifest" | head -n 1)
	counters=$(grep 'counters' "$work/said" | sed 's/^mostrace: //')
	rows=$(rows)
	echo "$1: $seconds s, $((fio / seconds)) IOPS; events $(number events), lost $(losses), peak $(($(cat "$work/peak") / 1024)) MB"
	echo "  $counters"
	echo "  fio made $fio writes, the trace has $traced${rows:+, its table of rows $rows}"
	missing=$((fio - traced))
	[ $missing -le 0 ] || [ "$(losses)" != 0 ] || { echo "  MISSING and not reported: $missing"; bad=1; }
	rm -rf "$work/t.most"
}

# rows: prints the number of requests in the analyser's table; nothing if the program has no analyser, or with
# SOAK_ROWS=0, as it takes a while.
rows() {
	[ "${SOAK_ROWS:-1}" = 1 ] || return 0
	"$mostrace" analyze "$work/t.most" --by op --format csv 2>/dev/null | awk -F, '$1 == "write" { print $2 }' || :
}

make_disk
for source in "$@"; do soak "$source"; done
exit $bad
