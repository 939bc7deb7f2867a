# SPDX-License-Identifier: MIT OR Apache-2.0
# The causes of the journal's copies: each is a copy of a block that some handle dirtied, and the handle has a task.

# record COMMAND…: records the command in $bundle.
record() {
	mostrace record -d "$loop" -o "$bundle" --sync -- "$@" 2>record.err || fail "$(cat record.err)"
}

# run BUNDLE COMMAND…: records the command and checks the sums.
run() {
	bundle=$1
	shift
	step "$bundle"
	lossless "$bundle" record "$@"
	check_bundle "$bundle"
	# These kernels allow a program where a block is modified.
	! grep "accepts no program" record.err || fail "$bundle: later modifications are said not to be seen"
	check_causes "$bundle" record.err
}

fresh_ext4 128 -b 4096
run delete.most mostrace workload sqlite --overwrite --transactions 200 --journal delete "$mnt/delete.db"
run wal.most mostrace workload sqlite --overwrite --transactions 200 --journal wal "$mnt/wal.db"
put_writer
run writers.most sh -c "sh writer.sh $mnt/x & sh writer.sh $mnt/y & sh writer.sh $mnt/z & wait"
# So a block's handle is known however many handles are open.
if mostrace analyze --by cause_known --where "class = 'journal'" writers.most | grep -q "^ *set "; then
	fail "of some copies it is not known which of several handles they are of"
fi
remove
