# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what the upstream patches' tracepoints cost, off and on: in a guest with one CPU whose clock counts instructions
# (`make bench-events`), on ext4 on a disk of memory that takes no time (null_blk). A nanosecond is an instruction.
# Each load runs with everything off; then, on a kernel that has them, with each tracepoint on in a buffer of ftrace; and with a
# kprobe of ftrace at the function instead.
repetitions=3
loads="sqlite direct"
tracing=/sys/kernel/tracing
mount -t tracefs none $tracing
mount -t configfs none /sys/kernel/config
disk=/sys/kernel/config/nullb/nullb1
mkdir $disk
for setting in size=256 memory_backed=1 irqmode=0 queue_mode=2 submit_queues=1 power=1; do
	echo "${setting#*=}" >"$disk/${setting%%=*}"
done
dev=/dev/nullb1
/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 $dev
mkdir mnt
mount -o noatime $dev mnt
dd if=/dev/zero of=mnt/file bs=1M count=32 conv=fsync 2>/dev/null
echo 8192 >$tracing/buffer_size_kb

# fio's own clock, which it calibrates, is not exact enough here.
#
# run LOAD: prints instructions for each operation: a transaction of SQLite, a direct write of 4 KiB.
run() {
	case $1 in
	sqlite)
		rm -f mnt/test.db*
		mostrace workload sqlite --transactions 500 mnt/test.db |
			sed -n 's/^transactions.*, \([0-9.]*\) a second/\1/p' | awk '{ printf "%.0f\n", 1e9 / $1 }'
		;;
	direct)
		fio --name=writes --filename=mnt/file --size=32m --bs=4k --rw=randwrite --norandommap --direct=1 --overwrite=1 \
			--ioengine=psync --io_size=400m --clocksource=clock_gettime --output-format=terse --output=terse >fio.log 2>&1 || fail "$(cat fio.log)"
		awk -F';' '{ printf "%.0f\n", $50 * 1e6 / 102400 }' terse
		;;
	esac
}

# events LOAD / at_function LOAD: the tracepoints and the function for a load.
events() {
	case $1 in
	sqlite) echo jbd2/jbd2_dirty_metadata jbd2/jbd2_forget ;;
	direct) echo iomap/iomap_dio_submit_bio ;;
	esac
}
at_function() {
	case $1 in
	sqlite) echo jbd2_journal_dirty_metadata ;;
	direct) echo iomap_dio_submit_bio ;;
	esac
}

# count: prints the number of events in the buffer, with those that were overwritten.
count() {
	awk '$1 == "entries:" || $1 == "overrun:" { n += $2 } END { print n }' $tracing/per_cpu/cpu0/stats
}

# measure LOAD MODE: prints instructions for each operation, and the number of events.
measure() {
	echo >$tracing/trace
	case $2 in
	off) run "$1"; echo 0 ;;
	on)
		for event in $(events "$1"); do echo 1 >$tracing/events/"$event"/enable; done
		run "$1"
		for event in $(events "$1"); do echo 0 >$tracing/events/"$event"/enable; done
		count
		;;
	kprobe)
		echo "p:at $(at_function "$1")" >$tracing/kprobe_events
		echo 1 >$tracing/events/kprobes/at/enable
		run "$1"
		echo 0 >$tracing/events/kprobes/at/enable
		count
		echo >$tracing/kprobe_events
		;;
	esac | tr '\n' ' '
}

modes=off
[ ! -e $tracing/events/jbd2/jbd2_dirty_metadata ] || modes="off on kprobe"
for repetition in $(seq $repetitions); do
	for load in $loads; do
		for mode in $modes; do
			result=$(measure "$load" "$mode")
			echo "$load $mode $result" >>results.txt
			step "$repetition $load $mode $result"
		done
	done
done
cp results.txt /tmp/out/
for load in $loads; do
	for mode in $modes; do
		if [ -e $tracing/events/"$(events "$load" | cut -d' ' -f1)" ] || [ "$mode" = off ]; then
			awk -v l="$load" -v m="$mode" '$1 == l && $2 == m { print $3, $4 }' results.txt | sort -n |
				awk -v l="$load" -v m="$mode" '{ n[NR] = $1; e[NR] = $2 } END { i = int((NR + 1) / 2); print l ", " m ": median " n[i] ", from " n[1] " to " n[NR] " instructions an operation; " e[i] " events" }'
		fi
	done
done | while read -r line; do info "$line"; done
umount mnt
umount $tracing
