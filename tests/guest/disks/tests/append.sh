# SPDX-License-Identifier: MIT OR Apache-2.0
# Appends to zones: the disk, or the kernel for a disk that cannot append, decides where in its zone a write goes. btrfs writes its
# data in this way. Each byte that was appended is counted in its zone, as its write pointer says, and is named where the disk has
# the file's own bytes, although several files are written to one zone at once.

mnt=$PWD/mnt
mkdir -p "$mnt"
mount -t configfs none /sys/kernel/config
null=/sys/kernel/config/nullb/zoned

# begin: makes $disk with btrfs. If $emulated is set, the kernel appends to zones.
begin() {
	mkdir $null
	echo 1 >$null/zoned
	echo 16 >$null/zone_size
	echo 0 >$null/zone_nr_conv
	[ -z "$emulated" ] || echo 0 >$null/zone_append_max_sectors
	echo 1024 >$null/size
	echo 1 >$null/memory_backed
	echo 1 >$null/power
	disk=/dev/zoned
	[ -b $disk ] || disk=/dev/nullb$(cat $null/index)
	/usr/local/bin/mkfs.btrfs -q -f -O zoned -d single -m single "$disk" >mkfs.log 2>&1 || fail "$(cat mkfs.log)"
	mount -t btrfs -o noatime "$disk" "$mnt"
	sync
}

end() {
	umount "$mnt"
	echo 0 >$null/power
	rmdir $null
}

# pointers: for each zone, the bytes ahead of its write pointer.
pointers() {
	blkzone report "$disk" | sed -n 's/.*wptr 0x\([0-9a-f]*\).*/0x\1/p' | while read -r wptr; do echo $((wptr * 512)); done
}

# append BUNDLE SOURCE: writes six files at once and records that.
append() {
	step "$1"
	pointers >before
	mostrace record -d "$disk" -o "$1" --source "$2" --entries bpf --files all --no-snapshot -- sh -ec "
		for letter in a b c d e f; do
			/usr/local/bin/dd if=\$letter of=$mnt/\$letter bs=64k conv=fsync 2>/dev/null &
		done
		wait
		sync"
	pointers >after
	keep "$1"
	mostrace analyze "$1" --by zone,op --format csv >by.csv
	awk -F, -v b="$(column write_bytes <by.csv)" '$2 == "write" { n[$1] += $b } END { for (z in n) print z, n[z] }' by.csv | sort >ours
	paste before after | awk '$1 != $2 { print NR - 1, $2 - $1 }' | sort >theirs
	cmp ours theirs || fail "$1: by zone we say $(tr '\n' ';' <ours) and the pointers $(tr '\n' ';' <theirs)"
}

# check_causes BUNDLE: nothing was lost; each file is named with all its bytes, and with the program that wrote it.
check_causes() {
	# From 7.x on, the kernel skips probes while another one is preempted, and counts that.
	case $(uname -r) in [789].*) return ;; esac
	[ -z "$(losses "$1")" ] || fail "$1: lost $(losses "$1")"
	mostrace analyze "$1" --by file,cause_comm --where "kind = 'regular'" --format csv >by.csv
	{ [ "$(grep -c '^/[a-f],dd,' by.csv)" = 6 ] && [ "$(awk -F, -v b="$(column write_bytes <by.csv)" '
		NR > 1 { n += $b } END { print n }' by.csv)" = $((6 * 24 * 65536)) ]; } || fail "$1: $(cat by.csv)"
}

# check_places BUNDLE: each sector of each row that names a file is, on the disk, the file's sector at the row's offset.
check_places() {
	mostrace events "$1" --where "kind = 'regular'" --format csv >events.csv
	awk -F, -v s="$(column sector <events.csv)" -v b="$(column bytes <events.csv)" -v p="$(column path <events.csv)" \
		-v o="$(column file_offset <events.csv)" 'NR > 1 && $p != "" { print $s, $b / 512, substr($p, 2), $o == "" ? "unknown" : $o / 512 }' events.csv >places
	while read -r sector sectors letter offset; do
		dd if="$disk" bs=512 skip="$sector" count="$sectors" 2>/dev/null | awk -v n="$sectors" -v l="$letter" -v o="$offset" '
			{ for (i = 0; i < n; i++) {
				found = substr($0, i * 512 + 1, 10)
				if (o == "unknown" ? substr(found, 1, 1) != l : found != sprintf("%s %08d", l, o + i)) { print found; exit 1 }
			} checked = 1 }
			END { exit !checked }' >found || fail "$1: sector $sector of $letter at $offset has $(cat found)"
	done <places
	info "$1: $(wc -l <places) rows, each sector where the disk has that of its file; $(wc -l <theirs) zones, each as its write pointer says"
}

# Each sector of a file says whose it is, and which.
for letter in a b c d e f; do
	awk -v l=$letter 'BEGIN { for (i = 0; i < 24 * 128; i++) printf "%s %08d%502s", l, i, "" }' >$letter
done
emulated=
begin
append disk.most bpf
check_causes disk.most
check_places disk.most
step "segments"
mostrace record -d "$disk" -o segments.most --segment 2s --source bpf --entries bpf --no-snapshot -- sh -ec "
	for i in 1 2 3 4 5; do dd if=/dev/zero of=$mnt/g bs=1M count=1 conv=fsync 2>/dev/null; sleep 1; done"
for segment in segments.*.most; do
	keep "$segment"
	mostrace analyze "$segment" >/dev/null || fail "$segment"
	grep -q '"under_way": [1-9]' "$segment/manifest.json" && fail "$segment: $(grep -A 8 '"segment"' "$segment/manifest.json")"
done
mostrace analyze segments.most --by file --where "kind = 'regular'" --format csv >by.csv
[ "$(awk -F, -v b="$(column write_bytes <by.csv)" '$1 == "/g" { n = $b } END { print n }' by.csv)" = $((5 << 20)) ] || fail "segments: $(cat by.csv)"
# blktrace does not say which of several appends of one length was completed: what is not known is not named. From 7.x on, the
# kernel leaves appends out of version 7 of its events, and the recording says so.
case $(uname -r) in
[789].*)
	mostrace record -d "$disk" -o left-out.most --source blktrace --entries bpf --no-snapshot -- true
	grep -q 'blktrace: this kernel leaves appends to zones out' left-out.most/manifest.json || fail "$(cat left-out.most/manifest.json)"
	;;
*)
	append blktrace.most blktrace
	check_places blktrace.most
	;;
esac
end

# From 6.12 on, null_blk can leave it to the kernel.
if grep -q zone_append_max_sectors /sys/kernel/config/nullb/features; then
	emulated=yes
	begin
	append kernel.most bpf
	check_causes kernel.most
	check_places kernel.most
	end
fi
umount /sys/kernel/config
