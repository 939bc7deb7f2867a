# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what recording on a phone costs by level: SQLite's transactions on ext4 on a disk that takes no time
# (null_blk), in turns. The guest has one CPU and a clock that counts instructions (`make bench-phone`): a second is
# 10^9 instructions, whoever executed them. Also measures the recorder's peak memory.
repetitions=3
transactions=1000

disk=/sys/kernel/config/nullb/nullb1
mount -t configfs none /sys/kernel/config
mkdir "$disk" || fail "no null_blk"
for setting in size=256 memory_backed=1 irqmode=0 queue_mode=2 submit_queues=1 power=1; do
	echo "${setting#*=}" >"$disk/${setting%%=*}"
done
/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 /dev/nullb1
mkdir mnt
mount -o noatime /dev/nullb1 mnt

# Prints the hundredths of a second in which the CPU was not idle; then, if there is a recorder, its peak memory and its
# memory now, in KiB.
cat >workload.sh <<'END'
rm -f mnt/test.db*
cp /proc/uptime before
mostrace workload sqlite --transactions "$1" mnt/test.db >/dev/null
cp /proc/uptime after
cat before after | awk '{ up = $1 - up; idle = $2 - idle } END { printf "%.0f ", (up - idle) * 100 }'
awk '/^VmHWM:/ { peak = $2 } /^VmRSS:/ { print peak, $2 }' "/proc/$PPID/status"
END

# under OPTION…: runs the workload within `mostrace record`.
under() {
	mostrace record -d /dev/nullb1 -o record.most --no-snapshot "$@" -- sh -eu workload.sh $transactions 2>record.log || fail "$(cat record.log)"
	grep -q ', 0 lost' record.log || fail "$(cat record.log)"
	rm -r record.most
}

# under_module OPTION…: does the same with the module loaded.
under_module() {
	insmod /lib/mostrace.ko
	under "$@"
	rmmod mostrace
}

measure() {
	case $1 in
	nothing) sh -eu workload.sh $transactions ;;
	A) under --source bpf --entries bpf --causes none ;;
	A-causes) under --source bpf --entries bpf --causes bpf ;;
	A-file) under --source bpf --entries bpf --causes none --btf /sys/kernel/btf/vmlinux ;;
	B) under --source tracefs --entries tracefs ;;
	D) under_module --source tracefs --entries kernel --causes none ;;
	D-causes) under_module --source tracefs --entries kernel --causes kernel ;;
	esac
}

# median MODE COLUMN: prints the median of a column of results.txt.
median() {
	awk -v m="$1" -v c="$2" '$1 == m { print $c }' results.txt | sort -n | sed -n "$((repetitions / 2 + 1))p"
}

modes="nothing A A-causes A-file B D D-causes"
for repetition in $(seq $repetitions); do
	for mode in $modes; do
		result=$(measure "$mode") || fail "$mode: $result"
		echo "$mode $result" >>results.txt
		step "$repetition $mode $result"
	done
done
cp results.txt /tmp/out/
for mode in $modes; do
	# 10^7 instructions are a hundredth of a second.
	echo "$mode $(median "$mode" 2) $(median nothing 2) $(median "$mode" 3) $(median "$mode" 4)" | awk -v n=$transactions '{
		printf "%s: %.0f thousand instructions a transaction, %.2f of nothing, peak %.1f MiB, at the end %.1f MiB\n", $1, $2 * 1e4 / n, $2 / $3, $4 / 1024, $5 / 1024 }'
done | while read -r line; do info "$line"; done
umount mnt
