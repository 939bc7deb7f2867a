# SPDX-License-Identifier: MIT OR Apache-2.0
# Direct IO, split into small requests: every byte of the file is known by its inode.
fresh_ext4 64
echo 16 >"/sys/block/$(basename "$loop")/queue/max_sectors_kb"
mostrace record -d "$loop" -o direct.most --files all -- \
	/usr/local/bin/dd if=/dev/zero of="$mnt/direct" bs=256k count=8 oflag=direct
check_bundle direct.most
mostrace analyze direct.most --by file,origin --format csv >paths.csv
at=$(column write_bytes <paths.csv)
written=$(grep '^/direct,direct,' paths.csv | cut -d, -f"$at")
[ "$written" = 2097152 ] || fail "$written bytes of /direct by direct IO"
