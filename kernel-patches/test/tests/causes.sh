# SPDX-License-Identifier: MIT OR Apache-2.0
# The causes of the journal's copies by the kernel's recorder, which reports each block as it is modified, so that every
# copy has a handle, whatever other tasks did.

# run BUNDLE COMMAND…: records the command and checks its causes.
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

# users: prints jbd2's reference count if it is a module.
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
[ -z "$(cat "$sys"/filesystems)" ] || fail "filesystems was left as: $(cat "$sys"/filesystems)"
# Causes from the recorder require entries from the recorder.
refused "no causes from the kernel.s recorder" mostrace record -d "$loop" -o none.most --entries none --causes kernel -- true
[ "$(users)" = "$held" ] || fail "jbd2 was held by $held, and is by $(users)"
remove
unload
check_kernel
