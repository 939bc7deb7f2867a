# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what recording costs: random writes of 4 KiB by fio, transactions of SQLite, and writes of 4 KiB through a daemon of
# FUSE, on ext4 on a disk that takes no time (null_blk), with each recorder and with none, in turns. The guest has one CPU and
# a clock that counts instructions (`make bench-overhead`): a second is 10^9 instructions, whoever executed them.
repetitions=5
fio_writes=50000
transactions=1000
# Five times as many: what waits to be written must not be more than the table of dirty pages holds.
fuse_writes=8000
workloads="fio-1 fio-16 sqlite fuse"
# If it is set, the kernel counts the programs' runs and instructions, which costs much itself; they are printed.
programs=

# make_disk: makes a disk of 256 MiB of memory, which completes requests at once.
make_disk() {
	mount -t configfs none /sys/kernel/config
	# Some kernels use the folder's name, some the next number; nullb0 is the module's own.
	disk=/sys/kernel/config/nullb/nullb1
	mkdir "$disk" || fail "no null_blk"
	for setting in size=256 memory_backed=1 irqmode=0 queue_mode=2 submit_queues=1 power=1; do
		echo "${setting#*=}" >"$disk/${setting%%=*}"
	done
	dev=/dev/nullb1
	/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 "$dev"
	mkdir mnt
	mount -o noatime "$dev" mnt
	dd if=/dev/zero of=mnt/file bs=1M count=32 conv=fsync 2>/dev/null
	mkdir mnt/lower through
	dd if=/dev/zero of=mnt/lower/file bs=4k count=$fuse_writes conv=fsync 2>/dev/null
	through mnt/lower through &
	daemon=$!
	wait_for "no FUSE" grep -q " $PWD/through fuse " /proc/mounts
}

# busy: prints the hundredths of a second in which the CPU was not idle between the two copies of /proc/uptime.
busy() {
	cat before after | awk '{ up = $1 - up; idle = $2 - idle } END { printf "%.0f", (up - idle) * 100 }'
}

# run_fio ENGINE DEPTH: prints writes per second, and hundredths of a second of CPU of the whole system and of fio.
run_fio() {
	fio --name=writes --filename=mnt/file --size=32m --bs=4k --rw=randwrite --norandommap --direct=1 --overwrite=1 \
		--ioengine="$1" --iodepth="$2" --io_size=$((fio_writes * 4))k --output-format=terse --output=terse \
		--exec_prerun="cp /proc/uptime before" --exec_postrun="cp /proc/uptime after" >fio.log 2>&1 || fail "$(cat fio.log)"
	# The fields are write IOPS, milliseconds, and percentages of user and system.
	tr -d % <terse | awk -F';' -v busy="$(busy)" '{ printf "%s %s %.1f\n", $49, busy, $50 * ($88 + $89) / 1000 }'
}

# run_sqlite: prints transactions per second, and the CPU as above.
run_sqlite() {
	rm -f mnt/test.db*
	cp /proc/uptime before
	mostrace workload sqlite --transactions $transactions mnt/test.db >sqlite.log
	cp /proc/uptime after
	echo "$(sed -n 's/^transactions.*, \([0-9.]*\) a second/\1/p' sqlite.log) $(busy)"
}

# run_fuse: prints writes per second, and the CPU as above. Each is a request to the daemon, which writes to the page cache;
# then the file is written to the disk.
run_fuse() {
	cp /proc/uptime before
	for round in 1 2 3 4 5; do
		dd if=/dev/zero of=through/file bs=4k count=$fuse_writes conv=notrunc,fsync 2>/dev/null
	done
	cp /proc/uptime after
	echo "$(cat before after | awk -v n=$((round * fuse_writes)) '{ up = $1 - up } END { print n / up }') $(busy)"
}

# run WORKLOAD: runs it.
run() {
	case $1 in
	fio-1) run_fio psync 1 ;;
	fio-16) run_fio libaio 16 ;;
	sqlite) run_sqlite ;;
	fuse) run_fuse ;;
	esac
}

