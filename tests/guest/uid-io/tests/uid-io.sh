# SPDX-License-Identifier: MIT OR Apache-2.0
# What the kernel charges to an application (/proc/PID/io, which Android's uid_io sums by user), beside what the device wrote for it: 200
# transactions of SQLite in each journal mode on each filesystem. `tests/guest/run.sh` with GUEST_SCRIPTS=tests/guest/uid-io/tests prints the table of
# docs/FIGURES.md.

# measured FILESYSTEM JOURNAL: measures it, and prints a line of the table.
measured() {
	step "$1 $2"
	# A shell is charged for the children that it has waited for.
	mostrace measure -q --empty --fs "$1" -o run.most -- sh -c "
		mostrace workload sqlite --journal $2 --transactions 200 test.db >/dev/null
		sync -f .
		cat /proc/\$\$/io >/tmp/io" >measured.log 2>&1 || fail "$1 $2: $(cat measured.log)"
	mostrace analyze run.most --by op --format csv >ops.csv
	bytes=$(column write_bytes <ops.csv)
	device=$(awk -F, -v column="$bytes" '$1 == "write" { print $column }' ops.csv)
	asked=$(sed -n 's/^wchar: //p' /tmp/io)
	charged=$(sed -n 's/^write_bytes: //p' /tmp/io)
	{ [ "$device" -gt 0 ] && [ "$charged" -gt 0 ]; } || fail "$1 $2: $device, $charged"
	info "$1 $2 $asked $charged $device $((charged * 100 / device)) %"
	rm -rf run.most
}

for filesystem in ext4 f2fs vfat; do
	for journal in delete truncate persist wal memory off; do
		measured "$filesystem" "$journal"
	done
done
