# SPDX-License-Identifier: MIT OR Apache-2.0
# data=journal in blocks of a page, and of several pages where the kernel has those: each copy of contents has its file, and who wrote
# it as its cause. The disk takes 16 KiB at a time, so that it writes larger blocks in several requests.

# try BLOCK: in blocks of so many bytes.
try() {
	truncate -s 512M disk.img
	/usr/local/bin/mke2fs -q -F -t ext4 -b "$1" -E lazy_itable_init=0 disk.img 2>mkfs.log || fail "$(cat mkfs.log)"
	loop=$(losetup -f)
	losetup "$loop" disk.img
	echo 16 >"/sys/block/$(basename "$loop")/queue/max_sectors_kb"
	mnt=$PWD/mnt
	mkdir -p "$mnt"
	if ! mount -t ext4 -o noatime,data=journal "$loop" "$mnt" 2>mount.err; then
		[ "$1" -gt "$(getconf_page)" ] || fail "$(cat mount.err)"
		info "this kernel has no blocks of $1 bytes"
		losetup -d "$loop"
		return
	fi
	step "record blocks of $1"
	# All of it in one transaction, unless the timer commits it: what is written twice is copied once.
	bundle=$1.most
	lossless "$bundle" mostrace record -d "$loop" -o "$bundle" --files all --sync -- sh -c "
		/usr/local/bin/dd if=/dev/zero of=$mnt/by-dd bs=$1 count=10 conv=fsync 2>/dev/null
		/usr/local/bin/cp $mnt/by-dd $mnt/by-cp
		/usr/local/bin/dd if=/dev/zero of=$mnt/by-dd bs=$1 count=3 seek=4 conv=notrunc,fsync 2>/dev/null
		sync
		mostrace workload sqlite --transactions 10 --overwrite $mnt/test.db"
	check_bundle "$1.most"
	check_kinds "$1.most" descriptor data_copy metadata_copy commit
	mostrace analyze "$1.most" --by home_path,cause_comm,cause_known --where "kind = 'data_copy'" --format csv >copies.csv
	cat copies.csv
	bytes=$(column write_bytes <copies.csv)
	# copied PATH COMM BYTES: all copies are of this causer.
	copied() {
		found=$(awk -F, -v p="$1" -v c="$2" -v b="$bytes" '$1 == p { if ($2 == c) n += $b; else n += "nan" } END { print n + 0 }' copies.csv)
		[ "$found" = "$3" ] || fail "$1 by $2: $found bytes, expected $3: $(cat copies.csv)"
	}
	copied /by-dd dd $((13 * $1))
	copied /by-cp cp $((10 * $1))
	! grep '^,' copies.csv || fail "copies of no file: $(cat copies.csv)"
	! sed 1d copies.csv | grep -v "^/by-dd,dd,\|^/by-cp,cp,\|^/test.db[^,]*,mostrace," || fail "$(cat copies.csv)"
	offsets "$1.most/file.entries" /by-cp >places
	awk -v b="$1" 'BEGIN { for (i = 0; i < 10; i++) print i * b }' | cmp - places || fail "copies of /by-cp at: $(tr '\n' ' ' <places)"
	info "blocks of $1: $(awk -F, -v b="$bytes" 'NR > 1 { n += $b } END { print n }' copies.csv) bytes of copies, each with its file and writer"
	remove
}

# offsets TABLE PATH: prints the offsets of the copies of a file in the journal, by the table's own bytes (analyzer/bundle/FORMAT.md), sorted.
offsets() {
	hexdump -v -e '8/1 "%02x" "\n"' "$1" | awk -v path="$(printf '%s' "$2" | hexdump -v -e '1/1 "%02x"')" '
		function number(word, from, bytes, n) {
			while (bytes-- > 0) n = n * 256 + index(digits, substr(word, 2 * (from + bytes) + 1, 1)) * 16 - 16 + index(digits, substr(word, 2 * (from + bytes) + 2, 1)) - 1
			return n + 0
		}
		BEGIN { digits = "0123456789abcdef" }
		{ words[NR - 1] = $1 }
		END {
			for (at = 2; at < NR; at += number(words[at], 2, 2) / 8) {
				# A file, and the origin of a journal.
				if (number(words[at], 0, 2) != 2 || number(words[at + 8], 6, 1) != 5) continue
				if (index(words[at + 9] words[at + 10], path) == 1) print number(words[at + 5], 0, 8)
			}
		}' | sort -n
}

# getconf_page: the size of a page, which every mapping is a multiple of.
getconf_page() { awk '/^KernelPageSize/ { print $2 * 1024; exit }' /proc/self/smaps; }

for block in 4096 16384 65536; do try $block; done
