# SPDX-License-Identifier: MIT OR Apache-2.0
# Records one load twice at once on a patched kernel, by the probes that take the kernel's tracepoints, and by those that take its
# functions and private structs, as on any other kernel. Their tables must be the same: same.py on the host compares them.
tracing=/sys/kernel/tracing
mount -t tracefs none $tracing
events="jbd2/jbd2_dirty_metadata iomap/iomap_dio_submit_bio writeback/writeback_start_folio"

cat >work.sh <<'END'
mnt=$1
mostrace workload sqlite --transactions 40 --overwrite "$mnt/rollback.db" >/dev/null
mostrace workload sqlite --transactions 40 --journal wal --overwrite "$mnt/wal.db" >/dev/null
dd if=/dev/urandom of="$mnt/direct" bs=256k count=4 oflag=direct
dd if=/dev/urandom of="$mnt/direct" bs=512 count=7 seek=13 oflag=direct conv=notrunc
for writer in one two three; do
	(
		mkdir "$mnt/$writer"
		for i in $(seq 20); do
			dd if=/dev/urandom of="$mnt/$writer/$i" bs=5000 count=3 conv=fsync
			mv "$mnt/$writer/$i" "$mnt/$writer/file-$i"
		done
		rm "$mnt/$writer"/file-1*
	) &
done
wait
sync
END

# hide / show: the probes look for the tracepoints in tracefs.
hide() {
	mkdir -p nothing
	for event in $events; do mount --bind nothing $tracing/events/"$event"; done
}
show() {
	for event in $events; do umount $tracing/events/"$event"; done
}

# taken PID: prints the tracepoints of $events to which a process has attached programs.
taken() {
	cat /proc/"$1"/fdinfo/* 2>/dev/null | awk '$1 == "tp_name:" { print $2 }' | sort |
		grep -xE 'jbd2_dirty_metadata|iomap_dio_submit_bio|writeback_start_folio' | tr '\n' ' '
}

# Each recorder runs its command once it records. The first one begins while the tracepoints are hidden; its command is the second
# one, whose command is the load.
export tracing events mnt loop recorded
recorded="--source bpf --entries bpf --causes bpf --files all --no-snapshot"
{
	sed -n '/^show()/,/^}/p; /^taken()/,/^}/p' "$0"
	cat <<'END'
taken $PPID >by.stock
show
mostrace doctor >doctor.told || true
exec mostrace record -d "$loop" -o told.most $recorded -- sh -eu inner.sh 2>told.log
END
} >outer.sh
{
	sed -n '/^taken()/,/^}/p' "$0"
	cat <<'END'
taken $PPID >by.told
sh work.sh "$mnt" 2>/dev/null
END
} >inner.sh

# check_same
check_same() {
	step "two recordings of $type"
	hide
	mostrace doctor >doctor.stock || true
	# shellcheck disable=SC2086 # one word per option
	mostrace record -d "$loop" -o stock.most $recorded -- sh -eu outer.sh 2>stock.log || fail "$(cat stock.log told.log)"
	info "$type: of the tracepoints, one takes: $(cat by.stock); the other: $(cat by.told)"
	[ -z "$(cat by.stock)" ] || fail "the tracepoints are not hidden"
	[ "$(cat by.told)" = "$wanted" ] || fail "not $wanted: $(cat by.told)"
	[ -z "$skips" ] || return 0
	for each in stock told; do
		grep -q ', 0 lost' $each.log || fail "$(cat $each.log)"
		mostrace events $each.most --format csv -o $each.csv 2>events.log || fail "$(cat events.log)"
		cp $each.csv doctor.$each /tmp/out/
		keep $each.most
	done
	grep -q 'by the tracepoint jbd2_dirty_metadata' doctor.told || fail "$(cat doctor.told)"
	! grep -q 'by the tracepoint' doctor.stock || fail "$(cat doctor.stock)"
}

fresh_ext4 128 -b 4096
# From 7.x on, a program at a tracepoint may be preempted, and the kernel then skips others: those at functions see more, and no two
# recordings are alike.
case $(uname -r) in
[789].*) wanted="iomap_dio_submit_bio " skips=yes ;;
*) wanted="iomap_dio_submit_bio jbd2_dirty_metadata writeback_start_folio " skips= ;;
esac
check_same
remove
umount $tracing