# recorder_ns WHEN: prints the CPU time that each thread of the recorder has had, ns, and its share of user and system time, ticks.
recorder_ns() {
	for thread in "/proc/$PPID/task"/*; do
		echo "thread $1 $(cat "$thread/comm") $(cut -d' ' -f1 "$thread/schedstat") $(cut -d' ' -f14,15 "$thread/stat")"
	done
}

# under_record WORKLOAD OPTION…: runs it within `mostrace record`.
under_record() {
	workload=$1
	shift
	export fio_writes transactions fuse_writes programs
	{
		sed -n '/^busy()/,/^}/p; /^run.*()/,/^}/p; /^recorder_ns()/,/^}/p' "$0"
		[ -z "$programs" ] || echo "recorder_ns before >programs.log"
		echo "run $workload"
		[ -z "$programs" ] || echo "recorder_ns after >>programs.log; programs >>programs.log"
	} >workload.sh
	mostrace record -d "$dev" -o record.most --no-snapshot "$@" -- sh -eu workload.sh 2>record.log || fail "$(cat record.log)"
	grep -q ', 0 lost' record.log || fail "$(cat record.log)"
	stat -c %s record.most/* | awk '{ sum += $1 } END { print "bundle", sum }' >>programs.log
	while [ "$programs" ] && read -r line; do info "$workload $*: $line" >>/tmp/out/programs; done <programs.log
	rm -r record.most programs.log
}

# under_module WORKLOAD FILE: runs it while the module's entries are read into FILE.
under_module() {
	exec 3</dev/mostrace
	cat <&3 >"$2" &
	reader=$!
	exec 3<&-
	run "$1"
	kill $reader
	wait $reader || true
	[ "$(cat "$class"/entries)" -gt 100 ] || fail "$(cat "$class"/entries) entries"
	check_nothing_lost
}

# under_blktrace WORKLOAD: runs it while blktrace traces.
under_blktrace() {
	blktrace -d "$dev" -D . -o blk >blktrace.log 2>&1 &
	tracer=$!
	wait_for "blktrace does not trace" test -e /sys/kernel/debug/block/nullb1/trace0
	# blktrace opens its files before it begins.
	usleep 300000
	run "$1"
	kill -INT $tracer
	wait $tracer || true
	# Of FUSE's writes, only what is written back has events.
	case $1 in fuse) least=100000 ;; *) least=1000000 ;; esac
	[ "$(stat -c %s blk.blktrace.0)" -gt $least ] || fail "$(cat blktrace.log)"
	rm blk.blktrace.*
}

# measure MODE WORKLOAD: prints what `run` prints.
measure() {
	case $1 in
	nothing) run "$2" ;;
	blktrace) under_blktrace "$2" ;;
	module) under_module "$2" /dev/null ;;
	module-file) under_module "$2" stream && rm stream ;;
	record-blktrace) under_record "$2" --source blktrace --entries none --causes none ;;
	record-kernel) under_record "$2" --source blktrace --entries kernel --causes none ;;
	record-bpf) under_record "$2" --source blktrace --entries bpf --causes none ;;
	record-tracefs) under_record "$2" --source tracefs --entries bpf --causes none ;;
	record-bpf-bpf) under_record "$2" --source bpf --entries bpf --causes none ;;
	record-causes) under_record "$2" --source bpf --entries bpf --causes bpf ;;
	esac
}
modes="nothing blktrace module module-file record-blktrace record-kernel record-bpf record-tracefs record-bpf-bpf record-causes"

# name MODE: prints the mode's name in the table.
name() {
	case $1 in
	nothing) echo "nothing" ;;
	blktrace) echo "\`blktrace\` to a file" ;;
	module) echo "module, read to /dev/null" ;;
	module-file) echo "module, read to a file" ;;
	record-blktrace) echo "\`record --source blktrace --entries none\`" ;;
	record-kernel) echo "\`record --source blktrace --entries kernel\`" ;;
	record-bpf) echo "\`record --source blktrace --entries bpf\`" ;;
	record-tracefs) echo "\`record --source tracefs --entries bpf\`" ;;
	record-bpf-bpf) echo "\`record --source bpf --entries bpf\`" ;;
	record-causes) echo "\`record --source bpf --entries bpf --causes bpf\`" ;;
	esac
}

# median COLUMN: prints the median of $workload in $mode, from results.txt (workload mode speed cpu fio's); 0 if there is none.
median() {
	awk -v w="$workload" -v m="$mode" -v c="$1" '$1 == w && $2 == m { print $c }' results.txt | sort -n |
		sed -n "$((repetitions / 2 + 1))p" | grep . || echo 0
}

# table: prints a row for each mode, with each workload's medians as ratios to those of `nothing`: speed, CPU, and for
# fio its own CPU.
table() {
	echo "| recorded by | fio, 1: IOPS | CPU | fio's | fio, 16: IOPS | CPU | fio's | SQLite: transactions | CPU | FUSE: writes | CPU |"
	echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
	for mode in $modes; do
		for workload in fio-1 fio-16; do echo "$(median 3) $(median 4) $(median 5)"; done | tr '\n' ' '
		for workload in sqlite fuse; do echo "$(median 3) $(median 4)"; done | tr '\n' ' '
		printf '\t%s\n' "$(name "$mode")"
	done | awk -F'\t' '
		{ split($1, figure, " ") }
		NR == 1 {
			for (i = 1; i <= 10; i++) base[i] = figure[i]
			format = "| nothing | %d/s | %.2f s | %.2f s | %d/s | %.2f s | %.2f s | %d/s | %.2f s | %d/s | %.2f s |\n"
			printf format, base[1], base[2] / 100, base[3] / 100, base[4], base[5] / 100, base[6] / 100, base[7], base[8] / 100,
				base[9], base[10] / 100
			next
		}
		{
			line = "| " $2
			for (i = 1; i <= 10; i++) line = line " | " (base[i] ? sprintf("%.2f", figure[i] / base[i]) : "-")
			print line " |"
		}'
}

# OVERHEAD of prepare.sh: other values of these variables, and of `modes`.
# shellcheck disable=SC1091 # made in the guest
. /etc/overhead
[ -z "$programs" ] || echo 1 >/proc/sys/kernel/bpf_stats_enabled
mount -t debugfs none /sys/kernel/debug
make_disk
load dev=nullb1 names=temp
for repetition in $(seq $repetitions); do
	for workload in $workloads; do
		for mode in $modes; do
			result=$(measure "$mode" "$workload") || fail "$mode, $workload: $result"
			echo "$workload $mode $result" >>results.txt
			step "$repetition $workload $mode $result"
		done
	done
done
cp results.txt /tmp/out/
table | while read -r line; do info "$line"; done
umount through
wait $daemon || true
umount mnt
unload
[ ! -e /tmp/out/programs ] || cat /tmp/out/programs
