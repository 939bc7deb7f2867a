# SPDX-License-Identifier: MIT OR Apache-2.0
# f2fs's own threads: garbage collection, checkpoint and discard are distinguished by their submitters, and blocks that
# are moved keep their file. Only with background_gc=sync does the GC thread write itself; otherwise it leaves what it
# moves to the flusher.
fresh_f2fs 256 -- discard,background_gc=sync
sysfs=/sys/fs/f2fs/$(basename "$loop")
# Two files are written in turn and one is then deleted, which leaves segments that are half valid.
i=0
while [ $i -lt 60 ]; do
	for file in keep gone; do
		/usr/local/bin/dd if=/dev/urandom of="$mnt/$file" bs=64k count=1 seek=$i conv=notrunc,fsync 2>/dev/null
	done
	i=$((i + 1))
done
# GC is urgent until it has moved a megabyte; then the script waits until the discards of the deleted blocks have been
# issued.
cat >work.sh <<'END'
folder=$1 sysfs=$2 stat=$3
count() { awk -v field="$1" '{ print $field }' "$stat"; }
discards=$(count 12)
rm "$folder/gone"
sync
sectors=$(count 7)
echo 1 >"$sysfs/gc_urgent"
until [ $(($(count 7) - sectors)) -ge 2048 ]; do usleep 100000; done
echo 0 >"$sysfs/gc_urgent"
sync
until [ "$(count 12)" -gt "$discards" ]; do usleep 100000; done
# Discards are issued eight at a time; the recording must not end within a round.
idle=0
while [ $idle -lt 5 ]; do
	usleep 100000
	if [ "$(count 9)" = 0 ]; then idle=$((idle + 1)); else idle=0; fi
done
END
step "record"
mostrace record -d "$loop" -o threads.most --source blktrace --sync --files all -- \
	sh work.sh "$mnt" "$sysfs" "/sys/block/$(basename "$loop")/stat"
check_bundle threads.most
mostrace analyze threads.most --by comm,kind,file --format csv >threads.csv
cut -d, -f1-6 threads.csv
# expect THREAD KIND FILE COLUMN: checks that there are such rows.
expect() {
	at=$(column "$4" <threads.csv)
	awk -F, -v c="$1" -v k="$2" -v f="$3" -v b="$at" 'index($1, c) == 1 && $2 == k && $3 == f && $b > 0 { found = 1 }
		END { exit !found }' threads.csv || fail "no $4 of $1 of kind '$2', file '$3'"
}
expect f2fs_gc- regular /keep write_bytes
# No other task is behind it.
mostrace analyze threads.most --by cause_comm,cause_op,file --format csv >causes.csv
grep -q '^f2fs_gc-[^,]*,gc,/keep,' causes.csv || fail "collected for nobody: $(cut -d, -f1-5 causes.csv)"
# Before checkpoint_merge (5.10), the task that asks for a checkpoint writes it.
checkpointer=f2fs_ckpt-
grep -q checkpoint_merge /proc/mounts || checkpointer=sync
expect "$checkpointer" checkpoint '' write_bytes
expect f2fs_discard- '' '' discard_bytes
! grep -E '^f2fs_(discard|ckpt)-[^,]*,regular' threads.csv || fail "a file's contents by another thread than GC's"
