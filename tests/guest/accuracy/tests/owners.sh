# SPDX-License-Identifier: MIT OR Apache-2.0
# Records writers on f2fs and FAT, each a user with a folder of its own. The owner of a folder's blocks and of its
# files' nodes is known by construction, and that of a sector of FAT's table from a trace of every buffer that is made
# dirty. owners.py compares both.

tracing=/sys/kernel/tracing
mount -t tracefs none $tracing 2>/dev/null || true
probe=$tracing/instances/buffers
mkdir -p $probe
echo 8192 >$probe/buffer_size_kb
# The trace uses the recording's clock.
echo mono >$probe/trace_clock

# writer.sh FOLDER
cat >writer.sh <<'END'
for i in $(seq 12); do
	echo "$i" >"$1/a$i"
	/usr/local/bin/dd if=/dev/zero of="$1/b$i" bs=20k count=1 conv=fsync 2>/dev/null
	mv "$1/a$i" "$1/c$i"
	truncate -s 1000 "$1/b$i"
	mkdir "$1/e$i"
	/usr/local/bin/sync -d "$1/c$i"
	rm "$1/b$i"
	rmdir "$1/e$i"
done
END

# The user who owns /w1 is 1001.
cat >writers.sh <<END
for w in \$(seq \$1); do /usr/local/bin/setpriv --reuid \$((1000 + w)) --clear-groups sh $PWD/writer.sh $PWD/mnt/w\$w & done
wait
END

# try NAME WRITERS: records the writers, and the trace of buffers beside it.
try() {
	name=$1-$2
	for w in $(seq "$2"); do
		mkdir "mnt/w$w"
		chown $((1000 + w)) "mnt/w$w" 2>/dev/null || true
	done
	sync
	step "$name"
	echo >$probe/trace
	echo 1 >$probe/events/block/block_dirty_buffer/enable
	mostrace record -d "$loop" -o "/tmp/out/$name.most" --source blktrace --sync -- sh writers.sh "$2" 2>record.err || fail "$(cat record.err)"
	echo 0 >$probe/events/block/block_dirty_buffer/enable
	grep -v '^#' $probe/trace >"/tmp/out/$name.buffers" || true
	grep overrun $probe/per_cpu/cpu*/stats | grep -v 'overrun: 0' && fail "the trace of buffers was overrun"
	info "$name: $(tail -n 2 record.err)"
	mostrace query "/tmp/out/$name.most" "SELECT kind, cause_known, cause_comm, count(*) n, sum(bytes) b FROM events WHERE op = 'write' GROUP BY kind, cause_known, cause_comm ORDER BY kind" | while read -r line; do info "$line"; done
	remove
}

for writers in 1 2 4 16; do
	fresh_f2fs 128
	try f2fs $writers
done
for writers in 1 2 4 16; do
	fresh_vfat 128 -F 32 -- umask=0
	try fat $writers
done
