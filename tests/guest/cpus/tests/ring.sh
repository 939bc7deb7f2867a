# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what the probes cost when many CPUs write at once, each of which takes the lock of the one ring. The guest needs a thread
# of the host's for each of its CPUs:
#   GUEST_SCRIPTS=tests/guest/cpus/tests GUEST_QEMU="-smp 32 -accel tcg,thread=multi -m 4096" tests/guest/run.sh MOSTRACE 6.12
writes=4000

# make_disk: makes a disk of memory with a queue for each CPU and an ext4 on it.
make_disk() {
	mount -t configfs none /sys/kernel/config
	disk=/sys/kernel/config/nullb/nullb1
	mkdir "$disk" || fail "no null_blk"
	for setting in size=512 memory_backed=1 irqmode=0 queue_mode=2 submit_queues="$(nproc)" power=1; do
		echo "${setting#*=}" >"$disk/${setting%%=*}"
	done
	/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 /dev/nullb1
	mkdir mnt
	mount -o noatime /dev/nullb1 mnt
}

# write JOBS [COMMAND…]: writes from so many processes, each on a CPU of its own, and prints the writes per second.
write() {
	jobs=$1
	shift
	# shellcheck disable=SC2016 # the variable is fio's
	"$@" fio --name=w --directory=mnt --filename_format='f$jobnum' --size=4m --bs=4k --rw=randwrite --norandommap --direct=1 \
		--overwrite=1 --numjobs="$jobs" --cpus_allowed="0-$((jobs - 1))" --cpus_allowed_policy=split --io_size=$((writes * 4))k \
		--group_reporting --output-format=terse --output=terse >fio.log 2>&1 || fail "$(cat fio.log)"
	cut -d';' -f49 terse
}


mount -t debugfs none /sys/kernel/debug
make_disk
for jobs in 1 2 8 $(nproc); do
	write "$jobs" >/dev/null
	step "$jobs prepared"
	plain=$(write "$jobs")
	step "$jobs plain"
	recorded=$(write "$jobs" mostrace record -v -d /dev/nullb1 -o record.most --no-snapshot --source bpf --entries bpf --causes none --) ||
		fail "$recorded"
	lost=$(grep -o '[0-9]* lost' fio.log) || fail "$(cat fio.log)"
	rm -r record.most
	info "$jobs CPUs write: $plain writes/s, recorded $recorded ($(echo "$recorded $plain" | awk '{ printf "%.2f", $1 / $2 }')), $lost"
done
umount mnt
