# SPDX-License-Identifier: MIT OR Apache-2.0
# SQLite on ext4 through each source of block events; a deleted journal is named live.
fresh_ext4 128 -b 4096
for source in blktrace ftrace bpf; do
	mostrace record -d "$loop" -o "$source.most" --source "$source" --sync -- \
		mostrace workload sqlite --transactions 50 --overwrite "$mnt/test.db"
	check_bundle "$source.most"
	journal=$(grep -c 'test.db-journal' events.csv)
	live=$(grep 'test.db-journal' events.csv | grep -c ',live,')
	[ "$journal" -ge 100 ] && [ "$journal" = "$live" ] || fail "$source: $live of $journal journal writes live"
	! grep -E ',(metadata|unknown),[^,]*-journal' events.csv || fail "$source: a journal called metadata"
	cp -r "$source.most" /tmp/out/
done
