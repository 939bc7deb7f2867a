# SPDX-License-Identifier: MIT OR Apache-2.0
# Records writers in folders of their own. A kprobe traces every call of jbd2_journal_dirty_metadata with its task: the
# first call for a block in a transaction is the expected cause. compare.py compares both.

tracing=/sys/kernel/tracing
mount -t tracefs none $tracing 2>/dev/null || true
probe=$tracing/instances/truth
mkdir -p $probe

# A handle begins with its transaction, which begins with the journal and its number; a buffer_head has its block at
# byte 24.
echo 'p:dirty jbd2_journal_dirty_metadata tid=+8(+0(%di)):u32 block=+24(%si):u64' >$tracing/kprobe_events
echo 8192 >$probe/buffer_size_kb

cat >writer.sh <<'END'
mkdir -p "$1"
for i in $(seq 12); do
	echo "$i" >"$1/a$i"
	/usr/local/bin/dd if=/dev/zero of="$1/b$i" bs=20k count=1 conv=fsync 2>/dev/null
	mv "$1/a$i" "$1/c$i"
	ln "$1/c$i" "$1/d$i"
	chmod 600 "$1/d$i"
	truncate -s 1000 "$1/b$i"
	mkdir "$1/e$i"
	rm "$1/b$i"
	rmdir "$1/e$i"
done
END

cat >writers.sh <<END
for w in \$(seq \$1); do sh $PWD/writer.sh $PWD/mnt/w\$w & done
wait
END

# with_truth NAME COMMAND…: records the command, and the truth beside it.
with_truth() {
	name=$1
	shift
	step "$name"
	echo >$probe/trace
	echo 1 >$probe/events/kprobes/dirty/enable
	mostrace record -d "$loop" -o "/tmp/out/$name.most" --source blktrace --sync -- "$@" 2>record.err || fail "$(cat record.err)"
	echo 0 >$probe/events/kprobes/dirty/enable
	grep -v '^#' $probe/trace >"/tmp/out/$name.truth"
	grep overrun $probe/per_cpu/cpu*/stats | grep -v 'overrun: 0' && fail "the truth was overrun"
	info "$name: $(grep '^mostrace: causes' record.err)"
}

# try NAME WRITERS MIB [MKE2FS-OPTION…] [-- OPTIONS]
try() {
	name=$1-$2 writers=$2
	shift 2
	fresh_ext4 "$@"
	with_truth "$name" sh writers.sh "$writers"
	remove
}

# Two databases of two processes, a writer of unrelated files, and a reader each of whose reads updates an access time.
mixed() {
	fresh_ext4 256 -b 4096 -- strictatime
	mkdir mnt/read
	for i in $(seq 30); do echo "$i" >"mnt/read/r$i"; done
	sync
	cat >mixed.sh <<END
mostrace workload sqlite --transactions 150 $PWD/mnt/one.db >/dev/null &
mostrace workload sqlite --journal wal --transactions 150 $PWD/mnt/two.db >/dev/null &
sh $PWD/writer.sh $PWD/mnt/other &
for i in \$(seq 30); do cat $PWD/mnt/read/r\$i >/dev/null; usleep 50000; done
wait
END
	with_truth mixed sh mixed.sh
	remove
}

for writers in 1 2 4 16; do try ordered $writers 256 -b 4096; done
try journal 4 256 -b 4096 -- data=journal
try small 4 256 -b 1024
try fast_commit 4 256 -b 4096 -O fast_commit
mixed
