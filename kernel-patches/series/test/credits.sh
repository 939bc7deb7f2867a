# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests the tracepoints of jbd2 on a patched kernel. For every handle of a load of three writers, the credits that
# jbd2_dirty_metadata and jbd2_forget report must be what jbd2_handle_stats reports as dirtied, and a kprobe at the function must
# see the same modifications of the same blocks by the same tasks.
tracing=/sys/kernel/tracing
mount -t tracefs none $tracing
instance=$tracing/instances/credits

# write_files NAME: creates, writes, syncs, renames, truncates and removes files in a folder of its own; the folder's blocks are
# freed too.
write_files() {
	for _ in 1 2; do
		mkdir "$mnt/$1"
		for i in $(seq 60); do
			echo "$i" >"$mnt/$1/a-rather-long-name-for-a-file-that-fills-the-folder-$i"
			[ $((i % 10)) -ne 0 ] || sync "$mnt/$1/a-rather-long-name-for-a-file-that-fills-the-folder-$i"
		done
		mv "$mnt/$1/a-rather-long-name-for-a-file-that-fills-the-folder-7" "$mnt/$1/seven"
		fallocate -l 1M "$mnt/$1/seven"
		truncate -s 5000 "$mnt/$1/seven"
		rm -r "${mnt:?}/$1"
	done
}

fresh_ext4 64 -b 1024
mkdir $instance
echo 16384 >$instance/buffer_size_kb
echo 'p:modified jbd2_journal_dirty_metadata block=+24(%si):u64' >$tracing/kprobe_events
for event in jbd2_handle_start jbd2_handle_restart jbd2_handle_stats jbd2_dirty_metadata jbd2_forget; do
	echo 1 >$instance/events/jbd2/$event/enable
done
echo 1 >$instance/events/kprobes/modified/enable
writers=
for name in one two three; do
	write_files $name &
	writers="$writers $!"
done
# shellcheck disable=SC2086 # one word per process
wait $writers
sync
echo 0 >$instance/tracing_on
[ "$(grep -h '^overrun' $instance/per_cpu/*/stats | awk '{ n += $2 } END { print n }')" = 0 ] || fail "events were overwritten"
cp $instance/trace /tmp/out/credits.trace
awk '
	function value(name,   i) { for (i = 1; i < NF; i++) if ($i == name) return $(i + 1) }
	/^#/ { next }
	{ task = $1; handle = value("tid") " " value("id") }
	/: modified:/ { sub(/.*block=/, ""); at_function[task " " $0]++; calls++ }
	/: jbd2_handle_(start|restart):/ { if (begun[handle]++) bad = bad "\ntwice begun: " $0 }
	/: jbd2_dirty_metadata:/ {
		if (!begun[handle]) bad = bad "\nof no handle: " $0
		told[task " " value("block")]++; events++; first += value("credit"); paid[handle] += value("credit")
	}
	/: jbd2_forget:/ { forgotten++; returned += value("credit"); paid[handle] -= value("credit") }
	/: jbd2_handle_stats:/ {
		handles++
		if (paid[handle] + 0 != value("dirtied_blocks")) bad = bad "\n" paid[handle] + 0 " paid: " $0
	}
	END {
		for (each in at_function) if (at_function[each] != told[each]) bad = bad "\n" each ": " at_function[each] " at the function, " told[each] " told"
		for (each in told) if (!at_function[each]) bad = bad "\n" each ": not at the function"
		if (!events || !returned || !handles) bad = bad "\nnothing to compare"
		if (bad) { print substr(bad, 1, 4000); exit 1 }
		print handles " handles: " events " modifications, as by the kprobe, " first " of them the first, " forgotten " forgotten blocks, " returned " of them modified; credits are dirtied_blocks in each"
	}
' /tmp/out/credits.trace >result || fail "$(cat result)"
info "$(cat result)"
echo 0 >$instance/events/enable
rmdir $instance
echo >$tracing/kprobe_events
umount $tracing
remove
