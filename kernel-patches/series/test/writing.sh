# SPDX-License-Identifier: MIT OR Apache-2.0
# Shows what only writeback_start_folio tells: two tasks write and sync the same pages, and one dirties a page of which the other has
# begun the write, but not queued the bio yet. The kernel's other events are the same as if the page had been dirtied before.
tracing=/sys/kernel/tracing
mount -t tracefs none $tracing
fresh_ext4 64 -b 4096
dd if=/dev/zero of="$mnt/race" bs=1M count=4 conv=fsync 2>/dev/null
echo 16384 >$tracing/buffer_size_kb
for event in writeback/writeback_dirty_folio writeback/writeback_start_folio block/block_bio_queue; do
	echo 1 >$tracing/events/$event/enable
done
fio --name=race --filename="$mnt/race" --size=4m --bs=4k --rw=randwrite --overwrite=1 --numjobs=3 --io_size=16m --fsync=128 \
	--ioengine=psync >fio.log 2>&1 || fail "$(cat fio.log)"
echo 0 >$tracing/tracing_on
cp $tracing/trace /tmp/out/writing.trace
# What a task has begun to write is pending until it queues its next bio.
awk -v ino="$(stat -c %i "$mnt/race")" '
	/^#/ || ($0 !~ "ino=" ino " " && $0 !~ /block_bio_queue/) { next }
	{ task = $1; page = $NF }
	/: block_bio_queue:/ { for (each in pending) if (pending[each] == task) delete pending[each]; next }
	/: writeback_start_folio:/ { pending[page] = task; started[page] = $0; starts++; next }
	/: writeback_dirty_folio:/ {
		dirties++
		if (page in pending && pending[page] != task && ++again == 1) example = started[page] "\n" $0
	}
	END { print dirties + 0 " pages dirtied, " starts + 0 " writes begun, " again + 0 " dirtied by another task between the beginning and the bio"; print example }
' /tmp/out/writing.trace >result
head -n 1 result | while read -r line; do info "$line"; done
cp result /tmp/out/writing.example
[ "$(awk 'NR == 1 { print ($1 > 0 && $4 > 0) }' result)" = 1 ] || fail "$(cat result)"
echo 0 >$tracing/events/enable
umount $tracing
remove
