# SPDX-License-Identifier: MIT OR Apache-2.0
# An application's calls are recorded, and made again on a fresh filesystem they return the same and leave the same file. The
# host replays the recording too: it is left in operations.most.

fresh_ext4 128 -b 4096
mostrace record -d "$loop" -o operations.most --operations --sync -- \
	mostrace workload sqlite --transactions 50 "$mnt/x.db"
cp -r operations.most /tmp/out/
! grep '"operations_[a-z]*": *[1-9]' operations.most/manifest.json || fail "calls were lost"
size=$(stat -c %s "$mnt/x.db")
remove

fresh_ext4 128 -b 4096
mostrace workload replay operations.most --path "$mnt" >outcome
cp outcome /tmp/out/operations.txt
# Each kind of call: its name, how many were made, how many returned the same.
awk '$2 ~ /^[0-9]+$/ && $3 ~ /^[0-9]+$/ { calls += $2; same += $3 } END { exit !(calls > 200 && calls == same) }' outcome ||
	fail "$(cat outcome)"
[ "$(stat -c %s "$mnt/x.db")" = "$size" ] || fail "x.db has another size"
remove
