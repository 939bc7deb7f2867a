#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Kills the recorder, its guard, or both, N times at random moments under load, and checks whether anything is left
# behind (root).
# usage: kills.sh MOSTRACE N [SEED]
# The same SEED gives the same sources, victims and moments. If one is killed, the other one restores everything. If
# both are, the next recording, which is made at once, must remove what they left, and so must it remove temporary
# folders of killed recorders. The checks cover instances of tracefs, what others share there (tracer, clock, switch and
# buffers), the block tracer of the disk, mounts, loop devices, temporary folders, processes and BPF programs. The exit
# status is 1 if anything was left.
set -eu

mostrace=$1 times=$2 seed=${3:-1}
tracing=/sys/kernel/tracing
mountpoint -q $tracing || mount -t tracefs nodev $tracing
work=$(mktemp -d)
mkdir "$work/tmp"
loop='' load='' recorder='' bad=0
clean() {
	for process in $load $recorder; do kill -KILL "$process" 2>/dev/null || :; done
	wait
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
truncate -s 64M "$work/image"
loop=$(losetup --find --show "$work/image")
enable=/sys/block/${loop#/dev/}/trace/enable

# plan: prints a line for each time: the source, the victim, and after how many ms.
plan() {
	awk -v times="$times" -v seed="$seed" 'BEGIN {
		srand(seed)
		split("tracefs bpf", source)
		split("recorder guard both", victim)
		for (i = 0; i < times; i++)
			print source[1 + int(2 * rand())], victim[1 + int(3 * rand())], int(2000 * rand() * rand())
	}'
}

# settings SCOPE: prints all settings, or with `undone` those that the survivor restores.
settings() {
	for file in current_tracer tracing_on trace_clock buffer_size_kb; do
		echo "$file $(cat $tracing/$file)"
	done
	echo "enable $(cat "$enable")"
	# A tracefs that a recorder mounted stays mounted: others may use it by then.
	echo "mounts $(grep -c "$loop \|$work" /proc/self/mounts)"
	echo "loops $(losetup --noheadings --list --output NAME --associated "$work/image")"
	[ "$1" = undone ] || echo "temporary $(find "$work/tmp" -mindepth 1 -maxdepth 1 | wc -l)"
}

# settled SCOPE BY: waits until nothing is left; reports what stays.
settled() {
	tries=0
	until rest=$(left "$1") && [ -z "$rest" ]; do
		[ $((tries += 1)) -lt 100 ] || break
		sleep 0.1
	done
	[ -z "$rest" ] || { left_behind=y; echo "LEFT BEHIND by $source, $victim killed after $ms ms (status $status), $2: $rest"; }
}

# left SCOPE: prints what is left of the recorder and its guards. Other recorders may run too, so processes that died
# are known by their ids.
left() {
	# shellcheck disable=SC2086 # a list
	for process in $known; do
		[ ! -d "/proc/$process" ] || [ "$(awk '/^State/ { print $2 }' "/proc/$process/status" 2>/dev/null)" = Z ] || echo "process $process"
		find $tracing/instances -maxdepth 1 -name "mostrace-$process-*"
	done
	settings "$1" | diff "$work/$1" - | grep '^[<>]' || :
}

record() {
	TMPDIR=$work/tmp "$mostrace" record --no-snapshot --progress never -d "$loop" -o "$work/$1" --source "$2" --entries "$3" \
		-w "$4" >"$work/said" 2>&1
}

# finish SOURCE: records once more, because the next recorder that makes a temporary folder removes those of killed
# ones.
finish() {
	record next.most "$1" none 0.1 || { cat "$work/said"; return 1; }
	! grep -q 'were removed' "$work/said" || swept=$((swept + 1))
	rm -rf "$work/next.most"
}

# guards PID: prints the guards of a recorder.
guards() {
	pgrep -P "$1" -f mostrace-guard || :
}

fio --thread --name=load --filename="$loop" --rw=randwrite --bs=4k --ioengine=libaio --iodepth=4 --direct=1 --rate_iops=2000 --time_based \
	--runtime=1d >/dev/null 2>&1 &
load=$!
for scope in all undone; do settings $scope >"$work/$scope"; done
plan >"$work/plan"
swept=0 began=$(date +%s)
while read -r source victim ms; do
	entries=bpf
	[ "$source" = bpf ] || entries=tracefs
	TMPDIR=$work/tmp "$mostrace" record --no-snapshot --progress never -d "$loop" -o "$work/t.most" --source "$source" \
		--entries $entries -w 60 >"$work/killed" 2>&1 &
	recorder=$!
	known=$recorder
	sleep "$(awk -v ms="$ms" 'BEGIN { print ms / 1000 }')"
	guards=$(guards $recorder)
	known="$known $guards"
	# shellcheck disable=SC2086 # a list
	case $victim in
	recorder) kill -KILL $recorder 2>/dev/null || : ;;
	guard)
		[ -z "$guards" ] || kill -KILL $guards
		kill -INT $recorder 2>/dev/null || :
		;;
	both) kill -KILL $guards $recorder 2>/dev/null || : ;;
	esac
	status=0
	wait $recorder || status=$?
	# This finds guards that were started while the others were being listed.
	for guard in $(pgrep -f mostrace-guard); do
		case " $known " in *" $guard "*) ;; *) [ "$(ps -o ppid= -p "$guard" | tr -d ' ')" != 1 ] || known="$known $guard" ;; esac
	done
	recorder=
	left_behind=
	[ "$victim" = both ] || settled undone "of which the other one should have undone"
	finish "$source" || left_behind=y
	settled all "and the next recorder has ended"
	[ -z "$left_behind" ] || bad=$((bad + 1))
	echo "$source $victim" >>"$work/done"
	rm -rf "$work/t.most"
done <"$work/plan"
sort "$work/done" | uniq -c | awk '{ print "  " $2 ", " $3 " killed: " $1 }'
echo "kills: $times in $(($(date +%s) - began)) s (seed $seed): $bad left something behind; the next recorder removed what both had left: $swept"
[ $bad = 0 ]
