# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks of the causes in a recording.

# sums ERR: prints what the recorder said of causes, as "transactions copies dirtied named".
sums() {
	sed -n 's/^mostrace: causes: \([0-9]*\) whole transactions: \([0-9]*\) copies in the journal, \([0-9]*\) blocks dirtied, a handle named for \([0-9]*\)$/\1 \2 \3 \4/p' "$1"
}

# check_causes BUNDLE ERR: checks the sums that the recorder printed.
check_causes() {
	bundle=$1
	counted=$(sums "$2")
	[ -n "$counted" ] || fail "$bundle: nothing said of causes: $(cat "$2")"
	info "causes: $bundle: transactions, copies, dirtied, named: $counted"
	# shellcheck disable=SC2086 # four numbers
	set -- $counted
	{ [ "$1" -gt 50 ] && [ "$2" -gt 200 ]; } || fail "$bundle: $counted"
	[ "$2" -le "$3" ] || fail "$bundle: more copies than dirtied blocks: $counted"
	# Blocks that were dirtied and freed in one transaction are not copied; the journal then has a revoke block.
	if [ $(($3 * 95)) -gt $(($2 * 100)) ]; then
		mostrace analyze --by kind "$bundle" | grep -q "^ *revoke " || fail "$bundle: dirtied and not copied: $counted"
	fi
	[ $(($4 * 100)) -ge $(($2 * 99)) ] || fail "$bundle: too few have a name: $counted"
}

# put_writer: writes the script writer.sh FOLDER, which makes, writes, renames, truncates and removes files.
put_writer() {
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
}
