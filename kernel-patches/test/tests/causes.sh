# SPDX-License-Identifier: MIT OR Apache-2.0
# Whose the journal's copies are, by the kernel's recorder: it tells each block as it is modified, so that each copy of the
# journal's has a handle, whoever else was at work.

# run BUNDLE COMMAND…
run() {
	bundle=$1
	shift
	step "$bundle"
	mostrace record -d "$loop" -o "$bundle" --source blktrace --entries kernel --causes kernel --sync -- "$@" 2>record.err ||
		fail "$(cat record.err)"
	check_bundle "$bundle"
	grep -q '"causes": *"kernel"' "$bundle/manifest.json" || fail "$bundle: not the recorder's causes"
	check_causes "$bundle" record.err
}

# users: how often jbd2 is held, where it is a module.
users() {
	cat /sys/module/jbd2/refcnt 2>/dev/null || echo built in
}

fresh_ext4 128 -b 4096
load
held=$(users)
run delete.most mostrace workload sqlite --transactions 100 --journal delete "$mnt/delete.db"
run wal.most mostrace workload sqlite --transactions 100 --journal wal "$mnt/wal.db"
put_writer
run writers.most sh -c "sh writer.sh $mnt/x & sh writer.sh $mnt/y & sh writer.sh $mnt/z & wait"
[ -z "$(cat $sys/filesystems)" ] || fail "filesystems was left as: $(cat $sys/filesystems)"
# Without its entries there are none of its causes.
refused "no causes from the kernel.s recorder" mostrace record -d "$loop" -o none.most --entries none --causes kernel -- true
[ "$(users)" = "$held" ] || fail "jbd2 was held by $held, and is by $(users)"
remove
unload
check_kernel
