# SPDX-License-Identifier: MIT OR Apache-2.0
# Whose the journal's copies are: each is of a block that some handle dirtied, and the handle has a task.

# sums ERR: what a recording said of its causes, as "transactions copies dirtied named".
sums() {
	sed -n 's/^mostrace: causes: \([0-9]*\) whole transactions: \([0-9]*\) copies in the journal, \([0-9]*\) blocks dirtied, a handle named for \([0-9]*\)$/\1 \2 \3 \4/p' "$1"
}

# run BUNDLE COMMAND…: recorded, and its sums checked.
run() {
	bundle=$1
	shift
	step "$bundle"
	mostrace record -d "$loop" -o "$bundle" --sync -- "$@" 2>record.err || fail "$(cat record.err)"
	check_bundle "$bundle"
	counted=$(sums record.err)
	if [ -z "$counted" ]; then
		grep -q "note: no causes: " record.err || fail "nothing said of causes: $(cat record.err)"
		info "causes: $(grep -o "no causes: .*" record.err)"
		return
	fi
	info "causes: $bundle: transactions, copies, dirtied, named: $counted"
	# shellcheck disable=SC2086 # four numbers
	set -- $counted
	[ "$1" -gt 50 ] && [ "$2" -gt 200 ] || fail "$bundle: $counted"
	# What was dirtied and freed in one transaction is not copied.
	[ "$2" -le "$3" ] && [ $(($3 * 95)) -le $(($2 * 100)) ] || fail "$bundle: copies and dirtied blocks differ: $counted"
	[ $(($4 * 100)) -ge $(($2 * 99)) ] || fail "$bundle: too few have a name: $counted"
}

fresh_ext4 128 -b 4096
run delete.most mostrace workload sqlite --transactions 200 --journal delete "$mnt/delete.db"
run wal.most mostrace workload sqlite --transactions 200 --journal wal "$mnt/wal.db"
cat >writer.sh <<'END'
mkdir -p "$1"
for i in $(seq 40); do
	echo "$i" >"$1/a$i"
	/usr/local/bin/dd if=/dev/zero of="$1/b$i" bs=20k count=1 conv=fsync 2>/dev/null
	mv "$1/a$i" "$1/c$i"
	truncate -s 1000 "$1/b$i"
	rm "$1/b$i"
done
END
run writers.most sh -c "sh writer.sh $mnt/x & sh writer.sh $mnt/y & sh writer.sh $mnt/z & wait"
remove
