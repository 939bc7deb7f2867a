# SPDX-License-Identifier: MIT OR Apache-2.0
# f2fs counts what it writes as data, nodes and metadata; the trace must have the same bytes of each.

# counted NAME…: prints the bytes in these lines of f2fs's counts of writes.
counted() {
	for name in "$@"; do
		sed -n '/^\[WRITE\]/,/^\[READ\]/p' iostat | sed -n "s/^$name:[[:space:]]*\([0-9]*\).*/\1/p"
	done | awk '{ sum += $1 } END { print sum + 0 }'
}

# traced CONDITION: prints the bytes of these rows.
traced() {
	mostrace query run.most "select sum(bytes) as bytes from events where op = 'write' and $1" --format csv | tail -n 1
}

# agree WHAT COUNTED TRACED: fails if the two numbers differ.
agree() {
	info "$1: $2 bytes counted, $3 traced"
	{ [ "$2" -gt 0 ] && [ "$2" -eq "$3" ]; } || fail "$1 differs: $(cat iostat)"
}

fresh_f2fs 128
name=$(basename "$loop")
counters=/proc/fs/f2fs/$name/iostat_info
[ -e "$counters" ] || { info "this kernel's f2fs does not count"; exit 0; }
sync
echo 0 >"/sys/fs/f2fs/$name/iostat_enable"
echo 1 >"/sys/fs/f2fs/$name/iostat_enable"
mostrace record -d "$loop" -o run.most --sync -- sh -c "mostrace workload sqlite --transactions 50 --journal delete $mnt/a.db &&
	mostrace workload sqlite --transactions 50 --journal wal $mnt/b.db" 2>record.err || fail "$(cat record.err)"
cp "$counters" iostat
check_bundle run.most
agree data "$(counted "fs data" "fs cdata" "fs gc data" "fs cp data" "app direct data" "app direct")" "$(traced "class = 'data'")"
agree nodes "$(counted "fs node" "fs gc node" "fs cp node")" "$(traced "kind like '%node'")"
agree metadata "$(counted "fs meta" "fs cp meta")" "$(traced "class = 'metadata' and not kind like '%node'")"
remove
