# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests a patched kernel: what the tracepoints of direct IO and of write-back report is right on each filesystem, and the
# recorder works under load. Direct IO of FAT does not pass iomap, and has no tracepoint.
[ ! -e /lib/mostrace.ko ] || fail "not a patched kernel"
tracing=/sys/kernel/tracing
mount -t tracefs none $tracing
events="iomap/iomap_dio_submit_bio writeback/writeback_start_folio"

# The buffer of busybox's own dd is not aligned for reading sectors.
dd() {
	/usr/local/bin/dd "$@" 2>dd.log || fail "$type: dd $*: $(cat dd.log)"
}

# trace_on: clears the trace and enables both events.
trace_on() {
	echo >$tracing/trace
	for event in $events; do echo 1 >"$tracing/events/$event/enable"; done
}

# trace_off EVENT FILE: disables the events and writes those of the file to `events`.
trace_off() {
	for event in $events; do echo 0 >"$tracing/events/$event/enable"; done
	ino=$(stat -c %i "$2")
	grep -E "$1:.* ino($(printf ' 0x%x' "$ino")|=$ino) " $tracing/trace >events || fail "$type: no $1 of $2: $(cat $tracing/trace)"
}

# check_places FILE BYTES: each bio must lie on the disk where the filesystem has that position of the file; the bios
# must add up to this many bytes.
check_places() {
	filefrag -e -b512 "$1" | sed 's/[.:]/ /g' | awk '$1 ~ /^[0-9]+$/ { print $2, $3, $4 }' >extents
	sed 's/.* pos \([0-9a-fx]*\) length \([0-9a-fx]*\) .* sector \([0-9a-fx]*\) .*/\3 \2 \1/' events |
		while read -r sector length pos; do echo $((sector)) $((length / 512)) $((pos)); done >bios
	awk -v all="$2" '
		NR == FNR { first[NR] = $1; last[NR] = $2; disk[NR] = $3; n = NR; next }
		{
			at = $3 / 512; found = 0
			for (i = 1; i <= n; i++)
				if (at >= first[i] && at <= last[i] && $1 == disk[i] + at - first[i]) found = 1
			if (!found) { print "not there: sector " $1 ", position " $3; bad = 1 }
			sum += $2 * 512
		}
		END { if (sum != all) { print sum " bytes of " all; bad = 1 } exit bad }
	' extents bios || fail "$type: $(cat extents events)"
	info "$type: $(wc -l <bios) direct bios of $2 bytes where they belong"
}

# check_direct: direct IO of whole blocks, and of sectors within them.
check_direct() {
	dd if=/dev/urandom of="$mnt/direct" bs=64k count=20 conv=fsync
	trace_on
	dd if=/dev/urandom of="$mnt/direct" bs=256k count=2 seek=2 oflag=direct conv=notrunc
	dd if="$mnt/direct" of=/dev/null bs=4k count=3 skip=5 iflag=direct
	trace_off iomap_dio_submit_bio "$mnt/direct"
	check_places "$mnt/direct" $((512 * 1024 + 3 * 4096))
	[ "$type" != f2fs ] || return 0
	trace_on
	dd if=/dev/urandom of="$mnt/direct" bs=512 count=5 seek=13 oflag=direct conv=notrunc
	trace_off iomap_dio_submit_bio "$mnt/direct"
	check_places "$mnt/direct" $((5 * 512))
}

# check_zeroes: a sector written into a block without data must be surrounded by zeroes. What the other events tell of it is kept
# beside, as an example.
check_zeroes() {
	fallocate -l 64k "$mnt/allocated"
	for event in iomap/iomap_dio_rw_begin block/block_bio_queue; do echo 1 >$tracing/events/$event/enable; done
	trace_on
	dd if=/dev/urandom of="$mnt/allocated" bs=512 count=1 seek=11 oflag=direct conv=notrunc
	trace_off iomap_dio_submit_bio "$mnt/allocated"
	for event in iomap/iomap_dio_rw_begin block/block_bio_queue; do echo 0 >$tracing/events/$event/enable; done
	cp $tracing/trace /tmp/out/zeroes.trace
	check_places "$mnt/allocated" 4096
	[ "$(wc -l <bios)" -eq 3 ] || fail "$type: not zeroes, data, zeroes: $(cat events)"
}

# check_writeback: each page must be reported once when it is written.
check_writeback() {
	trace_on
	dd if=/dev/urandom of="$mnt/buffered" bs=4k count=50 conv=fsync
	trace_off writeback_start_folio "$mnt/buffered"
	sed 's/.* index=//' events | sort -n | uniq >pages
	[ "$(wc -l <events) $(wc -l <pages) $(tail -n 1 pages)" = "50 50 49" ] || fail "$type: not 50 pages once: $(cat events)"
	info "$type: the beginning of 50 pages' writeback"
}

# check_recorder: runs the recorder under direct and buffered load, with the tracepoints enabled too.
check_recorder() {
	load dev="$(basename "$loop")" names=all ring_kb=4096
	record_start recorder.stream
	trace_on
	for direct in 1 0; do
		fio --name=load$direct --directory="$mnt" --size=8m --bs=4k --rw=randrw --ioengine=libaio --iodepth=8 --direct=$direct \
			--fsync=32 --numjobs=2 --number_ios=2000 >fio.log 2>&1 || fail "$type: $(cat fio.log)"
	done
	sync
	record_stop
	for event in $events; do echo 0 >"$tracing/events/$event/enable"; done
	check_nothing_lost
	entries=$(cat "$class"/entries)
	{ [ "$(count recorder.stream)" = "$entries" ] && [ "$entries" -gt 4000 ]; } ||
		fail "$type: $(count recorder.stream) of $entries entries"
	info "$type: $entries entries, none lost"
	unload
}

# check_filesystem
check_filesystem() {
	step "$type"
	[ "$type" = vfat ] || check_direct
	check_writeback
	[ "$type" != ext4 ] || check_zeroes
	check_recorder
	remove
	check_kernel
}

fresh_ext4 128 -b 4096
check_filesystem
fresh_f2fs 128
check_filesystem
# With sectors of 4 KiB the filesystem's block is larger than the device's.
fresh_vfat 128 -F 32 -S 4096
check_filesystem
umount $tracing
