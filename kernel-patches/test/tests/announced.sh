# SPDX-License-Identifier: MIT OR Apache-2.0
# Handles that ext4 announces and that never begin, as without a journal, leave no place of the recorder's table occupied: more
# tasks than it has places, all of them still there, find room.

cat >many.sh <<'END'
mkfifo gate
exec 3<>gate 4<gate
for i in $(seq 4500); do
	(
		: >"$1/f"
		exec 3>&-
		read -r _ <&4
	) &
done
exec 3>&-
wait
END
fresh_ext4 64 -O ^has_journal
load
step "4500 tasks"
mostrace record -d "$loop" -o many.most --source blktrace --entries kernel --causes kernel --no-snapshot -- sh many.sh "$mnt" 2>record.err ||
	fail "$(cat record.err)"
grep -q '"causes": *"kernel"' many.most/manifest.json || fail "not the recorder's causes"
grep -q '"causes_tasks": *0' many.most/manifest.json || fail "$(grep causes_tasks many.most/manifest.json)"
remove
unload
check_kernel
