# SPDX-License-Identifier: MIT OR Apache-2.0
# Records what a phone does on f2fs, which discards: files that are written anew and deleted, between transactions of SQLite.
fresh_f2fs 256 -- discard
cat >load.sh <<END
set -e
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do
	for file in \$((round % 7)) \$((round % 5 + 7)); do
		rm -f $mnt/\$file
		dd if=/dev/zero of=$mnt/\$file bs=64k count=40 conv=fsync 2>/dev/null
	done
	mostrace workload sqlite --transactions 20 --overwrite $mnt/\$((round % 3)).db >/dev/null
	sync
	# f2fs discards when nothing was asked of it for five seconds.
	[ \$((round % 4)) != 0 ] || sleep 8
done
END
step "record"
mostrace record -d "$loop" -o load.most --sync -- sh load.sh >rec.log 2>rec.err || fail "$(cat rec.err)"
check_bundle load.most
mostrace analyze load.most --by op --format csv >ops.csv
discarded=$(awk -F, -v b="$(column discard_bytes <ops.csv)" '{ n += $b } END { print n }' ops.csv)
info "discarded $discarded bytes"
[ "$discarded" -gt 0 ] || fail "nothing was discarded: $(cat ops.csv)"
remove
