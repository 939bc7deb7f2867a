# SPDX-License-Identifier: MIT OR Apache-2.0
# `mostrace import` of what ftrace traced of f2fs, beside a recording of the same run.
fresh_f2fs 128 -- background_gc=off
tracing=/sys/kernel/tracing
mount -t tracefs none $tracing 2>/dev/null || true
instance=$tracing/instances/imported
mkdir $instance
echo mono >$instance/trace_clock
echo 1 >$instance/options/record-tgid
echo 8192 >$instance/buffer_size_kb
for event in block/block_bio_queue block/block_rq_insert block/block_rq_issue block/block_rq_requeue block/block_rq_complete \
	block/block_split block/block_bio_remap f2fs/f2fs_write_begin f2fs/f2fs_submit_page_write f2fs/f2fs_submit_page_bio \
	f2fs/f2fs_submit_folio_write f2fs/f2fs_submit_folio_bio f2fs/f2fs_datawrite_start sched/sched_process_exec task; do
	[ ! -e "$instance/events/$event" ] || echo 1 >"$instance/events/$event/enable"
done

# What is traced begins and ends within the recording, with nothing left to write.
cat >traced.sh <<END
sync -f $mnt
echo 1 >$instance/tracing_on
mostrace workload sqlite --transactions 30 $mnt/test.db
dd if=/dev/zero of=$mnt/plain bs=64k count=20 conv=fsync
dd if=$mnt/plain of=/dev/null bs=16k iflag=direct
rm $mnt/plain
sync -f $mnt
echo 0 >$instance/tracing_on
END
step "record"
echo 0 >$instance/tracing_on
mostrace record -d "$loop" -o ours.most -- sh traced.sh >rec.log 2>rec.err || fail "$(cat rec.err)"
check_bundle ours.most
cp "$instance/trace" trace.txt
rmdir $instance

# ask BUNDLE SQL: prints the rows of an answer.
ask() {
	mostrace query "$1.most" "$2" --format csv | sed 1d
}

# same WHAT SQL: the import has the recording's rows.
same() {
	for name in ours trace; do ask $name "$2" >"$name.rows"; done
	[ -s ours.rows ] || fail "$1: none"
	cmp ours.rows trace.rows || fail "$1: $(cat ours.rows) of the recording, $(cat trace.rows) of ftrace"
}

step "import ftrace's text"
mostrace import trace.txt -o trace.most >import.log 2>&1 || fail "$(cat import.log)"
same requests "SELECT op, COUNT(*), SUM(bytes) FROM requests GROUP BY op ORDER BY op"
same processes "SELECT pid, op, SUM(bytes) FROM events WHERE bytes > 0 GROUP BY pid, op ORDER BY pid, op"

# Nodes and f2fs' own files are no data.
same files "SELECT inode, SUM(bytes) FROM events WHERE op = 'write' AND class = 'data' AND inode > 3 GROUP BY inode ORDER BY inode"

same offsets "SELECT sector, inode, file_offset, SUM(bytes) FROM events WHERE op = 'write' AND class = 'data' AND inode > 3 \
	GROUP BY sector, inode, file_offset ORDER BY sector, inode, file_offset"

# Not every kernel has an event that tells paths. The recording also has what the map knows.
paths="SELECT DISTINCT inode, path FROM events WHERE path IS NOT NULL AND inode > 3 ORDER BY inode"
for name in ours trace; do ask $name "$paths" | sort >"$name.paths"; done
comm -13 ours.paths trace.paths >strange.paths
[ ! -s strange.paths ] || fail "paths: $(cat strange.paths ours.paths)"
info "$(wc -l <trace.paths) paths of $(wc -l <ours.paths)"
[ ! -e $tracing/events/f2fs/f2fs_datawrite_start ] || [ "$(wc -l <trace.paths)" -ge 30 ] || fail "paths: $(cat trace.paths)"

# Emulated, either recorder may take long between an event and its time.
times="SELECT DISTINCT time_ns, d2c_ns FROM requests WHERE bytes > 0 ORDER BY time_ns, d2c_ns"
for name in ours trace; do ask $name "$times" >"$name.times"; done
[ "$(wc -l <ours.times)" = "$(wc -l <trace.times)" ] || fail "times: $(wc -l ours.times trace.times)"
paste -d, ours.times trace.times | awk -F, '{ d = $2 - $4; print d < 0 ? -d : d }' | sort -n >apart
median=$(sed -n "$((($(wc -l <apart) + 1) / 2))p" apart)
info "times from D to C are $median ns apart, at most $(tail -n 1 apart) ns"
[ "$median" -lt 10000000 ] || fail "times"

remove
