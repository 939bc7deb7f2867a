# SPDX-License-Identifier: MIT OR Apache-2.0
# Data that is written is read back unchanged by each way of IO, while it is recorded, while recordings begin and end,
# and afterwards from the medium; and the filesystem is consistent.

# run_fio JOB-OPTION…: runs several jobs at once, with a file each.
run_fio() {
	# shellcheck disable=SC2016 # fio's own variable
	fio --name=global --directory="$mnt" --filename_format='$jobname' --size=1m --bs=4k --rw=randwrite --verify=crc32c \
		--verify_fatal=1 "$@" >fio.log 2>&1 || fail "$type: $(cat fio.log)"
}

# ways PREFIX: prints a job for each way of IO.
ways() {
	echo "--name=$1-buffered --ioengine=psync --fsync=64"
	echo "--name=$1-direct --ioengine=psync --direct=1"
	echo "--name=$1-mapped --ioengine=mmap --fsync=64"
	echo "--name=$1-queued --ioengine=libaio --iodepth=16 --direct=1"
}

# record_in_turns: starts and stops recordings until it is killed.
record_in_turns() {
	while :; do
		timeout 1 cat /dev/mostrace || true
		echo >>turns
	done >/dev/null
}

# check_filesystem FSCK…: runs the jobs and checks the filesystem with this command.
check_filesystem() {
	load dev="$(basename "$loop")" names=all
	step "$type, recorded"
	record_start verify.stream
	# shellcheck disable=SC2046 # one word per option
	run_fio $(ways recorded)
	record_stop
	check_nothing_lost
	if [ "$(count verify.stream)" != "$(cat $class/entries)" ] || [ "$(count verify.stream)" -le 1000 ]; then
		fail "$(count verify.stream) of $(cat $class/entries) entries"
	fi

	step "$type, in turns"
	: >turns
	record_in_turns &
	turns=$!
	for i in 1 2 3; do
		# shellcheck disable=SC2046
		run_fio $(ways turns$i)
	done
	kill $turns
	wait $turns || true
	wait_for "the recorder is busy" is_free

	step "$type, from the medium"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	# shellcheck disable=SC2046
	run_fio --verify_only --verify_state_load=0 $(ways recorded) $(ways turns1) $(ways turns2) $(ways turns3)
	unmount
	"$@" disk.img >fsck.log 2>&1 || fail "$*: $(cat fsck.log)"
	! grep -E '\[Fail\]|ASSERT' fsck.log || fail "$*: $(cat fsck.log)"
	info "$type: 16 files verified, twice; $(wc -l <turns) recordings beside the whole one"
	rm disk.img
	unload
}

fresh_ext4 128 -b 4096
check_filesystem e2fsck -fn
fresh_f2fs 128
check_filesystem fsck.f2fs -f --dry-run
check_kernel
