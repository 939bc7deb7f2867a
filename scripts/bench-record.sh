#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what recording with our own probes, without causes, costs on this machine (root): fio's direct writes to a loop device in
# memory.
# usage: bench-record.sh MOSTRACE [PART…]
#   rate       4 KiB at 20,000 IOPS: probes and the recorder, in ns of CPU per write and in percent of one CPU
#   p99        the same: p99 in µs without and with recording, in pairs
#   saturated  4 KiB at the highest rate: IOPS without and with recording, in pairs, and what was lost
#   large      1 MiB, with the queue's own limit of a request and with one of 64 KiB, at the highest rate and at
#              200 a second: requests per write, and ns of probes per write
#   idle       how often the recorder wakes up
# and only on request:
#   minute     4 KiB at 100,000 IOPS for a minute, by each source: what was lost
# The probes' time is the kernel's own count (kernel.bpf_stats_enabled), which itself costs some 20 ns per run.
set -eu

mostrace=$1
shift
parts=${*:-rate p99 saturated large idle}
seconds=${BENCH_SECONDS:-8}
pairs=${BENCH_PAIRS:-5}
. "$(dirname "$0")/bench-disk.sh"
stats=$(sysctl -n kernel.bpf_stats_enabled)
trap 'sysctl -q "kernel.bpf_stats_enabled=$stats"; remove_disk' EXIT
trap 'exit 1' INT TERM

