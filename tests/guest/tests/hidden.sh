# SPDX-License-Identifier: MIT OR Apache-2.0
# On a kernel that hides its addresses, direct IO cannot be distinguished from the page cache; its origin must stay
# unknown.
fresh_ext4 64 -b 4096
echo 2 >/proc/sys/kernel/kptr_restrict
mostrace record -d "$loop" -o hidden.most --source blktrace --files all --sync -- \
	/usr/local/bin/dd if=/dev/zero of="$mnt/direct" bs=64k count=4 oflag=direct
echo 0 >/proc/sys/kernel/kptr_restrict
check_bundle hidden.most
grep -q kptr_restrict hidden.most/manifest.json || fail "no word of it in the manifest"
origin=$(column origin <events.csv)
awk -F, -v o="$origin" 'NR > 1 && $o !~ /^(unknown|empty|journal|)$/' events.csv >strange.csv
[ ! -s strange.csv ] || fail "$(wc -l <strange.csv) rows of an origin that cannot be known: $(head -n 3 strange.csv)"
remove
