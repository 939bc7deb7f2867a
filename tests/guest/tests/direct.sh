# SPDX-License-Identifier: MIT OR Apache-2.0
# Direct IO with several bios per call, split into small requests: every byte is attributed to the file's inode, at the
# offset that the map has for it.

# places: prints how many rows of /direct are direct IO, and how many of these are at another offset than in the map.
places() {
	awk -F, -v s="$(column sector <events.csv)" -v b="$(column bytes <events.csv)" -v o="$(column file_offset <events.csv)" \
		-v p="$(column path <events.csv)" -v unplaced="$unplaced" -v from="$(column origin <events.csv)" '
		FNR == NR { if ($7 == "/direct" && $6 != "") { n++; at[n] = $1; end[n] = $1 + $2; offset[n] = $6 } next }
		$p == "/direct" && $from == "direct" && !($o == "" && unplaced) {
			rows++
			for (i = 1; i <= n; i++)
				if (at[i] <= $s && $s + $b / 512 <= end[i] && $o == offset[i] + ($s - at[i]) * 512) { right++; break }
		}
		END { print rows + 0, rows - right }' "$1" events.csv
}

direct() {
	echo 16 >"/sys/block/$(basename "$loop")/queue/max_sectors_kb"
	mostrace record -d "$loop" -o direct.most --files all -- \
		/usr/local/bin/dd if=/dev/zero of="$mnt/direct" bs=4M count=2 oflag=direct
	check_bundle direct.most
	mostrace analyze direct.most --by file,origin --format csv >paths.csv
	at=$(column write_bytes <paths.csv)
	written=$(grep '^/direct,direct,' paths.csv | cut -d, -f"$at")
	[ "$written" = 8388608 ] || fail "$type: $written bytes of /direct by direct IO"
	mostrace map "$loop" --format csv -o map.csv
	wrong=$(places map.csv)
	{ [ "${wrong#* }" = 0 ] && [ "${wrong% *}" -ge $((unplaced ? 0 : 8)) ]; } || fail "$type: rows by direct IO, and those in another place: $wrong"
	rm -r direct.most
	remove
}

unplaced=0
fresh_ext4 64
direct
# Before f2fs used iomap (in 5.10), its bios did not carry the offset in the file.
! grep -q ' f2fs_dio_end_io' /proc/kallsyms || unplaced=1
fresh_f2fs 128
direct
