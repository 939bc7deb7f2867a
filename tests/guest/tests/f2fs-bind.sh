# SPDX-License-Identifier: MIT OR Apache-2.0
# The event that tells the path of a file has no device. It is used however often the filesystem is mounted, and beside another f2fs,
# whose files have the same inode numbers.
fresh_f2fs 128

# named NAME: records by plain tracepoints, and prints for how many percent of the written bytes the path is known.
named() {
	step "record $1"
	mostrace record -d "$loop" -o "$1.most" --source tracefs --entries tracefs --sync -- \
		mostrace workload sqlite --transactions 50 --overwrite "$mnt/app.db" >rec.log 2>rec.err || fail "$(cat rec.err)"
	mostrace query "$1.most" "SELECT ROUND(100.0 * SUM(CASE WHEN path IS NOT NULL THEN bytes ELSE 0 END) / SUM(bytes)) \
		FROM events WHERE op = 'write'" --format csv | sed 1d
}

# enough WHAT SHARE: fails if the share is smaller than that of one mount.
enough() {
	info "$1: paths of $2 %, with one mount $one %"
	awk "BEGIN { exit !($2 >= $one - 5) }" || fail "$1: paths of $2 % instead of $one %"
}

one=$(named one)
mkdir "$mnt/data" bound other
for folder in data .; do mount -o bind "$mnt/$folder" bound; done
enough "three mounts" "$(named bound)"

# The other one's files are written in the same process, in turns.
truncate -s 128M other.img
make_f2fs other.img
second=$(losetup -f)
losetup "$second" other.img
mount -t f2fs "$second" other
for name in a b c; do : >"other/their-$name"; done
enough "two filesystems" "$(named two)"
mostrace record -d "$loop" -o both.most --source tracefs --entries tracefs --sync -- sh -c "
	for i in 1 2 3 4 5 6 7 8; do
		for name in a b c; do
			echo \$i >>other/their-\$name
			echo \$i >>$mnt/our-\$name
		done
	done"
mostrace query both.most "SELECT DISTINCT path FROM events WHERE path IS NOT NULL" --format csv >paths.csv
! grep their paths.csv || fail "the other filesystem's names: $(cat paths.csv)"
grep -q our paths.csv || fail "no names: $(cat paths.csv)"
umount other

# ext4's events tell no paths, and a file of f2fs has the same number as one of ext4.
truncate -s 64M other.img
/usr/local/bin/mke2fs -q -F -t ext4 other.img
losetup -c "$second"
mount "$second" other
for n in $(seq 20); do : >"$mnt/their-$n"; done
for n in $(seq 300); do : >"other/our-$n"; done
stat -c '%i %n' "$mnt"/their-* other/our-* | sort -n | awk '$1 == number { print file, $2 } { number = $1; file = $2 }' >same.txt
[ -s same.txt ] || fail "no numbers are the same"
cat >work.sh <<'END'
while read -r one other; do
	echo x >>"$one"
	echo x >>"$other"
done <same.txt
sync
rm other/our-*
END
mostrace record -d "$second" -o ext4.most --source tracefs --entries tracefs --sync -- sh work.sh
mostrace query ext4.most "SELECT DISTINCT path FROM events WHERE path IS NOT NULL" --format csv >paths.csv
! grep their paths.csv || fail "f2fs's names on ext4: $(cat paths.csv)"
grep -q 'no event tells names' ext4.most/manifest.json || fail "it does not say that names are missing"
umount bound bound other
losetup -d "$second"
remove
