# SPDX-License-Identifier: MIT OR Apache-2.0
# An f2fs on two devices. Each of the two disks is recorded: its bytes are those that the kernel counts, and the file that each row
# names is the one whose contents lie there, by the probes and by the map alone.
truncate -s 96M first.img
truncate -s 128M second.img
first=$(losetup -f)
losetup "$first" first.img
second=$(losetup -f)
losetup "$second" second.img
/usr/local/bin/mkfs.f2fs -q -f -c "$second" "$first" >mkfs.log 2>&1 || fail "$(cat mkfs.log)"
mnt=$PWD/mnt
mkdir -p "$mnt"
mount -t f2fs -o noatime "$first" "$mnt"

counted() { echo $(($(awk '{ print $7 }' "/sys/block/$(basename "$1")/stat") * 512)); }

# write.sh NAME DISK: writes until the disk has 8 MiB more, or for long enough to fill the first device. Each file holds its own name
# over and over. f2fs writes databases to another log than other files, and begins that on the first device, and that of other files on
# the second.
cat >write.sh <<END
written() { awk '{ print int(\$7 / 2048) }' /sys/block/\$(basename \$1)/stat; }
i=10 before=\$(written \$2)
while [ \$i -lt 90 ] && [ \$(written \$2) -lt \$((before + 8)) ]; do
	for name in \$1-\$i \$1-\$i.db; do yes \$name | head -c 1048576 >$mnt/\$name; done
	sync
	i=\$((i + 1))
done
yes gone | head -c 1048576 >$mnt/gone
sync
rm $mnt/gone
yes \$1-10d | head -c 1048576 >direct
/usr/local/bin/dd if=direct of=$mnt/\$1-10d bs=64k oflag=direct conv=fsync 2>/dev/null
mostrace workload sqlite --transactions 20 --overwrite $mnt/\$1.db
END

# run NAME DISK ARG…: records these writes, of files whose names begin with NAME.
run() {
	name=$1 disk=$2
	shift 2
	step "record $name"
	sync
	before=$(counted "$disk")
	mostrace record -d "$disk" -o "$name.most" --files all --sync "$@" -- sh write.sh "$name" "$disk" 2>record.err || fail "$(cat record.err)"
	size=$(($(counted "$disk") - before))
	cat record.err
	! grep 'no snapshot' record.err || fail "$(cat record.err)"
	grep -q "^mostrace: the kernel's counters agree$" record.err || fail "$(cat record.err)"
	mostrace analyze "$name.most" --by op --format csv >ops.csv
	told=$(awk -F, -v c="$(column write_bytes <ops.csv)" '$1 == "write" { print $c }' ops.csv)
	[ "$told" = "$size" ] || fail "$name: $told bytes, the disk counted $size"
	grep -q 'lies on .* too' record.err || fail "no note: $(cat record.err)"
}

# compare NAME IMAGE LEAST: the first and last bytes of each row of such a file are the name that the row has, at LEAST places or more.
# Zeros are blocks that were written anew elsewhere since, and discarded.
compare() {
	step "compare $1"
	mostrace events "$1.most" --format csv >events.csv
	sector=$(column sector <events.csv) bytes=$(column bytes <events.csv) path=$(column path <events.csv) kind=$(column kind <events.csv) op=$(column op <events.csv)
	awk -F, -v s="$sector" -v b="$bytes" -v p="$path" -v k="$kind" -v o="$op" -v n="^/$1-" '
		$o == "write" && $b > 0 { last[$s] = last[$s + $b / 512 - 1] = $k == "regular" ? $p : "" }
		END { for (at in last) if (last[at] ~ n) print at, last[at] }' events.csv | head -n 200 >rows
	sync
	compared=0
	while read -r at name; do
		here=$(/usr/local/bin/dd if="$2" bs=512 skip="$at" count=1 2>/dev/null | tr '\n' ' ' | cut -c1-40)
		[ -n "$here" ] || continue
		compared=$((compared + 1))
		case "$here" in *"${name#/} ${name#/} "*) ;; *) fail "$1: sector $at, $name: $here" ;; esac
	done <rows
	[ $compared -ge "$3" ] || fail "$1: only $compared places of files: $(mostrace analyze "$1.most" --by kind,path)"
	rm "$mnt/$1-"*
	sync
	info "$1: $compared of $(wc -l <rows) places hold the file that their rows name, $size bytes as the disk counted"
}

run first "$first"
check_bundle first.most
compare first first.img 12
mv rows rows.first
run second "$second"
check_bundle second.most
compare second second.img 12
# Where it lies, the filesystem decides.
cat rows.first rows | grep -q "d$" || fail "nothing of the direct IO: $(cat rows.first rows)"
run again "$first" --entries none
compare again first.img 12
unknown=$(mostrace analyze again.most --by kind --where "op = 'write'" --format csv | awk -F, '$1 == "unmapped"')
[ -z "$unknown" ] || fail "unmapped: $unknown"

step "the causes on the second disk"
mostrace analyze second.most --by cause_known,comm --where "class = 'data'" --format csv
unknown=$(mostrace analyze second.most --by cause_known --where "class = 'data'" --format csv | awk -F, '$1 == "unknown"')
[ -z "$unknown" ] || fail "causes: $(mostrace analyze second.most --by kind,cause_known,cause_comm,comm)"
mostrace analyze second.most --by dirty_comm --where "kind = 'regular'" --format csv >dirtiers.csv
grep -q '^sh,\|^head,\|^mostrace,' dirtiers.csv || fail "dirtiers: $(cat dirtiers.csv)"

step "an image of one device is refused by name"
umount "$mnt"
! mostrace map first.img >/dev/null 2>map.err || fail "the first alone was mapped"
grep -q "one of several devices; the others are $second" map.err || fail "$(cat map.err)"
losetup -d "$first"
losetup -d "$second"
rm -f first.img second.img
