# SPDX-License-Identifier: MIT OR Apache-2.0
# Compressed files of f2fs. FIEMAP gives a cluster's place but not its real length. So the checks are: each block that
# the map gives to a file is in an extent of that file, each cluster begins in a block of the file, and the blocks in
# the map are those that the file uses, without what the kernel reserves.
fresh_f2fs 256 -O extra_attr,compression -- compress_algorithm=lz4,compress_log_size=2,compress_extension=txt
mkdir "$mnt/c"
/usr/local/bin/chattr +c "$mnt/c"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	# The files are of 16 to 400 KiB of text, end with a partial cluster, and every third has an incompressible
	# part.
	seq 1 $((i * 3500)) >"$mnt/c/file$i"
	cp "$mnt/c/file$i" "$mnt/by-extension$i.txt"
	[ $((i % 3)) -ne 0 ] || cat "$sources"/70000 >>"$mnt/c/file$i"
	cat "$sources"/20000 >"$mnt/plain$i"
done
sync
rm "$mnt"/c/file*5 "$mnt"/plain*2
for i in 1 2 3; do
	/usr/local/bin/dd if="$sources"/20000 of="$mnt/c/file$((i * 6))" bs=4096 seek=$((i * 3)) count=3 conv=notrunc status=none
	seq 1 9000 >>"$mnt/c/file$((i * 4))"
done
sync

list_files
map_live live.csv
encoded=$(grep -c encoded frag.txt) || true
[ "$encoded" -ge 100 ] || fail "$encoded compressed clusters"
compressed=$(find "$mnt/c" "$mnt"/*.txt -type f | wc -l)
info "$compressed files compressed, $encoded clusters"

# owned FIEMAP MAP: finds blocks of the map that no extent of their owner covers.
of_map 'regular|directory' <live.csv | joined >map.txt
awk 'FNR == NR { for (s = $1; s < $1 + $2; s += 8) of[s] = of[s] " " $3 " "; next }
	{ for (s = $1; s < $1 + $2; s += 8) if (!index(of[s], " " $3 " ")) print s, $3 }' fiemap.raw map.txt >strange.txt
[ ! -s strange.txt ] || fail "$(wc -l <strange.txt) blocks are of no file that FIEMAP knows there: $(head -n 5 strange.txt | tr '\n' ';')"
awk 'FNR == NR { for (s = $1; s < $1 + $2; s += 8) of[s] = $3; next }
	of[$1] != $3 { print $1, $3, of[$1] }' map.txt fiemap.raw >strange.txt
[ ! -s strange.txt ] || fail "$(wc -l <strange.txt) extents begin in a block that is not of their file: $(head -n 5 strange.txt | tr '\n' ';')"
check_names live.csv

unmount
mostrace map disk.img --format csv -o after.csv
of_map 'regular|directory' <after.csv | joined | cmp - map.txt || fail "another map after the unmount"
