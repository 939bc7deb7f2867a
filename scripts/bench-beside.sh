#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compares the cost of recording with that of biosnoop in one run (root; bpftrace from apt): fio writes 4 KiB directly
# to a loop device in memory.
# usage: bench-beside.sh MOSTRACE
# biosnoop is bpftrace's, with tracepoints instead of its kprobes, which not every kernel has; it prints task, sector,
# bytes and latency of each IO. For each recorder this prints the highest IOPS, the machine's processor time per IO
# (including fio's) at that rate, and p99 at 20,000 IOPS.
set -eu

mostrace=$1
seconds=${BENCH_SECONDS:-8}
command -v bpftrace >/dev/null || { echo "bench-beside: needs bpftrace (apt-get install bpftrace)" >&2; exit 1; }
. "$(dirname "$0")/bench-disk.sh"
trap remove_disk EXIT
trap 'exit 1' INT TERM

# busy: prints the jiffies in which CPUs were not idle so far.
busy() {
	awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 }' /proc/stat
}

# biosnoop WORDS…: runs a command while biosnoop traces.
biosnoop() {
	dev=$((7 << 20 | ${loop#/dev/loop}))
	cat >"$work/biosnoop.bt" <<-PROGRAM
		tracepoint:block:block_bio_queue /args->dev == $dev/ {
			@start[args->sector] = nsecs; @pid[args->sector] = pid; @comm[args->sector] = comm;
		}
		tracepoint:block:block_rq_complete /args->dev == $dev && @start[args->sector]/ {
			printf("%u %s %d %s %d %d %d\n", elapsed / 1000, @comm[args->sector], @pid[args->sector], args->rwbs, args->sector,
				args->nr_sector * 512, (nsecs - @start[args->sector]) / 1000);
			delete(@start[args->sector]); delete(@pid[args->sector]); delete(@comm[args->sector]);
		}
		END { clear(@start); clear(@pid); clear(@comm); }
	PROGRAM
	bpftrace -o "$work/biosnoop.out" "$work/biosnoop.bt" >"$work/biosnoop.said" 2>&1 &
	tracer=$!
	until grep -qs Attaching "$work/biosnoop.out" "$work/biosnoop.said"; do sleep 0.2; done
	sleep 1
	"$@"
	kill -INT $tracer
	wait $tracer || true
	[ "$(wc -l <"$work/biosnoop.out")" -gt 1000 ] || { cat "$work/biosnoop.said" >&2; exit 1; }
	rm "$work/biosnoop.out"
}

# recorded OPTIONS WORDS…: runs a command while mostrace records.
recorded() {
	options=$1
	shift
	# shellcheck disable=SC2086 # one word per option
	"$mostrace" record -d "$loop" -o "$work/beside.most" --no-snapshot $options -- "$@" 2>"$work/said"
	rm -rf "$work/beside.most"
}

# measure NAME WORDS…: measures with the command WORDS, to which writes.sh is appended.
measure() {
	name=$1
	shift
	"$@" sh "$work/writes.sh"
	saturated="$(iops "$work/fio") $(awk -v jiffies="$(cat "$work/busy")" -v hz="$(getconf CLK_TCK)" -v writes="$(writes_of "$work/fio")" \
		'BEGIN { printf "%.1f", jiffies / hz * 1e6 / writes }')"
	"$@" sh "$work/writes.sh" --rate_iops=20000
	echo "$name: $saturated $(p99 "$work/fio")" | awk '{ n = NF; p99 = $n; cpu = $(n - 1); iops = $(n - 2); NF = n - 3
		printf "%s %d IOPS, %s µs of processor an IO, p99 at 20,000 IOPS %s µs\n", $0, iops, cpu, p99 }'
}

make_disk
{
	sed -n '/^# writes/,/^}/p' "$(dirname "$0")/bench-disk.sh"
	sed -n '/^# busy/,/^}/p' "$0"
	cat <<-END
		loop=$loop seconds=$seconds
		before=\$(busy)
		writes "\$@" >"$work/fio"
		echo \$((\$(busy) - before)) >"$work/busy"
	END
} >"$work/writes.sh"
measure none env
measure biosnoop biosnoop
measure "record --source bpf --causes none" recorded "--source bpf --causes none"
measure "record" recorded ""
