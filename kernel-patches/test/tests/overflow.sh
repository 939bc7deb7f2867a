# SPDX-License-Identifier: MIT OR Apache-2.0
# When a ring overflows, every lost entry is counted, and writers do not wait for the reader.
truncate -s 64M disk.img
loop=$(losetup -f)
losetup "$loop" disk.img
writes=5000 rounds=3
! is_debug || writes=2000 rounds=1

# write_all: makes one bio, and so one entry, per write; prints the writes per second.
write_all() {
	fio --name=load --filename="$loop" --bs=4k --rw=randwrite --ioengine=libaio --iodepth=16 --direct=1 \
		--size=32m --number_ios=$writes --output-format=terse | cut -d';' -f49
}

# check_counts NAME WRITES: the entries recorded and those lost must add up to the writes.
check_counts() {
	entries=$(cat "$class"/entries) lost=$(lost entries_ring)
	[ "$lost" -gt 0 ] || fail "$1: nothing lost"
	[ $((entries + lost)) = "$2" ] || fail "$1: $entries entries and $lost lost of $2"
	[ "$(count "$1.stream")" = "$entries" ] || fail "$1: $(count "$1.stream") read of $entries entries"
	info "$1: $entries entries, $lost lost"
}

# best SPEED SPEED: prints the higher one, because other work on the host only lowers them.
best() {
	[ "$1" -le "$2" ] && echo "$2" || echo "$1"
}

load dev="$(basename "$loop")" names=all
alone=$(write_all)
read=0 unread=0 slow=0
for _ in $(seq $rounds); do
	step read
	put 1024 ring_kb
	record_start read.stream
	read=$(best "$(write_all)" "$read")
	record_stop
	check_nothing_lost
	[ "$(count read.stream)" = $writes ] || fail "read: $(count read.stream) entries of $writes"

	step unread
	put 16 ring_kb
	exec 3</dev/mostrace
	unread=$(best "$(write_all)" "$unread")
	: >unread.stream
	take_rest unread.stream
	check_counts unread $writes
	exec 3<&-

	step slow
	# The reader takes 4 KiB at a time, and too seldom.
	: >slow.stream
	exec 3</dev/mostrace
	: >slowly
	while [ -e slowly ]; do usleep 100000; dd bs=4k count=1; done <&3 >>slow.stream 2>/dev/null &
	reader=$!
	slow=$(best "$(write_all)" "$slow")
	# The reader ends by itself, because a read that had begun would keep the device open. If it has read
	# everything, one more write wakes it.
	rm slowly
	dd if=/dev/zero of="$loop" bs=4k count=1 oflag=direct 2>/dev/null
	wait $reader
	take_rest slow.stream
	check_counts slow $((writes + 1))
	exec 3<&-
done
info "writes a second: $alone not recorded, $read read, $unread never read, $slow read too slowly"
# An emulator's speed varies by far less than a factor of five; waiting for the reader would take for ever.
{ [ $((unread * 5)) -ge "$read" ] && [ $((slow * 5)) -ge "$read" ]; } || fail "a full ring is waited for"
losetup -d "$loop"
unload
check_kernel