# spent PID: prints the CPU time of a process's threads so far, in ns.
spent() {
	cat "/proc/$1"/task/*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }'
}

# recorded NAME RECORD-OPTIONS FIO-OPTION…: writes fio's line to NAME.fio, the programs' statistics to NAME.progs, the
# recorder's CPU time to NAME.ns, and its messages to NAME.said.
recorded() {
	name=$1 options=$2
	shift 2
	{
		sed -n '/^# writes/,/^}/p' "$(dirname "$0")/bench-disk.sh"
		sed -n '/^# spent/,/^}/p' "$0"
		cat <<-END
			set -e
			loop=$loop seconds=$seconds
			before=\$(spent \$PPID)
			writes $* >"$work/$name.fio"
			bpftool prog show >"$work/$name.progs"
			echo \$((\$(spent \$PPID) - before)) >"$work/$name.ns"
		END
	} >"$work/script"
	# shellcheck disable=SC2086 # one word per option
	"$mostrace" record -d "$loop" -o "$work/$name.most" --no-snapshot $options -- sh "$work/script" 2>"$work/$name.said"
	rm -rf "$work/$name.most"
}

own="--source bpf --entries bpf --causes none"

# probes NAME PREFIX: prints the ns per write of a kind of programs: event_ for block events; mostrace_ for entries,
# which also report queued bios and completed requests as events. Programs run for the IO of other disks too, so nothing
# else should run.
probes() {
	grep -q " name $2.* run_time_ns " "$work/$1.progs" || { echo "bench-record: no program $2… has run" >&2; exit 1; }
	awk -v prefix="$2" -v writes="$(writes_of "$work/$1.fio")" '
		{ name = time = "" }
		{ for (i = 1; i < NF; i++) { if ($i == "name") name = $(i + 1); if ($i == "run_time_ns") time = $(i + 1) } }
		index(name, prefix) == 1 { sum += time }
		END { printf "%.0f", sum / writes }' "$work/$1.progs"
}

recorder() {
	echo $(($(cat "$work/$1.ns") / $(writes_of "$work/$1.fio")))
}

losses() {
	sed -n '1s/^.*\.most: /  /p; s/^mostrace: lost/  lost/p' "$work/$1.said"
}

# report NAME: prints the costs.
report() {
	echo "$1: $(iops "$work/$1.fio") IOPS"
	of_events=$(probes "$1" event_)
	of_entries=$(probes "$1" mostrace_)
	echo "$of_events $of_entries $(recorder "$1") $(iops "$work/$1.fio")" | awk '{
		printf "  per write: probes of events %d ns, of entries %d ns, recorder %d ns\n", $1, $2, $3
		printf "  together %.2f %% of a CPU\n", ($1 + $2 + $3) * $4 / 1e7 }'
	losses "$1"
}

bench_rate() {
	sysctl -q kernel.bpf_stats_enabled=1
	recorded rate "$own" --rate_iops=20000
	sysctl -q kernel.bpf_stats_enabled=0
	report rate
}

# paired VALUE FIO-OPTION…: prints VALUE of fio's line without and with recording, in turns, and the median of the
# ratios. The probes' time is not counted meanwhile, because that takes time too.
paired() {
	value=$1
	shift
	for pair in $(seq "$pairs"); do
		# The order changes, so that other work on the machine does not always affect the same one.
		if [ $((pair % 2)) = 0 ]; then recorded paired "$own" "$@"; fi
		writes "$@" >"$work/without.fio"
		if [ $((pair % 2)) = 1 ]; then recorded paired "$own" "$@"; fi
		echo "$("$value" "$work/without.fio") $("$value" "$work/paired.fio")"
	done >"$work/pairs"
	echo "$value, without and with: $(tr '\n' ';' <"$work/pairs")"
	awk '{ print $2 / $1 }' "$work/pairs" | sort -n | awk '{ r[NR] = $1 } END { printf "  median of the ratios: %.3f\n", r[int((NR + 1) / 2)] }'
}

bench_p99() {
	paired p99 --rate_iops=20000
}

bench_saturated() {
	# The first writes to a new file take longer.
	writes >/dev/null
	paired iops
	sysctl -q kernel.bpf_stats_enabled=1
	recorded saturated "$own"
	sysctl -q kernel.bpf_stats_enabled=0
	report saturated
}

# requests: prints the number of writes that the loop device has completed so far.
requests() {
	awk '{ print $5 }' "/sys/block/${loop#/dev/}/stat"
}

# large KIB FIO-OPTION…: measures writes of 1 MiB in requests of at most this many KiB.
large() {
	kib=$1
	shift
	limit_requests "$kib"
	before=$(requests)
	sysctl -q kernel.bpf_stats_enabled=1
	recorded large "$own --causes none" --bs=1m "$@"
	sysctl -q kernel.bpf_stats_enabled=0
	echo "large: 1 MiB, at most $kib KiB in a request: $((($(requests) - before) / $(writes_of "$work/large.fio"))) requests a write," \
		"$(iops "$work/large.fio") IOPS"
	# Only these two programs of entries are counted: the others run for the page cache of the whole machine, which
	# would count at so few writes.
	of_events=$(probes large event_)
	of_bio=$(probes large mostrace_bio_queue)
	of_completions=$(probes large mostrace_rq_complete)
	echo "  per write: probes of events $of_events ns, of its bio $of_bio ns, of completions $of_completions ns"
	losses large
}

bench_large() {
	for kib in "$DEFAULT_KIB" 64; do
		large "$kib"
		# Writes at a low rate: the programs are no longer in the CPU's caches.
		large "$kib" --rate_iops=200
	done
	limit_requests "$DEFAULT_KIB"
}

bench_minute() {
	seconds=60
	for source in bpf tracefs; do
		recorded minute "--source $source --entries bpf --causes none" --rate_iops=100000
		echo "minute, --source $source: $(iops "$work/minute.fio") IOPS, $(writes_of "$work/minute.fio") writes"
		sed 's/^/  /; s/[^ ]*\.most: //' "$work/minute.said"
	done
}

switches() {
	awk '/^voluntary/ { n += $2 } END { print n }' "/proc/$1"/task/*/status
}

bench_idle() {
	# shellcheck disable=SC2086 # one word per option
	"$mostrace" record -d "$loop" -o "$work/idle.most" --no-snapshot $own -w 13 2>/dev/null &
	idle=$!
	sleep 2
	before=$(switches $idle)
	sleep 10
	echo "idle: $((($(switches $idle) - before) / 10)) wakeups a second"
	wait $idle
}

make_disk
for part in $parts; do "bench_$part"; done
