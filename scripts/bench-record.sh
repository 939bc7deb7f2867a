#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What recording with our own probes costs on this machine (root): fio's 4 KiB direct random writes to a loop device in memory.
# usage: bench-record.sh MOSTRACE [SECONDS]
#   rate       20,000 IOPS: probes and the recorder, in ns of CPU per write and in percent of one CPU; p99 beside that without
#   saturated  as many as there can be: IOPS with and without, and whether anything was lost
#   idle       how often the recorder wakes
# The probes' time is the kernel's own count (kernel.bpf_stats_enabled), which costs some 20 ns a run itself.
set -eu

mostrace=$1
seconds=${2:-10}
work=$(mktemp -d)
image=$(mktemp -p /dev/shm mostrace-bench.XXXXXX)
truncate -s 512M "$image"
loop=$(losetup -f --show "$image")
stats=$(sysctl -n kernel.bpf_stats_enabled)
cleanup() {
	sysctl -q "kernel.bpf_stats_enabled=$stats"
	losetup -d "$loop"
	rm -rf "$work" "$image"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# writes FIO-OPTION…: one line of fio's terse form, version 3.
writes() {
	fio --name=writes --filename="$loop" --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --direct=1 \
		--time_based --runtime="$seconds" --minimal --terse-version=3 "$@"
}

# ticks PID: CPU time of a process so far, in ticks.
ticks() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

# recorded NAME FIO-OPTION…: fio's line to NAME.fio, the probes to NAME.progs, the recorder's ticks to NAME.ticks, what it says to NAME.said.
recorded() {
	name=$1
	shift
	cat >"$work/inner" <<-END
		before=\$(ticks \$PPID)
		writes $* >"$work/$name.fio"
		bpftool prog show >"$work/$name.progs"
		echo \$((\$(ticks \$PPID) - before)) >"$work/$name.ticks"
	END
	{
		sed -n '/^# writes/,/^}/p; /^# ticks/,/^}/p' "$0"
		echo "loop=$loop seconds=$seconds"
		cat "$work/inner"
	} >"$work/script"
	"$mostrace" record -d "$loop" -o "$work/$name.most" --no-snapshot --source bpf --entries bpf -- sh "$work/script" 2>"$work/$name.said"
}

iops() {
	awk -F';' '{ print $49 }' "$1"
}

# Of writes, the second list of percentiles, in µs.
p99() {
	tr ';' '\n' <"$1" | sed -n 's/^99\.000000%=//p' | tail -n 1
}

# probes NAME PREFIX: ns of a kind of programs per write.
probes() {
	awk -v prefix="$2" -v writes="$(awk -F';' '{ print $47 / 4 }' "$work/$1.fio")" '
		{ name = time = "" }
		{ for (i = 1; i < NF; i++) { if ($i == "name") name = $(i + 1); if ($i == "run_time_ns") time = $(i + 1) } }
		index(name, prefix) == 1 { sum += time }
		END { printf "%.0f", sum / writes }' "$work/$1.progs"
}

recorder() {
	awk -F';' -v ticks="$(cat "$work/$1.ticks")" -v hz="$(getconf CLK_TCK)" \
		'{ printf "%.0f", ticks / hz * 1e9 / ($47 / 4) }' "$work/$1.fio"
}

report() {
	events=$(probes "$1" event_)
	entries=$(probes "$1" mostrace_)
	recorder=$(recorder "$1")
	echo "$1: $(iops "$work/$1.fio") IOPS (without: $(iops "$work/$1.without")), p99 $(p99 "$work/$1.fio") µs (without: $(p99 "$work/$1.without"))"
	echo "  per write: probes of events $events ns, of entries $entries ns, recorder $recorder ns"
	awk -v ns=$((events + entries + recorder)) -v iops="$(iops "$work/$1.fio")" \
		'BEGIN { printf "  together %.2f %% of a CPU\n", ns * iops / 1e7 }'
	sed -n '1s/^.*\.most: /  /p; s/^mostrace: lost/  lost/p' "$work/$1.said"
}

sysctl -q kernel.bpf_stats_enabled=1
writes --rate_iops=20000 >"$work/rate.without"
recorded rate --rate_iops=20000
report rate
sysctl -q kernel.bpf_stats_enabled=0
writes >"$work/saturated.without"
sysctl -q kernel.bpf_stats_enabled=1
recorded saturated
report saturated

"$mostrace" record -d "$loop" -o "$work/idle.most" --no-snapshot --source bpf --entries bpf -w 13 2>/dev/null &
idle=$!
sleep 2
switches() {
	awk '/^voluntary/ { n += $2 } END { print n }' /proc/$idle/task/*/status
}
before=$(switches)
sleep 10
echo "idle: $((($(switches) - before) / 10)) wakeups a second"
wait $idle
